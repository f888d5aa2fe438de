// SPDX-License-Identifier: GPL-2.0
/* --where: a filter of libtraceevent, [EVENTS:]EXPRESSION. */
#include <ctype.h>

#include "profile.h"

/* Of an event that lacks a field, what this says is false. */
static bool has_filter(const struct tep_event_filter *filter)
{
	const struct tep_filter_arg *arg;
	int i;

	for (i = 0; i < filter->filters; i++) {
		arg = filter->event_filters[i].filter;
		if (arg->type != TEP_FILTER_ARG_BOOLEAN ||
		    arg->boolean.value != TEP_FILTER_FALSE)
			return true;
	}
	return false;
}

static bool is_signed(const struct tep_filter_arg *arg)
{
	return arg->type == TEP_FILTER_ARG_FIELD && arg->field.field->flags & TEP_FIELD_IS_SIGNED;
}

static struct tep_filter_arg *flip_sign(struct tep_filter_arg *arg)
{
	struct tep_filter_arg *bit = check_mem(calloc(1, sizeof(*bit)));
	struct tep_filter_arg *flipped = check_mem(calloc(1, sizeof(*flipped)));

	bit->type = TEP_FILTER_ARG_VALUE;
	bit->value.type = TEP_FILTER_NUMBER;
	bit->value.val = 1ULL << 63;
	flipped->type = TEP_FILTER_ARG_EXP;
	flipped->exp.type = TEP_FILTER_EXP_XOR;
	flipped->exp.left = arg;
	flipped->exp.right = bit;
	return flipped;
}

/* libtraceevent compares without a sign: with the sign bits flipped, -1 is less than 0. */
static void compare_signed(struct tep_filter_arg *arg)
{
	struct tep_filter_arg_num *num = &arg->num;

	if (arg->type == TEP_FILTER_ARG_OP) {
		if (arg->op.left)
			compare_signed(arg->op.left);
		compare_signed(arg->op.right);
	}
	if (arg->type != TEP_FILTER_ARG_NUM || num->type < TEP_FILTER_CMP_GT ||
	    num->type > TEP_FILTER_CMP_LE || !is_signed(num->left))
		return;
	num->left = flip_sign(num->left);
	num->right = flip_sign(num->right);
}

/* libtraceevent takes the sign of a number for a minus: "ret == -22" becomes "ret == 0xff...ea". */
static char *without_signs(const char *where)
{
	char *text, quote = 0, before = '(';
	const char *p, *number;
	size_t len;
	FILE *f;

	f = check_mem(open_memstream(&text, &len));
	for (p = where; *p; p++) {
		number = p + 1 + strspn(p + 1, " \t");
		if (!quote && *p == '-' && isdigit(*number) && strchr("=<>!&|(", before)) {
			fprintf(f, "%#llx", -strtoull(number, (char **)&p, 0));
			before = '0';
			p--;
			continue;
		}
		quote = quote_behind(quote, *p);
		before = isspace(*p) ? before : *p;
		fputc(*p, f);
	}
	fclose(f);
	return check_mem(text);
}

int where_open(struct profile *p, const char *path)
{
	char *text __free(pointer) = NULL, *plain __free(pointer) = NULL;
	const char *where = p->cfg->where;
	char why[256] = "";
	int i, err;

	if (!where)
		return 0;
	plain = without_signs(where);
	text = format("%s%s", events_length(where) ? "" : ".*:", plain);
	p->where = check_mem(tep_filter_alloc(p->tep));
	err = tep_filter_add_filter_str(p->where, text);
	for (i = 0; i < p->where->filters; i++)
		compare_signed(p->where->event_filters[i].filter);
	if (has_filter(p->where))
		return 0;
	if (err)
		tep_filter_strerror(p->where, err, why, sizeof(why));
	return fail("%s: no event takes the filter %s%s%s", path, where, *why ? ": " : "", why);
}

/* libtraceevent takes that for granted. */
static bool is_whole(struct record *r, const struct tep_format_field *f)
{
	u64 place, offset, size;

	for (; f; f = f->next) {
		if (f->offset + f->size > r->rec->size)
			return false;
		if (!(f->flags & TEP_FIELD_IS_DYNAMIC))
			continue;
		place = tep_read_number(r->profile->tep, (char *)r->rec->data + f->offset, f->size);
		offset = place & 0xffff;
		offset += f->flags & TEP_FIELD_IS_RELATIVE ? f->offset + f->size : 0;
		size = place >> 16 & 0xffff;
		if (offset + size > (u64)r->rec->size)
			return false;
	}
	return true;
}

bool where_matches(struct record *r)
{
	if (!r->profile->where)
		return true;
	if (!is_whole(r, r->kind->event->format.common_fields) ||
	    !is_whole(r, r->kind->event->format.fields))
		return false;
	return tep_filter_match(r->profile->where, r->rec) == TEP_ERRNO__FILTER_MATCH;
}

void where_close(struct profile *p)
{
	if (p->where)
		tep_filter_free(p->where);
}

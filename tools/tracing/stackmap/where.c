// SPDX-License-Identifier: GPL-2.0
/* --where: a filter of libtraceevent, [EVENTS:]EXPRESSION. */
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

int where_open(struct profile *p, const char *path)
{
	char *text __free(pointer) = NULL;
	const char *where = p->cfg->where;
	char why[256] = "";
	int err;

	if (!where)
		return 0;
	/* A text in it may have a colon, too. */
	text = format("%s%s", where[strcspn(where, ":\"'=<>!~&|()")] == ':' ? "" : ".*:", where);
	p->where = check_mem(tep_filter_alloc(p->tep));
	err = tep_filter_add_filter_str(p->where, text);
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

// SPDX-License-Identifier: GPL-2.0
/* Output of a whole map, or of merged stacks: text, folded, JSON; what a map has in all. */
#include "stackmap.h"

void print_stack(struct map *m, const struct stack *s, const struct config *cfg)
{
	u32 i;

	printf("%sstack_id %u [ref %llu, depth %u]\n", s->user ? "user_" : "",
	       s->id, s->ref, s->nr);
	for (i = 0; i < s->nr; i++) {
		printf("  [%u] ", i);
		print_frame(m, s, i, cfg->lines);
	}
	putchar('\n');
}

/* What the stacks weigh. */
void print_sum(const struct map *m)
{
	const struct value_type *v = &m->values[m->main_value];
	bool has_unit = strcmp(v->unit, "count");

	printf("# %llu %s%s%s%s\n", m->sum, v->type, has_unit ? " (" : "",
	       has_unit ? v->unit : "", has_unit ? ")" : "");
}

/* Behind its weight. */
void print_merged(struct map *m, const struct stack *s, struct pool *names,
		  const struct config *cfg)
{
	u32 i;

	if (m->main_value != VAL_EVENTS)
		printf(", %llu %s, at most %llu", s->val[VAL_EVENTS], m->values[VAL_EVENTS].type,
		       s->val[VAL_LARGEST]);
	if (cfg->histogram)
		printf(", p50 %llu, p90 %llu, p99 %llu", spread_percentile(m, s, 50),
		       spread_percentile(m, s, 90), spread_percentile(m, s, 99));
	if (s->group)
		printf(", %s", hide_controls(pool_string(&m->labels, s->group)));
	putchar('\n');
	for (i = 0; i < s->nr; i++)
		printf("        %s\n", hide_controls(pool_string(names, m->ips[s->first + i])));
	putchar('\n');
	if (cfg->histogram)
		print_histogram(m, s);
}

void print_text(struct map *m, struct pool *names, const struct config *cfg)
{
	const struct stack *s;

	if (m->merged)
		print_sum(m);
	for (s = m->stacks; s != stacks_end(m); s++) {
		if (m->merged) {
			printf("%llu (%.1f%%)", s->ref, share(s->ref, m->sum));
			print_merged(m, s, names, cfg);
		} else {
			print_stack(m, s, cfg);
		}
	}
}

/* Replaces the characters that separate frames in flame graph formats. */
char *folded_name(char *name)
{
	char *s;

	for (s = name; *s; s++) {
		if (*s == ';' || (unsigned char)*s <= ' ')
			*s = '_';
	}
	return name;
}

/* From the root to the leaf. */
void print_path(const struct map *m, const struct stack *s, const struct pool *names)
{
	u32 i;

	for (i = s->nr; i--; ) {
		fputs_unlocked(pool_string(names, m->ips[s->first + i]), stdout);
		putchar_unlocked(i ? ';' : ' ');
	}
}

void print_folded(struct map *m, struct pool *names, const struct config *cfg)
{
	const struct stack *s;
	size_t i;

	for (i = 1; i <= names->nr; i++)
		folded_name(pool_string(names, i));
	for (s = m->stacks; s != stacks_end(m); s++) {
		print_path(m, s, names);
		printf("%llu\n", s->ref);
	}
}

/*
 * A symbol can hold any bytes. Those outside of ASCII are written as the character with that
 * number, so the output is always valid and complete.
 */
void print_json_string(const char *s)
{
	putchar_unlocked('"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			putchar_unlocked('\\');
		if (*s >= ' ' && *s <= '~')
			putchar_unlocked(*s);
		else
			printf("\\u%04x", (unsigned char)*s);
	}
	putchar_unlocked('"');
}

/* Addresses are strings, because most JSON readers use doubles for numbers and lose bits. */
static void print_json_stack(struct map *m, const struct stack *s, const struct config *cfg)
{
	u32 i;

	printf("{\"id\": %u,%s \"ref_count\": %llu, \"depth\": %u,\n  \"ips\": [", s->id,
	       s->user ? " \"user\": true," : "", s->ref, s->nr);
	for (i = 0; i < s->nr; i++)
		printf("%s\"0x%llx\"", i ? ", " : "", m->ips[s->first + i]);
	fputs("],\n  \"symbols\": [", stdout);
	for (i = 0; i < s->nr; i++) {
		fputs_unlocked(i ? ", " : "", stdout);
		print_json_string(frame_get(m, s, i)->text);
	}
	if (cfg->lines)
		fputs("],\n  \"lines\": [", stdout);
	for (i = 0; cfg->lines && i < s->nr; i++) {
		fputs(i ? ", " : "", stdout);
		print_json_string(frame_lines(&m->sym, frame_get(m, s, i)));
	}
	fputs("]}", stdout);
}

static void print_json_merged(struct map *m, const struct stack *s, const struct pool *names,
			      const struct config *cfg)
{
	u32 i;

	printf("{\"weight\": %llu, \"count\": %llu, \"largest\": %llu,", s->ref,
	       s->val[VAL_EVENTS], s->val[VAL_LARGEST]);
	if (s->group) {
		fputs(" \"by\": ", stdout);
		print_json_string(pool_string(&m->labels, s->group));
		putchar(',');
	}
	if (cfg->histogram)
		print_json_histogram(m, s);
	fputs("\n  \"symbols\": [", stdout);
	for (i = 0; i < s->nr; i++) {
		fputs_unlocked(i ? ", " : "", stdout);
		print_json_string(pool_string(names, m->ips[s->first + i]));
	}
	fputs("]}", stdout);
}

void print_json(struct map *m, struct pool *names, const struct config *cfg)
{
	const struct stack *s;

	putchar('[');
	for (s = m->stacks; s != stacks_end(m); s++) {
		fputs(s > m->stacks ? ",\n " : "\n ", stdout);
		if (m->merged)
			print_json_merged(m, s, names, cfg);
		else
			print_json_stack(m, s, cfg);
	}
	puts("\n]");
}

void note_summary(struct map *m)
{
	char *id __free(pointer) = build_id_text(&m->build_id);
	u64 refs = 0, first_refs = 0;
	const struct stack *s;
	u32 deepest = 0;

	sort_stacks(m);
	for (s = m->stacks; s != stacks_end(m); s++) {
		refs += s->ref;
		first_refs += s - m->stacks < 10 ? s->ref : 0;
		deepest = s->nr > deepest ? s->nr : deepest;
	}
	note("kernel: %s%s%s", *m->release ? hide_controls(m->release) : "unknown",
	     *id ? ", build id " : "", id);
	note("stacks: %zu, of user space: %zu, frames: %zu, references: %llu", m->nr_stacks,
	     m->nr_user_stacks, m->nr_ips, refs);
	note("top 10 hold: %.1f%%, depth: %.1f on average, at most %u", share(first_refs, refs),
	     m->nr_stacks ? 1.0 * m->nr_ips / m->nr_stacks : 0, deepest);
}

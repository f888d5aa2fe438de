// SPDX-License-Identifier: GPL-2.0
/*
 * The stacks whose frames are in a trace: full stacks, and definitions. With
 * options/stackmap-define, the event stack_def has the frames of an id, ahead of its first use. On
 * another CPU, a use may come a little earlier, so definitions are read in a pass of their own. So
 * are the stacks of user space that are taken after their events, on the way back from the kernel.
 */
#include <ctype.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "frame.h"
#include "symbols.h"
#include "trace.h"
#include "user.h"
#include "util.h"
#include "view.h"

/* The lines of a stack's frames. */
static void add_frame_line(struct frame_lines *l, const char *line)
{
	size_t n = strlen(line);

	l->cut |= line[n - 1] != '\n';
	l->text = grow(l->text, &l->room, l->len + n + 1, 1);
	memcpy(l->text + l->len, line, n + 1);
	l->len += n;
}

/* Sets the kind of the line after the frames. Returns false at the end of the trace. */
static bool read_frame_lines(struct frame_lines *l, struct trace *t, enum line_kind *kind)
{
	bool more;

	l->len = 0;
	l->cut = false;
	if (t->first)
		add_frame_line(l, t->first);
	while ((more = read_line(t, kind)) && *kind == LINE_FRAME)
		add_frame_line(l, t->line);
	return more;
}

static bool is_whole(const struct frame_lines *l)
{
	return l->len && !l->cut;
}

static size_t frame_index(struct map *m, const struct printed_frame *f, bool user)
{
	char *name = f->text ? copy_string(f->text) : format("0x%llx", f->ip);
	size_t i = name_index(m, name, user);

	free(name);
	return i;
}

static bool is_known(const struct map *m, const struct printed_frame *f, bool exact)
{
	return f->has_ip && (is_trampoline(f->ip) || find_symbol(m, f->ip, exact));
}

/* The frames of a new stack are behind those of the map. */
static void add_word(struct map *m, struct stack *s, u64 word)
{
	m->ips = grow(m->ips, &m->room_ips, s->first + s->nr + 1, sizeof(*m->ips));
	m->ips[s->first + s->nr++] = word;
}

static bool add_frame(struct map *m, struct stack *s, char *line)
{
	struct printed_frame f;

	parse_frame(line, &f);
	if (!s->named && !is_known(m, &f, !s->nr))
		return false;
	add_word(m, s, s->named ? frame_index(m, &f, false) : f.ip);
	return true;
}

static bool add_frames(struct map *m, struct stack *s, const char *lines)
{
	char *copy = copy_string(lines), *next = copy, *line;
	bool ok = true;

	while (ok && (line = strsep(&next, "\n")) && *line)
		ok = add_frame(m, s, line);
	free(copy);
	return ok;
}

/*
 * Uses the addresses if the trace has them and all have symbols. The stack then prints like one
 * of the map. Otherwise uses the names in the trace.
 */
void take_frame_lines(struct map *m, struct stack *s, const char *lines)
{
	s->first = m->nr_ips;
	if (add_frames(m, s, lines))
		return;
	s->named = true;
	s->nr = 0;
	add_frames(m, s, lines);
}

/* Behind the frames that the stack has already. */
void take_words(struct map *m, struct stack *s, const char *p)
{
	u64 word;

	for (p += *p == '{'; parse_word(&p, &word); p = skip_separator(p))
		add_word(m, s, word);
}

static bool add_user_frame(struct map *m, struct stack *s, char *line, bool mapped)
{
	struct printed_frame f;

	parse_user_frame(line, &f);
	/* trace-cmd always prints 8 frames. */
	if (f.has_ip && !f.ip)
		return true;
	if (!s->user_named && (!f.has_ip || (f.text && !mapped)))
		return false;
	add_word(m, s, s->user_named ? frame_index(m, &f, true) : f.ip);
	return true;
}

static bool add_user_frames(struct map *m, struct stack *s, const char *lines, bool mapped)
{
	char *copy = copy_string(lines), *next = copy, *line;
	bool ok = true;

	while (ok && (line = strsep(&next, "\n")) && *line)
		ok = add_user_frame(m, s, line, mapped);
	free(copy);
	return ok;
}

/*
 * Uses the addresses if the trace has them, and either it has no more or @mapped tells that more
 * can be found. Otherwise uses the names in the trace.
 */
void take_user_lines(struct map *m, struct stack *s, const char *lines, bool mapped)
{
	u32 nr = s->nr;

	if (add_user_frames(m, s, lines, mapped))
		return;
	s->user_named = true;
	s->nr = nr;
	add_user_frames(m, s, lines, mapped);
}

static void add_stack(struct map *m, const struct stack *s)
{
	m->stacks = grow(m->stacks, &m->room_stacks, m->nr_stacks + 1, sizeof(*m->stacks));
	m->stacks[m->nr_stacks++] = *s;
	m->nr_ips += s->nr;
}

static void define_stack(struct map *m, const struct trace *t, u32 id, bool user,
			 const char *lines)
{
	struct stack s = { .id = id, .first = m->nr_ips, .defined = true };

	if (!lines)
		take_words(m, &s, t->words);
	else if (user)
		take_user_lines(m, &s, lines, m->users.processes);
	else
		take_frame_lines(m, &s, lines);
	s.nr_user = user ? s.nr : 0;
	add_stack(m, &s);
}

/* Sets the kind of the line after the definition. Returns false at the end of the trace. */
static bool read_definition(struct map *m, struct trace *t, enum line_kind *kind,
			    struct frame_lines *l)
{
	bool more, user = t->user;
	u32 id = t->def;

	if (t->words) {
		define_stack(m, t, id, user, NULL);
		return read_line(t, kind);
	}
	more = read_frame_lines(l, t, kind);
	/* The use of the id is behind. If nothing is, frames may be cut off. */
	if (more && is_whole(l))
		define_stack(m, t, id, user, l->text);
	return more;
}

/* One of the two stacks of an event: that of the kernel or that of user space. */
void half_of_ids(struct half *h, const struct trace *t)
{
	h->kind = LINE_IDS;
	h->ids = t->ids;
	h->text = t->user ? format("<user %u", t->ids.id[0]) :
			    format("%.*s", (int)strcspn(t->text, ">"), t->text);
}

/* Sets the kind of the line after the stack. Returns false at the end of the trace. */
bool read_full(struct half *h, struct trace *t, enum line_kind *kind,
		      struct frame_lines *l)
{
	bool more;

	if (t->words) {
		*h = (struct half) { LINE_FULL, .words = true, .text = copy_string(t->words) };
		return read_line(t, kind);
	}
	more = read_frame_lines(l, t, kind);
	if (is_whole(l) && strncmp(l->text, "\t=> 0x0\n", 8))
		*h = (struct half) { LINE_FULL, .text = copy_string(l->text) };
	return more;
}

/* A stack that was taken on the way back to user space. */
struct cookie {
	u64		cookie;
	struct half	user;
};

static struct cookie *add_cookie(struct map *m, u64 cookie)
{
	m->cookies = grow(m->cookies, &m->room_cookies, m->nr_cookies + 1, sizeof(*m->cookies));
	m->cookies[m->nr_cookies] = (struct cookie) { .cookie = cookie };
	return &m->cookies[m->nr_cookies++];
}

static bool read_cookie_stack(struct map *m, struct trace *t, enum line_kind *kind,
			      struct frame_lines *l)
{
	struct cookie *c = add_cookie(m, t->cookie);
	bool more = read_full(&c->user, t, kind, l);

	/* One that is empty or cut off does not hide another one. */
	m->nr_cookies -= c->user.kind == LINE_OTHER;
	return more;
}

static bool read_any_definition(struct map *m, struct trace *t, enum line_kind *kind,
				struct frame_lines *l)
{
	m->has_user |= t->user;
	if (*kind == LINE_DEF)
		return read_definition(m, t, kind, l);
	if (*kind == LINE_FULL && t->has_cookie)
		return read_cookie_stack(m, t, kind, l);
	if (*kind == LINE_IDS && t->has_cookie)
		half_of_ids(&add_cookie(m, t->cookie)->user, t);
	return read_line(t, kind);
}

static int compare_cookies(const void *a, const void *b)
{
	const struct cookie *ca = a, *cb = b;

	return compare_u64(ca->cookie, cb->cookie);
}

static int compare_cookie(const void *key, const void *elem)
{
	const struct cookie *c = elem;

	return compare_u64(*(const u64 *)key, c->cookie);
}

/* NULL if the trace has no stack for it. */
const struct half *find_cookie_stack(const struct map *m, u64 cookie)
{
	const struct cookie *c = NULL;

	if (m->nr_cookies)
		c = bsearch(&cookie, m->cookies, m->nr_cookies, sizeof(*m->cookies),
			    compare_cookie);
	return c && c->user.kind != LINE_OTHER ? &c->user : NULL;
}

void note_lost(size_t nr, const struct config *cfg)
{
	if (nr)
		note("%s: %zu stacks of user space were overwritten or not yet taken", cfg->trace,
		     nr);
}

static void cookies_free(struct map *m)
{
	size_t i;

	for (i = 0; i < m->nr_cookies; i++)
		free(m->cookies[i].user.text);
	free(m->cookies);
}

void map_free(struct map *m)
{
	frames_free(m);
	named_free(m);
	symtab_free(&m->kallsyms);
	symtab_free(&m->elfsyms);
	vmlinux_free(m->vmlinux);
	users_free(&m->users);
	cookies_free(m);
	free(m->stacks);
	free(m->ips);
	free(m->name);
	free(m->dir);
	free(m->source);
	free(m->tasks);
}

static void read_all_definitions(struct map *m, FILE *f)
{
	struct frame_lines l = {};
	struct trace t = { .f = f };
	enum line_kind kind;
	bool more = read_line(&t, &kind);

	while (more)
		more = read_any_definition(m, &t, &kind, &l);
	sort_array(m->cookies, m->nr_cookies, sizeof(*m->cookies), compare_cookies);
	free(l.text);
	free(t.line);
}

/* Names cannot be compared with addresses. The definition then counts more than the map. */
static bool same_stack(const struct map *m, const struct stack *a, const struct stack *b)
{
	if (a->nr != b->nr || a->nr_user != b->nr_user)
		return false;
	return a->named != b->named || a->user_named != b->user_named ||
	       !memcmp(m->ips + a->first, m->ips + b->first, a->nr * sizeof(*m->ips));
}

static int compare_defined(const void *a, const void *b)
{
	const struct stack *sa = a, *sb = b;
	int ret = compare_u64(sa->id, sb->id);

	return ret ? ret : compare_u64(sb->defined, sa->defined);
}

/* One stack for each id; returns -EINVAL if some id has two. */
static int merge_definitions(struct map *m, const char *trace)
{
	struct stack *last = NULL, *s;
	size_t i, n = 0;
	int ret = 0;

	sort_array(m->stacks, m->nr_stacks, sizeof(*m->stacks), compare_defined);
	for (i = 0; i < m->nr_stacks; i++) {
		s = &m->stacks[i];
		if (!last || last->id != s->id || !last->defined) {
			last = &m->stacks[n++];
			*last = *s;
		} else if (!last->ambiguous && !same_stack(m, last, s)) {
			complain("%s: stack_id %u has two definitions that differ, it is left out",
				 trace, s->id);
			last->ambiguous = true;
			ret = -EINVAL;
		}
	}
	m->nr_stacks = n;
	return ret;
}

/* Adds the stacks that the trace defines to the map, and sorts it by id. */
int read_definitions(struct map *m, const struct config *cfg)
{
	read_all_definitions(m, cfg->trace_file);
	rewind(cfg->trace_file);
	return merge_definitions(m, cfg->trace);
}

int close_trace(const struct config *cfg)
{
	bool bad = ferror(cfg->trace_file);

	if (bad)
		complain("%s: %s", cfg->trace, strerror(errno));
	fclose(cfg->trace_file);
	return bad;
}

bool has_definitions(FILE *f)
{
	struct trace t = { .f = f };
	enum line_kind kind;
	bool found = false;

	while (!found && read_line(&t, &kind))
		found = kind == LINE_DEF;
	rewind(f);
	free(t.line);
	return found;
}

/* A trace that is still being written or a pipe cannot be read twice. */
static bool is_plain_file(FILE *f)
{
	struct statfs fs;
	struct stat st;

	return f != stdin && !fstat(fileno(f), &st) && S_ISREG(st.st_mode) &&
	       !fstatfs(fileno(f), &fs) && fs.f_type != TRACEFS_MAGIC;
}

/* False (and errno) if it fails. */
static bool copy_stream(FILE *from, FILE *to)
{
	char buf[1 << 16];
	size_t n;

	while ((n = fread(buf, 1, sizeof(buf), from))) {
		if (fwrite(buf, 1, n, to) != n)
			return false;
	}
	return !ferror(from) && !fflush(to);
}

FILE *open_trace(const char *path)
{
	FILE *copy, *f = strcmp(path, "-") ? fopen(path, "re") : stdin;

	if (!f) {
		complain("%s: %s", path, strerror(errno));
		return NULL;
	}
	if (is_plain_file(f))
		return f;
	copy = tmpfile();
	if (!copy || !copy_stream(f, copy)) {
		complain("%s: cannot copy it to a temporary file: %s", path, strerror(errno));
		if (copy)
			fclose(copy);
		copy = NULL;
	} else {
		rewind(copy);
	}
	if (f != stdin)
		fclose(f);
	return copy;
}

// SPDX-License-Identifier: GPL-2.0
/* Reads user_maps, and finds the file that a process had mapped at an address at some time. */
#include <ctype.h>
#include <search.h>

#include "symbols.h"
#include "user.h"
#include "util.h"

struct process {
	u32		tgid;
	u32		nr;		/* in users->processes */
	struct mapping	*maps;
	size_t		nr_maps;
	size_t		room;
};

static int compare_process(const void *a, const void *b)
{
	const struct process *pa = a, *pb = b;

	return pa->tgid < pb->tgid ? -1 : pa->tgid > pb->tgid;
}

static struct process *get_process(struct users *u, u32 tgid)
{
	struct process *new = check_mem(calloc(1, sizeof(*new)));
	struct process **found;

	new->tgid = tgid;
	new->nr = u->nr_processes;
	found = check_mem(tsearch(new, &u->tree, compare_process));
	if (*found != new) {
		free(new);
		return *found;
	}
	u->processes = grow(u->processes, &u->room_processes, new->nr + 1, sizeof(*u->processes));
	u->processes[u->nr_processes++] = new;
	return new;
}

static char *object_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t len;

	path = slash && slash[1] ? slash + 1 : path;
	len = strlen(path);
	if (*path != '[' || len < 3 || path[len - 1] != ']')
		return copy_string(path);
	return format("%.*s", (int)len - 2, path + 1);
}

/* Anyone can make a file whose name tells the terminal what to do. */
static char *hide_controls(char *path)
{
	char *s;

	for (s = path; *s; s++)
		*s = iscntrl((unsigned char)*s) ? '?' : *s;
	return path;
}

/* "\012" in the text is a newline. */
static char *unescape(const char *path)
{
	char *new = copy_string(path), *to = new;
	const char *s = path;
	unsigned int c;

	for (; *s; to++) {
		if (*s == '\\' && s[1] >= '0' && s[1] <= '3' && strspn(s + 1, "01234567") >= 3 &&
		    sscanf(s + 1, "%3o", &c) == 1 && c) {
			*to = c;
			s += 4;
		} else {
			*to = *s++;
		}
	}
	*to = '\0';
	return new;
}

/* Returns its number plus 1; 0 if there are too many. */
u32 get_object(struct users *u, const char *path, const struct build_id *id)
{
	char *hex = build_id_text(id), *key = format("%s%s %s", hex, id->stamp, path);
	size_t known = u->names.nr, i = intern(&u->names, key);
	struct object *o;

	free(hex);
	free(key);
	if (i == known) {
		o = check_mem(calloc(1, sizeof(*o)));
		o->file = unescape(path);
		o->path = hide_controls(copy_string(o->file));
		o->name = object_name(o->path);
		o->id = *id;
		u->objects = grow(u->objects, &u->room_objects, i + 1, sizeof(*u->objects));
		u->objects[i] = o;
	}
	return i + 1 < OBJECT_LIMIT ? i + 1 : 0;
}

/* How many lines of the process are not later than that, and which process it is. */
u64 users_epoch(const struct users *u, u32 tgid, u64 time)
{
	struct process key = { .tgid = tgid }, **found = tfind(&key, &u->tree, compare_process);
	size_t lo = 0, hi, mid;

	if (!found)
		return 0;
	hi = (*found)->nr_maps;
	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if ((*found)->maps[mid].time <= time)
			lo = mid + 1;
		else
			hi = mid;
	}
	return (u64)((*found)->nr + 1) << 32 | lo;
}

static const struct mapping *find_mapping(const struct users *u, u64 epoch, u64 addr)
{
	const struct mapping *map;
	const struct process *p;
	size_t i = (u32)epoch;

	if (!epoch)
		return NULL;
	p = u->processes[(epoch >> 32) - 1];
	while (i--) {
		map = &p->maps[i];
		if (map->exec)
			return NULL;
		if (map->parent) {
			p = map->parent;
			i = map->nr_parent;
		} else if (addr >= map->start && addr < map->end) {
			return map;
		}
	}
	return NULL;
}

/* A return address may be behind the end of the mapping. */
u64 place_word(const struct users *u, u64 epoch, u64 addr, bool exact)
{
	const struct mapping *map = find_mapping(u, epoch, exact || !addr ? addr : addr - 1);
	u64 offset;

	if (!map || !map->object)
		return addr;
	offset = addr - map->start + map->offset;
	return offset > OFFSET_MASK ? addr : make_word(map->object, offset);
}

/* Lines that are not in the order of time count as later. */
static struct mapping *add_mapping(struct process *p, u64 time)
{
	u64 last = p->nr_maps ? p->maps[p->nr_maps - 1].time : 0;

	p->maps = grow(p->maps, &p->room, p->nr_maps + 1, sizeof(*p->maps));
	p->maps[p->nr_maps] = (struct mapping) { .time = time > last ? time : last };
	return &p->maps[p->nr_maps++];
}

static bool take_word(char **p, const char *word)
{
	size_t len = strlen(word);

	if (strncmp(*p, word, len))
		return false;
	*p += len;
	return true;
}

/* A number, and the character behind it. */
static bool take_number(char **p, int base, char sep, u64 max, u64 *n)
{
	char *end;

	if (!isxdigit((unsigned char)**p))
		return false;
	errno = 0;
	*n = strtoull(*p, &end, base);
	if (end == *p || errno || *n > max || *end != sep)
		return false;
	*p = end + !!sep;
	return true;
}

static bool take_build_id(char **p, struct build_id *id)
{
	char *end = strchrnul(*p, ' '), pair[3] = {};

	if (**p == '=' && (size_t)(end - *p) < sizeof(id->stamp)) {
		memcpy(id->stamp, *p, end - *p);
		*p = end;
	} else if (!take_word(p, "-")) {
		while (id->len < MAX_BUILD_ID && isxdigit((unsigned char)(*p)[0]) &&
		       isxdigit((unsigned char)(*p)[1])) {
			memcpy(pair, *p, 2);
			id->bytes[id->len++] = strtoul(pair, NULL, 16);
			*p += 2;
		}
	}
	if (*p != end)
		return false;
	*p += *end == ' ';
	return true;
}

static int parse_map(struct users *u, char *p, u64 time)
{
	struct build_id id = {};
	u64 tgid, start, end, offset;
	struct mapping *map;
	struct object *o;

	if (!take_number(&p, 10, ' ', UINT32_MAX, &tgid) ||
	    !take_number(&p, 16, '-', UINT64_MAX, &start) ||
	    !take_number(&p, 16, ' ', UINT64_MAX, &end) ||
	    !take_number(&p, 16, ' ', UINT64_MAX, &offset) || !take_build_id(&p, &id))
		return -EINVAL;
	map = add_mapping(get_process(u, tgid), time);
	map->start = start;
	map->end = end;
	map->offset = offset;
	if (!*p || end <= start)
		return 0;
	map->object = get_object(u, p, &id);
	if (!map->object)
		return 0;
	o = u->objects[map->object - 1];
	if (o->limit < offset + (end - start))
		o->limit = offset + (end - start);
	return 0;
}

static int parse_fork(struct users *u, char *p, u64 time)
{
	struct process *parent;
	struct mapping *map;
	u64 child, tgid;
	size_t nr;

	if (!take_number(&p, 10, ' ', UINT32_MAX, &child) ||
	    !take_number(&p, 10, '\0', UINT32_MAX, &tgid))
		return -EINVAL;
	parent = get_process(u, tgid);
	/* Taken first: a damaged file may have a process that is its own parent. */
	nr = parent->nr_maps;
	map = add_mapping(get_process(u, child), time);
	map->parent = parent;
	map->nr_parent = nr;
	return 0;
}

static int parse_exec(struct users *u, char *p, u64 time)
{
	u64 tgid;

	if (!take_number(&p, 10, '\0', UINT32_MAX, &tgid))
		return -EINVAL;
	add_mapping(get_process(u, tgid), time)->exec = true;
	return 0;
}

static int parse_user_line(struct users *u, char *line)
{
	u64 time = 0;

	if (take_word(&line, "@") && !take_number(&line, 10, ' ', UINT64_MAX, &time))
		return -EINVAL;
	if (take_word(&line, "map "))
		return parse_map(u, line, time);
	if (take_word(&line, "fork "))
		return parse_fork(u, line, time);
	if (take_word(&line, "exec "))
		return parse_exec(u, line, time);
	return take_word(&line, "task ") ? 0 : -EINVAL;
}

int parse_users(struct users *u, const char *name, char *buf, size_t len)
{
	char *line, *next = buf;

	if (check_whole(name, buf, len))
		return -EINVAL;
	while ((line = strsep(&next, "\n"))) {
		if (!next && !*line && line == buf + len)
			return 0;
		if ((next ? next - 1 : buf + len) != line + strlen(line) ||
		    parse_user_line(u, line)) {
			complain("%s: byte %td: not a line of user_maps", name, line - buf);
			return -EINVAL;
		}
	}
	return 0;
}

int load_users(struct users *u, const char *path)
{
	size_t len;
	char *buf = slurp_file(path, &len);
	int ret;

	if (!buf)
		return -ENOENT;
	ret = parse_users(u, path, buf, len);
	free(buf);
	return ret;
}

static void free_process(void *p)
{
	free(((struct process *)p)->maps);
	free(p);
}

void users_free(struct users *u)
{
	size_t i;

	tdestroy(u->tree, free_process);
	free(u->processes);
	for (i = 0; i < u->names.nr; i++) {
		object_free_symbols(u->objects[i]);
		free(u->objects[i]->file);
		free(u->objects[i]->path);
		free(u->objects[i]->name);
		free(u->objects[i]);
	}
	free(u->objects);
	intern_free(&u->names);
	*u = (struct users) { .symfs = u->symfs };
}

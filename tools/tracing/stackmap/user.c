// SPDX-License-Identifier: GPL-2.0
/* Reads user_maps, and finds the file that a process had mapped at an address at some time. */
#include <ctype.h>

#include "stackmap.h"

struct process {
	struct mapping	*maps;
	size_t		nr_maps;
};

static struct process *get_process(struct users *u, u32 tgid)
{
	return pool_get(&u->processes, tgid, 0, sizeof(struct process));
}

static char *object_name(const char *path)
{
	const char *name = basename(path);
	int len = strlen(name);

	if (*name == '[' && name[len - 1] == ']')
		return format("%.*s", len - 2, name + 1);
	return copy_string(name);
}

/* Anyone can make a file, a task or a map whose names tell the terminal what to do. */
char *hide_controls(char *text)
{
	char *s;

	for (s = text; *s; s++) {
		if (iscntrl((unsigned char)*s))
			*s = '?';
	}
	return text;
}

/* "\012" in the text is a newline. */
static char *unescape(const char *path)
{
	char *new = copy_string(path), *to = new;
	const char *s = path;
	unsigned int c;

	for (; *s; to++) {
		if (*s == '\\' && strspn(s + 1, "01234567") >= 3 &&
		    sscanf(s + 1, "%3o", &c) == 1) {
			*to = c;
			s += 4;
		} else {
			*to = *s++;
		}
	}
	*to = '\0';
	return new;
}

/* NULL if there is none with that number. */
struct object *object_at(const struct users *u, u32 nr)
{
	return nr && nr <= u->objects.nr ? u->objects.list[nr].ptr : NULL;
}

/* Returns its number; 0 if there are too many. */
u32 get_object(struct users *u, const char *path, const struct build_id *id)
{
	char *hex __free(pointer) = build_id_text(id);
	char *key __free(pointer) = format("%s%d %s", hex, id->lack, path);
	u32 i = intern(&u->objects, key);
	struct object *o;

	if (!u->objects.list[i].ptr) {
		o = check_mem(calloc(1, sizeof(*o)));
		o->file = unescape(path);
		o->path = hide_controls(copy_string(o->file));
		o->name = object_name(o->path);
		o->id = *id;
		u->objects.list[i].ptr = o;
	}
	return i < OBJECT_LIMIT ? i : 0;
}

/* How many lines of the process are not later than that. */
static size_t lines_until(const struct process *p, u64 time)
{
	size_t lo = 0, hi = p->nr_maps, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (p->maps[mid].time <= time)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Which process it is, and how many of its lines count. */
u64 users_epoch(struct users *u, u32 tgid, u64 time)
{
	const u64 key[] = { tgid, 0 };
	u64 nr = pool_add(&u->processes, key, ARRAY_SIZE(key));
	const struct process *p = u->processes.list[nr].ptr;

	return p ? nr << 32 | lines_until(p, time) : 0;
}

/* In a damaged file, a process may be its own parent. */
#define MAX_FORKS	1000

static const struct mapping *find_mapping(struct users *u, u64 epoch, u64 addr)
{
	const struct mapping *map;
	const struct process *p;
	size_t i = (u32)epoch;
	u32 forks = 0;

	if (!epoch)
		return NULL;
	p = u->processes.list[epoch >> 32].ptr;
	while (i--) {
		map = &p->maps[i];
		if (map->exec || forks > MAX_FORKS)
			return NULL;
		if (map->parent) {
			p = map->parent;
			i = lines_until(p, map->time);
			forks++;
		} else if (addr >= map->start && addr < map->end) {
			return map;
		}
	}
	return NULL;
}

u64 place_word(struct users *u, u64 epoch, u64 addr, bool exact)
{
	const struct mapping *map = find_mapping(u, epoch, lookup_addr(addr, exact));
	u64 offset;

	if (!map || !map->object)
		return address_word(addr);
	offset = addr - map->start + map->offset;
	return offset > OFFSET_MASK ? address_word(addr) : make_word(map->object, offset);
}

/* The lines of a process become sorted by time. */
static struct mapping *add_mapping(struct process *p, u64 time)
{
	struct mapping *map = APPEND(p->maps, p->nr_maps);

	for (; map > p->maps && map[-1].time > time; map--)
		map[0] = map[-1];
	*map = (struct mapping) { .time = time };
	return map;
}

static int parse_map(struct users *u, char *line, u64 time)
{
	u64 start, end, offset;
	struct build_id id = {};
	struct mapping *map;
	int at = 0;
	u32 tgid;
	char *p;

	if (sscanf(line, "map %u %llx-%llx %llx %n", &tgid, &start, &end, &offset, &at) != 4 ||
	    end <= start || !line[at])
		return -EINVAL;
	p = parse_build_id(line + at, &id);
	if (*p && *p++ != ' ')
		return -EINVAL;
	map = add_mapping(get_process(u, tgid), time);
	map->start = start;
	map->end = end;
	map->offset = offset;
	map->object = *p ? get_object(u, p, &id) : 0;
	return 0;
}

int parse_user_line(void *users, char *line)
{
	struct users *u = users;
	u32 tgid, parent;
	u64 time = 0;
	int at = 0;
	char more;

	if (*line == '@' && sscanf(line, "@%llu %n", &time, &at) != 1)
		return -EINVAL;
	u->watched |= at;
	line += at;
	if (sscanf(line, "fork %u %u%c", &tgid, &parent, &more) == 2)
		add_mapping(get_process(u, tgid), time)->parent = get_process(u, parent);
	else if (sscanf(line, "exec %u%c", &tgid, &more) == 1)
		add_mapping(get_process(u, tgid), time)->exec = true;
	else
		return parse_map(u, line, time);
	return 0;
}

void users_free(struct users *u)
{
	struct process *p;
	struct object *o;
	u32 i;

	for (i = 1; i <= u->processes.nr; i++) {
		p = u->processes.list[i].ptr;
		free(p ? p->maps : NULL);
	}
	pool_free_all(&u->processes);
	for (i = 1; (o = object_at(u, i)); i++) {
		if (HAS_LIBS)
			object_free_symbols(o);
		free(o->file);
		free(o->path);
		free(o->name);
	}
	pool_free_all(&u->objects);
	*u = (struct users) { .symfs = u->symfs, .dir = u->dir };
}

// SPDX-License-Identifier: GPL-2.0
/*
 * What processes had mapped: the file user_maps of "save" and "record". Its lines are in the order
 * of time, so the last mapping that contains an address is the one that counts.
 *
 *	task 1235 1234			thread 1235 belongs to process 1234
 *	fork 1300 1234			process 1300 begins with what 1234 has mapped so far
 *	map 1234 5581c000-5581e000 1000 BUILD-ID /usr/bin/cat
 *					with the offset in the file; "-": no build id. Without a
 *					path, nothing is known of what is there.
 */
#include <ctype.h>
#include <search.h>

#include "symbols.h"
#include "user.h"
#include "util.h"

struct thread {
	u32	tid;
	u32	tgid;
};

const struct process unknown_process;

static int compare_process(const void *a, const void *b)
{
	const struct process *pa = a, *pb = b;

	return pa->tgid < pb->tgid ? -1 : pa->tgid > pb->tgid;
}

static int compare_thread(const void *a, const void *b)
{
	const struct thread *ta = a, *tb = b;

	return ta->tid < tb->tid ? -1 : ta->tid > tb->tid;
}

static void set_thread(struct users *u, u32 tid, u32 tgid)
{
	struct thread *new = check_mem(malloc(sizeof(*new)));
	struct thread **found;

	new->tid = tid;
	found = check_mem(tsearch(new, &u->tasks, compare_thread));
	if (*found != new)
		free(new);
	(*found)->tgid = tgid;
}

static struct process *get_process(struct users *u, u32 tgid)
{
	struct process *new = check_mem(calloc(1, sizeof(*new)));
	struct process **found;

	new->tgid = tgid;
	found = check_mem(tsearch(new, &u->processes, compare_process));
	if (*found != new)
		free(new);
	else
		set_thread(u, tgid, tgid);	/* no more of another process */
	return *found;
}

/* NULL if nothing is known of it. */
const struct process *find_process(const struct users *u, const struct task *task)
{
	struct process key = { .tgid = task->tgid ? task->tgid : task->pid };
	struct thread thread = { .tid = task->pid };
	void *found = NULL;

	if (!task->tgid)
		found = tfind(&thread, &u->tasks, compare_thread);
	if (found)
		key.tgid = (*(struct thread **)found)->tgid;
	found = tfind(&key, &u->processes, compare_process);
	return found ? *(struct process **)found : NULL;
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

struct object *get_object(struct users *u, const char *path, const struct build_id *id)
{
	char *hex = build_id_text(id), *key = format("%s %s", hex, path);
	size_t known = u->names.nr, i = intern(&u->names, key);
	struct object *o;

	free(hex);
	free(key);
	if (i < known)
		return u->objects[i];
	o = check_mem(calloc(1, sizeof(*o)));
	o->path = hide_controls(copy_string(path));
	o->name = object_name(o->path);
	o->id = *id;
	u->objects = grow(u->objects, &u->room_objects, i + 1, sizeof(*u->objects));
	u->objects[i] = o;
	return o;
}

bool find_place(const struct process *p, u64 addr, struct place *place)
{
	const struct mapping *map;
	size_t i = p->nr;

	while (i--) {
		map = &p->maps[i];
		if (map->parent) {
			p = map->parent;
			i = map->nr_parent;
		} else if (addr >= map->start && addr < map->end) {
			place->object = map->object;
			place->offset = addr - map->start + map->offset;
			place->addr = place->offset;
			return place->object;
		}
	}
	return false;
}

static struct mapping *add_mapping(struct process *p)
{
	p->maps = grow(p->maps, &p->room, p->nr + 1, sizeof(*p->maps));
	p->maps[p->nr] = (struct mapping) {};
	return &p->maps[p->nr++];
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

	if (!take_word(p, "-")) {
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

static int parse_map(struct users *u, char *p)
{
	struct build_id id = {};
	u64 tgid, start, end, offset;
	struct mapping *map;

	if (!take_number(&p, 10, ' ', UINT32_MAX, &tgid) ||
	    !take_number(&p, 16, '-', UINT64_MAX, &start) ||
	    !take_number(&p, 16, ' ', UINT64_MAX, &end) ||
	    !take_number(&p, 16, ' ', UINT64_MAX, &offset) || !take_build_id(&p, &id))
		return -EINVAL;
	map = add_mapping(get_process(u, tgid));
	map->start = start;
	map->end = end;
	map->offset = offset;
	if (!*p || end <= start)
		return 0;
	map->object = get_object(u, p, &id);
	if (map->object->limit < offset + (end - start))
		map->object->limit = offset + (end - start);
	return 0;
}

static bool take_pair(char *p, u64 *a, u64 *b)
{
	return take_number(&p, 10, ' ', UINT32_MAX, a) && take_number(&p, 10, '\0', UINT32_MAX, b);
}

static int parse_task_line(struct users *u, char *p)
{
	u64 tid, tgid;

	if (!take_pair(p, &tid, &tgid))
		return -EINVAL;
	set_thread(u, tid, tgid);
	return 0;
}

static int parse_fork(struct users *u, char *p)
{
	struct process *parent;
	struct mapping *map;
	u64 child, tgid;
	size_t nr;

	if (!take_pair(p, &child, &tgid))
		return -EINVAL;
	parent = get_process(u, tgid);
	/* Taken first: a damaged file may have a process that is its own parent. */
	nr = parent->nr;
	map = add_mapping(get_process(u, child));
	map->parent = parent;
	map->nr_parent = nr;
	/* The tid may have been that of another process. */
	set_thread(u, child, child);
	return 0;
}

static int parse_user_line(struct users *u, char *line)
{
	if (take_word(&line, "map "))
		return parse_map(u, line);
	if (take_word(&line, "task "))
		return parse_task_line(u, line);
	if (take_word(&line, "fork "))
		return parse_fork(u, line);
	return -EINVAL;
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

static void free_object(struct object *o)
{
	symtab_free(&o->symtab);
	elf_file_free(o->elf);
	free(o->path);
	free(o->name);
	free(o);
}

void users_free(struct users *u)
{
	size_t i;

	tdestroy(u->processes, free_process);
	tdestroy(u->tasks, free);
	for (i = 0; i < u->names.nr; i++)
		free_object(u->objects[i]);
	free(u->objects);
	intern_free(&u->names);
	*u = (struct users) { .symfs = u->symfs };
}

// SPDX-License-Identifier: GPL-2.0
#include "event.h"

void init_kind(struct kind *k, struct tep_event *ev)
{
	static const char * const names[NR_FIELDS] = {
		[FIELD_PID] = "common_pid", [FIELD_FLAGS] = "common_flags",
		[FIELD_PREEMPT] = "common_preempt_count", [FIELD_ID] = "stack_id",
		[FIELD_SIZE] = "size", [FIELD_CALLER] = "caller", [FIELD_IP] = "ip",
		[FIELD_OUTER_ID] = "outer_id", [FIELD_OUTER2_ID] = "outer2_id",
		[FIELD_OUTER2_IP] = "outer2_ip", [FIELD_COOKIE] = "cookie", [FIELD_TGID] = "tgid",
		[FIELD_FILE_ID] = "file_id", [FIELD_ID_SIZE] = "id_size",
		[FIELD_BUILD_ID] = "build_id", [FIELD_PATH] = "path",
		[FIELD_PREV_PID] = "prev_pid", [FIELD_PREV_STATE] = "prev_state",
		[FIELD_PREV_COMM] = "prev_comm", [FIELD_NEXT_PID] = "next_pid",
		[FIELD_NEXT_COMM] = "next_comm", [FIELD_PARENT_PID] = "parent_pid",
		[FIELD_CHILD_PID] = "child_pid", [FIELD_CHILD_COMM] = "child_comm",
		[FIELD_TASK] = "pid", [FIELD_OLD_PID] = "old_pid", [FIELD_FILENAME] = "filename",
		[FIELD_OLD_COMM] = "oldcomm", [FIELD_NEW_COMM] = "newcomm",
		[FIELD_MODULE] = "name", [FIELD_CLONE_FLAGS] = "clone_flags",
		[FIELD_COMM] = "comm",
	};
	int i;

	k->event = ev;
	k->is_user = !strncmp(ev->name, "user_", 5);
	k->defines = strstr(ev->name, "_def");
	for (i = 0; i < NR_FIELDS; i++)
		k->field[i] = names[i] ? tep_find_any_field(ev, names[i]) : NULL;
}

struct tep_format_field cpu_field = { .name = (char *)"cpu" };

/* False if the event has no such field, or the record ends before that. @i: in an array */
static bool read_at(struct record *r, const struct tep_format_field *f, int size, u32 i, u64 *n)
{
	int offset;

	if (!f)
		return false;
	if (f == &cpu_field) {
		*n = r->rec->cpu;
		return true;
	}
	offset = f->offset + i * size;
	if (offset < 0 || size < 0 || offset > r->rec->size - size) {
		r->cut = true;
		return false;
	}
	*n = tep_read_number(r->kind->event->tep, (char *)r->rec->data + offset, size);
	return true;
}

bool field_number(struct record *r, const struct tep_format_field *f, u64 *n)
{
	return read_at(r, f, f ? f->size : 0, 0, n);
}

/* The number of a field that may be below 0, and is of fewer bits then. */
long long signed_number(const struct tep_format_field *f, u64 n)
{
	u32 unused = n && f->flags & TEP_FIELD_IS_SIGNED ? 64 - 8 * f->size : 0;

	return (long long)(n << unused) >> unused;
}

bool get_number(struct record *r, enum field which, u64 *n)
{
	return field_number(r, r->kind->field[which], n);
}

static int long_size(const struct record *r)
{
	return tep_get_long_size(r->kind->event->tep) == 4 ? 4 : 8;
}

/* An array without a length goes on to the end of the record. A string may be elsewhere in it. */
bool field_bytes(struct record *r, const struct tep_format_field *f, const char **bytes, u32 *len)
{
	int offset = f ? f->offset : -1, size = f ? f->size : 0;
	u64 place;

	if (f && f->flags & TEP_FIELD_IS_DYNAMIC) {
		if (!field_number(r, f, &place))
			return false;
		offset = place & 0xffff;
		size = place >> 16 & 0xffff;
		offset += f->flags & TEP_FIELD_IS_RELATIVE ? f->offset + f->size : 0;
	}
	if (offset < 0 || offset > r->rec->size || size > r->rec->size - offset)
		return false;
	*bytes = (const char *)r->rec->data + offset;
	*len = size > 0 ? size : r->rec->size - offset;
	return true;
}

bool get_bytes(struct record *r, enum field which, const char **bytes, u32 *len)
{
	return field_bytes(r, r->kind->field[which], bytes, len);
}

/* "" if there is none. */
void get_text(struct record *r, enum field which, char *text, size_t size)
{
	const char *bytes = "";
	u32 len = 0;

	get_bytes(r, which, &bytes, &len);
	snprintf(text, size, "%.*s", (int)len, bytes);
}

static bool read_part(struct record *r, enum field which, u64 ip, struct parts *parts)
{
	u64 id;

	if (!get_number(r, which, &id) || id > INT32_MAX)
		return false;
	parts->ip[parts->nr] = ip;
	parts->id[parts->nr++] = id;
	return true;
}

/* False if there are none. Between two parts is the address that an interrupt has hit. */
bool read_parts(struct record *r, struct parts *parts)
{
	u64 ip = 0, outer2_ip;

	parts->nr = 0;
	if (r->kind->field[FIELD_IP] && !get_number(r, FIELD_IP, &ip))
		return false;
	if (!r->kind->field[FIELD_OUTER_ID])
		return read_part(r, FIELD_ID, ip, parts);
	if (!read_part(r, FIELD_ID, 0, parts) || !read_part(r, FIELD_OUTER_ID, ip, parts))
		return false;
	if (!r->kind->field[FIELD_OUTER2_ID])
		return true;
	return get_number(r, FIELD_OUTER2_IP, &outer2_ip) &&
	       read_part(r, FIELD_OUTER2_ID, outer2_ip, parts);
}

/*
 * Returns their number, or -1. user_stack has no size, and ends with a 0. Before Linux 5.2, a stack
 * ends with an entry of ones.
 */
int read_frames(struct record *r, u64 *ips)
{
	const struct tep_format_field *f = r->kind->field[FIELD_CALLER];
	bool sized = r->kind->field[FIELD_SIZE];
	u64 nr;
	u32 i;

	if (!f || f->offset < 0 || f->offset > r->rec->size)
		return -1;
	nr = (r->rec->size - f->offset) / long_size(r);
	if (sized && (!get_number(r, FIELD_SIZE, &nr) || nr > MAX_DEPTH))
		return -1;
	for (i = 0; i < nr && i < MAX_DEPTH; i++) {
		if (!read_at(r, f, long_size(r), i, &ips[i]))
			return -1;
		if (!sized && !ips[i])
			break;
	}
	if (i && !r->kind->defines && ips[i - 1] == UINT64_MAX >> (64 - 8 * long_size(r)))
		i--;
	return i;
}

/* Returns the number of its stack, 0 if it has none. */
u32 read_stack(struct record *r, struct ids *k, u32 in, u64 epoch)
{
	bool user = r->kind->is_user;
	struct parts parts;
	u64 ips[MAX_DEPTH];
	int nr;

	if (r->kind->field[FIELD_ID])
		return read_parts(r, &parts) ? stack_of_parts(k, in, user, epoch, &parts) : 0;
	nr = read_frames(r, ips);
	return nr > 0 ? stack_of_frames(k, user, epoch, ips, nr) : 0;
}

/* stack_def, user_stack_def. Returns 1 if the id was another stack before, or an error. */
int read_definition(struct record *r, struct ids *k, u32 in)
{
	u64 ips[MAX_DEPTH], id;
	int nr = read_frames(r, ips);

	/* Below what an interrupt has hit, there may be no more frames of user space. */
	if (nr < !r->kind->is_user || !get_number(r, FIELD_ID, &id) || id > INT32_MAX)
		return -EINVAL;
	return !define_id(k, in, r->kind->is_user, id, add_frames(k, r->kind->is_user, ips, nr));
}

/* user_file_def: a file, by its id. Returns our number, 0 if there is none. */
u32 read_file_def(struct record *r, struct ids *k, u32 in, u32 *file_id)
{
	struct build_id id = {};
	const char *bytes, *path;
	u64 nr, id_size;
	u32 len, object;

	if (!get_number(r, FIELD_FILE_ID, &nr) || !is_file_id(nr) ||
	    !get_number(r, FIELD_ID_SIZE, &id_size) ||
	    !get_bytes(r, FIELD_BUILD_ID, &bytes, &len) || id_size > len || len > MAX_BUILD_ID)
		return 0;
	id.len = id_size;
	memcpy(id.bytes, bytes, id.len);
	if (!get_bytes(r, FIELD_PATH, &path, &len) || !memchr(path, 0, len))
		return 0;
	*file_id = nr;
	object = get_object(k->users, path, &id);
	define_file(k, in, nr, object);
	return object;
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Reads stack_map_bin, of either byte order.
 *
 * No count in the input is trusted for an allocation: memory grows with the data. The first damage
 * is told with its offset, and nothing is read behind it. The map keeps the stacks before it.
 */
#include <byteswap.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include "stackmap.h"

#define MAP_MAGIC	0x464D5342
#define MAP_VERSION	2
#define SECTION_FILES	5
#define FILE_ID_SIZE	20	/* room for the build id of a file */
#define RECORD_USER	1U
#define RECORD_BY_FILE	2U
#define RECORD_FLAGS	(RECORD_USER | RECORD_BY_FILE)
#define MAX_PATH	65536	/* of a file, with escapes */

struct reader {
	struct map	*map;
	const char	*buf;
	u64		off;		/* of the next byte */
	u64		len;
	bool		swap;
	bool		bad;		/* damage was told */
	u32		unknown;	/* flags of stacks: newer kernels may have more */
};

#define damaged(r, at, fmt, ...)						\
do {										\
	struct reader *r_ = (r);						\
										\
	if (!r_->bad)								\
		complain("%s: byte %llu: " fmt, r_->map->name, (u64)(at),		\
			 ##__VA_ARGS__);					\
	r_->bad = true;								\
} while (0)

/* Behind damage, there are zeros. @buf: NULL to skip the bytes */
static void get(struct reader *r, void *buf, u64 len, const char *what)
{
	if (len > r->len - r->off)
		damaged(r, r->len, "truncated in %s", what);
	if (buf && r->bad)
		memset(buf, 0, len);
	else if (buf)
		memcpy(buf, r->buf + r->off, len);
	r->off += r->bad ? 0 : len;
}

static u32 get_word(struct reader *r, const char *what)
{
	u32 word;

	get(r, &word, sizeof(word), what);
	return r->swap ? bswap_32(word) : word;
}

static void get_longs(struct reader *r, u64 *longs, u32 nr, const char *what)
{
	u32 i;

	get(r, longs, nr * sizeof(*longs), what);
	for (i = 0; r->swap && i < nr; i++)
		longs[i] = bswap_64(longs[i]);
}

/* Bytes are padded to 8. */
static void get_padded(struct reader *r, void *buf, u32 len, const char *what)
{
	get(r, buf, len, what);
	get(r, NULL, -(u64)len % 8, what);
}

/* What it is, if that is known; or NULL. */
const char *known_file(const char *buf, u64 len)
{
	static const char * const files[][2] = {
		{ "\3757zXZ", "compressed (xz -d)" }, { "\x1f\x8b", "compressed (gzip -d)" },
		{ "\x28\xb5\x2f\xfd", "compressed (zstd -d)" }, { "BZh", "compressed (bzip2 -d)" },
		{ DAT_MAGIC, "a trace.dat, which is read from a file only" },
	};
	size_t i, n;

	for (i = 0; i < ARRAY_SIZE(files); i++) {
		n = strlen(files[i][0]);
		if (len >= n && !memcmp(buf, files[i][0], n))
			return files[i][1];
	}
	return NULL;
}

static void read_header(struct reader *r, u32 *nr_stacks, u32 *nr_sections)
{
	static const char what[] = "the header";
	const char *known = known_file(r->buf, r->len);
	u32 magic = get_word(r, what), version;

	if (known)
		damaged(r, 0, "this is %s", known);
	r->swap = magic == bswap_32(MAP_MAGIC);
	version = get_word(r, what);
	*nr_stacks = get_word(r, what);
	*nr_sections = get_word(r, what);
	if (magic != MAP_MAGIC && !r->swap)
		damaged(r, 0, "bad magic %#x, this is no stack_map_bin", magic);
	else if (version != MAP_VERSION)
		damaged(r, 4, "version %u, only %u is known", version, MAP_VERSION);
}

/* The caller fills in the rest. */
struct stack *map_add(struct map *m, const u64 *ips, u32 nr)
{
	struct stack *s = APPEND(m->stacks, m->nr_stacks);

	m->ips = grow(m->ips, m->nr_ips, nr, sizeof(*m->ips));
	*s = (struct stack) { .nr = nr, .first = m->nr_ips };
	if (nr)
		memcpy(m->ips + m->nr_ips, ips, nr * sizeof(*ips));
	m->nr_ips += nr;
	return s;
}

static void read_stack(struct reader *r)
{
	static const char what[] = "the head of a record";
	u64 start = r->off;
	u32 id = get_word(r, what), nr = get_word(r, what), ref = get_word(r, what);
	u32 flags = get_word(r, what), i;
	u64 ips[MAX_DEPTH];
	struct stack *s;

	r->unknown |= flags & ~RECORD_FLAGS;
	flags &= RECORD_FLAGS;
	if (id > INT32_MAX)
		damaged(r, start, "stack_id %#x is negative", id);
	if (!nr && !flags)
		damaged(r, start + 4, "stack_id %u has no frames", id);
	if (nr > MAX_DEPTH)
		damaged(r, start + 4, "stack_id %u has %u frames, ftrace records at most %u", id,
			nr, MAX_DEPTH);
	get_longs(r, ips, r->bad ? 0 : nr, "the frames of a record");
	if (r->bad)
		return;
	for (i = 0; flags == RECORD_USER && i < nr; i++)
		ips[i] = address_word(ips[i]);
	s = map_add(r->map, ips, nr);
	s->id = id;
	s->ref = ref;
	r->map->nr_full += ref == UINT32_MAX;
	s->val[VAL_EVENTS] = ref;
	s->nr_user = flags ? nr : 0;
	s->user = flags;
	r->map->nr_user_stacks += s->user;
}

static void read_file(struct reader *r, const char *what)
{
	struct map *m = r->map;
	char path[MAX_PATH + 1];
	struct build_id id = {};
	u64 start = r->off;
	u32 file, len;

	file = get_word(r, what);
	id.len = get_word(r, what);
	if (!is_file_id(file) || id.len > FILE_ID_SIZE)
		damaged(r, start, "file %u with a build id of %zu bytes", file, id.len);
	get(r, id.bytes, FILE_ID_SIZE, what);
	len = get_word(r, what);
	if (len > MAX_PATH)
		damaged(r, start, "file %u with a path of %u bytes", file, len);
	if (r->bad)
		return;
	memset(id.bytes + id.len, 0, sizeof(id.bytes) - id.len);
	get_padded(r, path, len, what);
	path[len] = '\0';
	if (!r->bad)
		pool_find(&m->files, file, 0)->value = get_object(&m->sym.users, path, &id);
}

static void read_files(struct reader *r, u64 start, u32 len)
{
	u64 end = r->off + len;

	while (!r->bad && r->off < end)
		read_file(r, "the files of user space");
	if (r->off != end)
		damaged(r, start + 4, "the files of user space have %u bytes", len);
}

/* From the kernel's numbers to ours. What has no file stays an address. */
static void translate_stack(struct map *m, const struct stack *s)
{
	u64 *word, file;

	for (word = m->ips + s->first; word < m->ips + s->first + s->nr; word++) {
		if (!word_object(*word))
			continue;
		file = word_file_id(*word, s->id);
		*word = make_word(pool_find(&m->files, file, 0)->value, *word & OFFSET_MASK);
	}
}

/* Newer kernels may have more sections. */
static void read_section(struct reader *r)
{
	struct map *m = r->map;
	const struct {
		void		*to;
		u32		min;
		u32		max;
		const char	*what;
	} known[] = {
		{ NULL, 0, UINT32_MAX, "an unknown section" },
		{ &m->text, 8, 8, "the address of _text" },
		{ m->build_id.bytes, 1, MAX_BUILD_ID, "the build id" },
		{ m->release, 0, MAX_RELEASE - 1, "the kernel release" },
		{ &m->split, 8, 8, "the number of split stacks" },
	}, *k;
	u64 start = r->off;
	u32 type = get_word(r, "the head of a section"), len = get_word(r, "the head of a section");

	if (type == SECTION_FILES) {
		read_files(r, start, len);
		return;
	}
	if (!r->bad && (!type || type >= ARRAY_SIZE(known)))
		note("%s: byte %llu: skipped a section of unknown type %u", m->name, start, type);
	k = &known[type < ARRAY_SIZE(known) ? type : 0];
	if (len < k->min || len > k->max)
		damaged(r, start + 4, "%s has %u bytes", k->what, len);
	else if (k->min == 8)
		get_longs(r, k->to, 1, k->what);
	else
		get_padded(r, k->to, len, k->what);
	if (type == 2 && !r->bad)
		m->build_id.len = len;
}

int read_map(struct map *m, const char *buf, size_t len)
{
	struct reader r = { .map = m, .buf = buf, .len = len };
	u32 nr_stacks, nr_sections;
	struct stack *s;

	m->values[VAL_EVENTS] = (struct value_type) { "events", "count" };
	read_header(&r, &nr_stacks, &nr_sections);
	for (; !r.bad && nr_stacks; nr_stacks--)
		read_stack(&r);
	if (r.unknown)
		note("%s: ignored unknown flags %#x of stacks", m->name, r.unknown);
	for (; !r.bad && nr_sections; nr_sections--)
		read_section(&r);
	if (r.off < r.len)
		damaged(&r, r.off, "more bytes after the last section");
	for (s = m->stacks; s != stacks_end(m); s++) {
		if (s->user)
			translate_stack(m, s);
	}
	return r.bad ? -EINVAL : 0;
}

void map_free_stacks(struct map *m)
{
	users_free(&m->sym.users);
	free(m->stacks);
	free(m->ips);
	pool_free(&m->files);
	pool_free(&m->weights);
	pool_free(&m->owners);
	free(m->shares);
	pool_free(&m->sym.modules);
	free(m->name);
	free(m->dir);
}

const char *read_error(void)
{
	return errno != ESTALE ? strerror(errno) :
	       "the map was reset or replaced each time it was read";
}

/* The read fails with ESTALE if the map was reset or replaced meanwhile. Stacks of before stay. */
static int read_map_file(struct map *m, const char *path)
{
	char *buf __free(pointer) = NULL;
	int tries = 0;
	size_t len;

	do {
		buf = slurp(path, &len);
	} while (!buf && errno == ESTALE && ++tries < MAX_READS);
	if (buf)
		return read_map(m, buf, len);
	complain("%s: %s", path, read_error());
	return -EIO;
}

/* Others may take their place. Symbols and the texts of frames stay. */
void map_drop_stacks(struct map *m)
{
	m->nr_stacks = 0;
	m->nr_user_stacks = 0;
	m->nr_full = 0;
	m->nr_ips = 0;
}

/* The live map as it is now. */
int reload_map(struct map *m)
{
	map_drop_stacks(m);
	return read_map_file(m, m->name);
}

/* @path: "-", a file, or a directory (of "save" or of a trace instance). */
int load_map(struct map *m, const char *path)
{
	struct statfs fs;
	struct stat st;

	if (!strcmp(path, "-")) {
		m->name = copy_string("stdin");
		return read_map_file(m, path);
	}
	if (is_directory(path)) {
		m->dir = copy_string(path);
		m->name = format("%s/stack_map_bin", path);
	} else {
		m->name = copy_string(path);
	}
	m->live = !statfs(m->name, &fs) && fs.f_type == TRACEFS_MAGIC;
	if (!m->live && !stat(m->name, &st) && S_ISREG(st.st_mode))
		m->saved = st.st_mtime;
	return read_map_file(m, m->name);
}

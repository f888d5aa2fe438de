// SPDX-License-Identifier: GPL-2.0
/*
 * Reads stack_map_bin, of either byte order. The input need not be seekable.
 *
 * No count in the input is trusted for an allocation: memory grows with the data. An error is
 * one line with the offset, and the map keeps the stacks before it.
 */
#include <byteswap.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "map.h"
#include "user.h"
#include "util.h"

struct reader {
	FILE		*f;
	struct map	*map;
	u64	off;		/* of the next byte */
	bool		swap;
};

#define damaged(r, at, fmt, ...)						\
({										\
	u64 at_ = (at);								\
										\
	complain("%s: byte %llu: " fmt, (r)->map->name, at_, ##__VA_ARGS__);	\
	-EINVAL;								\
})

/* ESTALE: the map was reset or replaced meanwhile. The caller tries again. */
static int get(struct reader *r, void *buf, size_t len, const char *what)
{
	size_t got = fread(buf, 1, len, r->f);

	r->off += got;
	if (got == len)
		return 0;
	if (!ferror(r->f))
		return damaged(r, r->off, "truncated in %s", what);
	if (errno == ESTALE)
		return -ESTALE;
	return damaged(r, r->off, "%s", strerror(errno));
}

static int get_words(struct reader *r, u32 *words, size_t nr, const char *what)
{
	int ret = get(r, words, nr * sizeof(*words), what);
	size_t i;

	for (i = 0; !ret && r->swap && i < nr; i++)
		words[i] = bswap_32(words[i]);
	return ret;
}

static int get_longs(struct reader *r, u64 *longs, size_t nr, const char *what)
{
	int ret = get(r, longs, nr * sizeof(*longs), what);
	size_t i;

	for (i = 0; !ret && r->swap && i < nr; i++)
		longs[i] = bswap_64(longs[i]);
	return ret;
}

/* Another patch series writes the second one: the same format without sections. */
static const struct map_format {
	u32	magic;
	u32	version;
	u32	max_sections;
} formats[] = {
	{ 0x464D5342, 2, MAX_SECTIONS },
	{ 0x46534D42, 1, 0 },
};

static const struct map_format *find_format(struct reader *r, u32 magic)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(formats); i++) {
		r->swap = magic == bswap_32(formats[i].magic);
		if (r->swap || magic == formats[i].magic)
			return &formats[i];
	}
	return NULL;
}

static int read_header(struct reader *r, u32 *nr_stacks, u32 *nr_sections)
{
	const struct map_format *fmt;
	u32 head[3], magic;
	int ret;

	ret = get_words(r, &magic, 1, "the header");
	if (ret)
		return ret;
	fmt = find_format(r, magic);
	if (!fmt)
		return damaged(r, 0, "bad magic %#x, this is no stack_map_bin", magic);

	ret = get_words(r, head, ARRAY_SIZE(head), "the header");
	if (ret)
		return ret;
	if (head[0] != fmt->version)
		return damaged(r, 4, "version %u, only %u is known", head[0], fmt->version);
	if (head[2] > fmt->max_sections)
		return damaged(r, 12, "%u sections, a map has at most %u", head[2],
			       fmt->max_sections);
	*nr_stacks = head[1];
	*nr_sections = head[2];
	return 0;
}

static int read_record(struct reader *r)
{
	struct map *m = r->map;
	u64 start = r->off;
	u32 head[4];
	int ret;

	ret = get_words(r, head, ARRAY_SIZE(head), "the head of a record");
	if (ret)
		return ret;
	if (head[0] > INT32_MAX)
		return damaged(r, start, "stack_id %#x is negative", head[0]);
	if (!head[1] && !head[3])
		return damaged(r, start + 4, "stack_id %u has no frames", head[0]);
	if (head[1] > MAX_DEPTH)
		return damaged(r, start + 4, "stack_id %u has %u frames, ftrace records at most %u",
			       head[0], head[1], MAX_DEPTH);
	if (head[3] & ~(RECORD_USER | RECORD_BY_FILE))
		return damaged(r, start + 12, "stack_id %u: %#x where 0 belongs", head[0], head[3]);

	m->ips = grow(m->ips, &m->room_ips, m->nr_ips + head[1] + 1, sizeof(*m->ips));
	ret = get_longs(r, m->ips + m->nr_ips, head[1], "the frames of a record");
	if (ret)
		return ret;

	m->stacks = grow(m->stacks, &m->room_stacks, m->nr_stacks + 1, sizeof(*m->stacks));
	m->stacks[m->nr_stacks++] = (struct stack) {
		.id = head[0], .nr = head[1], .ref = head[2], .first = m->nr_ips,
		.nr_user = head[3] ? head[1] : 0, .user = head[3],
		.by_file = head[3] & RECORD_BY_FILE,
	};
	m->nr_ips += head[1];
	return 0;
}

static int skip(struct reader *r, u64 len, const char *what)
{
	char buf[4096];
	int ret = 0;

	while (len && !ret) {
		size_t n = len < sizeof(buf) ? len : sizeof(buf);

		ret = get(r, buf, n, what);
		len -= n;
	}
	return ret;
}

static int section_text(struct reader *r, u64 start, u32 len)
{
	if (len != sizeof(r->map->text))
		return damaged(r, start + 4, "the _text section has %u bytes, not 8", len);
	return get_longs(r, &r->map->text, 1, "the _text section");
}

static int section_build_id(struct reader *r, u64 start, u32 len)
{
	int ret;

	if (!len || len > MAX_BUILD_ID)
		return damaged(r, start + 4, "a build id of %u bytes", len);
	ret = get(r, r->map->build_id.bytes, len, "the build id");
	if (!ret)
		r->map->build_id.len = len;
	return ret;
}

static int section_release(struct reader *r, u64 start, u32 len)
{
	if (len >= MAX_RELEASE)
		return damaged(r, start + 4, "a kernel release of %u bytes", len);
	return get(r, r->map->release, len, "the kernel release");
}

static int section_split(struct reader *r, u64 start, u32 len)
{
	if (len != sizeof(r->map->split))
		return damaged(r, start + 4, "the number of split stacks has %u bytes, not 8", len);
	return get_longs(r, &r->map->split, 1, "the number of split stacks");
}

/* A string or bytes, padded to 8 bytes. */
static int get_padded(struct reader *r, char *buf, u32 len, const char *what)
{
	int ret = get(r, buf, len, what);

	buf[len] = '\0';
	return ret ? ret : skip(r, -(u64)len % 8, what);
}

/* A table of objects by the kernel's numbers. */
void set_number(u32 **numbers, size_t *nr, size_t *room, u32 number, u32 object)
{
	*numbers = grow(*numbers, room, number + 1, sizeof(**numbers));
	if (number >= *nr) {
		memset(*numbers + *nr, 0, (number + 1 - *nr) * sizeof(**numbers));
		*nr = number + 1;
	}
	(*numbers)[number] = object;
}

static int read_object(struct reader *r)
{
	static const char what[] = "the objects of user space";
	struct map *m = r->map;
	char bytes[MAX_BUILD_ID + 1], path[MAX_PATH + 1];
	struct build_id id = {};
	u64 start = r->off, bias;
	u32 head[2], tail[2], object;
	int ret;

	ret = get_words(r, head, 2, what);
	if (!ret && (!head[0] || head[0] >= OBJECT_LIMIT || head[1] > MAX_BUILD_ID))
		return damaged(r, start, "object %u with a build id of %u bytes", head[0], head[1]);
	if (!ret)
		ret = get_longs(r, &bias, 1, what);
	if (!ret)
		ret = get_words(r, tail, 2, what);
	if (!ret && (tail[0] > MAX_PATH || tail[1]))
		return damaged(r, start, "object %u with a path of %u bytes", head[0], tail[0]);
	if (!ret)
		ret = get_padded(r, bytes, head[1], what);
	if (!ret)
		ret = get_padded(r, path, tail[0], what);
	if (ret)
		return ret;
	id.len = head[1];
	memcpy(id.bytes, bytes, id.len);
	object = get_object(&m->users, path, &id);
	set_number(&m->numbers, &m->nr_numbers, &m->room_numbers, head[0], object);
	if (object) {
		m->users.objects[object - 1]->bias = bias;
		m->users.objects[object - 1]->has_bias = id.len;
	}
	return 0;
}

static int section_objects(struct reader *r, u64 start, u32 len)
{
	u64 end = r->off + len;
	int ret = 0;

	while (!ret && r->off < end)
		ret = read_object(r);
	if (!ret && r->off != end)
		ret = damaged(r, start + 4, "the objects of user space have %u bytes", len);
	return ret;
}

/* From the kernel's numbers to ours. What has no object stays an address. */
static void translate_stack(struct map *m, const struct stack *s)
{
	u64 *word = m->ips + s->first;
	u32 i, nr;

	for (i = 0; i < s->nr; i++, word++) {
		nr = word_object(*word);
		if (nr)
			*word = make_word(nr < m->nr_numbers ? m->numbers[nr] : 0,
					  *word & OFFSET_MASK);
	}
}

static void translate_stacks(struct map *m, size_t first)
{
	size_t i;

	for (i = first; i < m->nr_stacks; i++) {
		if (m->stacks[i].by_file)
			translate_stack(m, &m->stacks[i]);
	}
}

/* Newer kernels may have more sections. */
static int section_unknown(struct reader *r, u64 start, u32 type, u32 len)
{
	note("%s: byte %llu: skipped a section of unknown type %u", r->map->name, start,
	     type);
	return skip(r, len, "an unknown section");
}

static int read_section(struct reader *r)
{
	u64 start = r->off;
	u32 head[2];
	int ret;

	ret = get_words(r, head, ARRAY_SIZE(head), "the head of a section");
	if (ret)
		return ret;
	switch (head[0]) {
	case 1:
		ret = section_text(r, start, head[1]);
		break;
	case 2:
		ret = section_build_id(r, start, head[1]);
		break;
	case 3:
		ret = section_release(r, start, head[1]);
		break;
	case 4:
		ret = section_split(r, start, head[1]);
		break;
	case 5:
		ret = section_objects(r, start, head[1]);
		break;
	default:
		ret = section_unknown(r, start, head[0], head[1]);
	}
	return ret ? ret : skip(r, -(u64)head[1] % 8, "the padding of a section");
}

int read_map(struct map *m, FILE *f)
{
	struct reader r = { .f = f, .map = m };
	u32 nr_stacks = 0, nr_sections = 0, i;
	size_t first = m->nr_stacks;
	int ret;

	ret = read_header(&r, &nr_stacks, &nr_sections);
	for (i = 0; !ret && i < nr_stacks; i++)
		ret = read_record(&r);
	for (i = 0; !ret && i < nr_sections; i++)
		ret = read_section(&r);
	if (!ret && getc(f) != EOF)
		ret = damaged(&r, r.off, "more bytes after the last section");
	translate_stacks(m, first);
	return ret;
}

void forget_stacks(struct map *m)
{
	m->nr_stacks = 0;
	m->nr_ips = 0;
}

/* @path: "-", a file, or a directory (of "save" or of a trace instance). */
static int open_map(struct map *m, const char *path, FILE **f)
{
	struct statfs fs;
	struct stat st;

	if (!strcmp(path, "-")) {
		m->name = copy_string("stdin");
		*f = stdin;
		return 0;
	}
	if (!stat(path, &st) && S_ISDIR(st.st_mode)) {
		m->dir = copy_string(path);
		m->name = format("%s/stack_map_bin", path);
	} else {
		m->name = copy_string(path);
	}
	*f = fopen(m->name, "re");
	if (!*f) {
		complain("%s: %s", m->name, strerror(errno));
		return -errno;
	}
	m->live = !fstatfs(fileno(*f), &fs) && fs.f_type == TRACEFS_MAGIC;
	if (!m->live && !fstat(fileno(*f), &st) && S_ISREG(st.st_mode))
		m->saved = st.st_mtime;
	return 0;
}

void complain_stale(const char *name)
{
	complain("%s: the map was reset or replaced each time it was read", name);
}

/* stdio would read a page at a time. */
static int read_stream(struct map *m, FILE *f)
{
	int ret;

	setvbuf(f, NULL, _IOFBF, 1 << 20);
	ret = read_map(m, f);
	if (f != stdin)
		fclose(f);
	return ret;
}

/* Reads the file in place of what was read before, until it is not replaced meanwhile. */
static int read_again(struct map *m, int ret, int tries)
{
	FILE *f;

	for (; ret == -ESTALE && tries < MAX_READS; tries++) {
		forget_stacks(m);
		f = fopen(m->name, "re");
		if (!f) {
			complain("%s: %s", m->name, strerror(errno));
			return -EIO;
		}
		ret = read_stream(m, f);
	}
	if (ret == -ESTALE)
		complain_stale(m->name);
	return ret;
}

/* The live map as it is now. Its symbols and the texts of its frames stay. */
int reload_map(struct map *m)
{
	return read_again(m, -ESTALE, 0);
}

/* The live map once more; the stacks that were read before stay. */
int load_more(struct map *m)
{
	size_t nr_stacks = m->nr_stacks, nr_ips = m->nr_ips;
	FILE *f = fopen(m->name, "re");
	int ret = -EIO;

	if (f)
		ret = read_stream(m, f);
	if (ret) {
		m->nr_stacks = nr_stacks;
		m->nr_ips = nr_ips;
	}
	return ret;
}

int load_map(struct map *m, const char *path)
{
	FILE *f;
	int ret;

	ret = open_map(m, path, &f);
	if (ret)
		return ret;
	ret = read_stream(m, f);
	return read_again(m, ret, f == stdin ? MAX_READS : 1);
}

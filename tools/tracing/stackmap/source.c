// SPDX-License-Identifier: GPL-2.0
/* Chooses the source of a map's symbols, and prints it. */
#include <unistd.h>

#include "stackmap.h"

static const char proc[] = "/proc/kallsyms";

/* The running kernel tells its own. "save" puts that of the kernel beside its files. */
static void kallsyms_build_id(const char *path, struct build_id *id)
{
	char *beside __free(pointer) = NULL, *buf __free(pointer) = NULL;
	bool running = !strcmp(path, proc);
	const char *slash = strrchr(path, '/');
	size_t len;

	beside = running ? copy_string("/sys/kernel/notes") :
		 format("%.*sbuild_id", slash ? (int)(slash + 1 - path) : 0, path);
	buf = slurp(beside, &len);
	if (buf && running)
		build_id_of_notes(buf, len, id);
	else if (buf)
		parse_build_id(buf, id);
}

static void add_source(struct map *m, const char *kind, const char *path)
{
	char *old __free(pointer) = m->sym.source;

	m->sym.source = format("%s%s%s %s", old ? old : "", old ? ", " : "", kind, path);
}

/* NULL if there is none. The running kernel may be the one that wrote a copy of the map. */
static char *own_kallsyms(const struct map *m, const struct map *sibling)
{
	char *saved __free(pointer) = format("%s/kallsyms", m->dir ? m->dir : "");
	struct build_id id = {};

	if (m->dir && !m->live)
		return access(saved, R_OK) ? NULL : copy_string(saved);
	kallsyms_build_id(proc, &id);
	if (m->live || (m->text && same_id(&m->build_id, &id)))
		return copy_string(proc);
	return sibling && same_id(&m->build_id, &sibling->build_id) ?
	       own_kallsyms(sibling, NULL) : NULL;
}

/* If the user has not named it, addresses are printed if it cannot be read. */
static int load_kallsyms(struct map *m, const struct map *sibling, const struct config *cfg)
{
	char *own __free(pointer) = own_kallsyms(m, sibling);
	const char *path = cfg->kallsyms ? cfg->kallsyms : own;
	struct build_id id = {};
	int ret;

	if (!path)
		return 0;
	kallsyms_build_id(path, &id);
	ret = check_build_id(m, &id, path, cfg);
	if (ret)
		return ret;
	ret = symtab_load(&m->sym.kallsyms, path) ?: cfg->kallsyms ? 0 : load_first_symbols(m);
	if (!ret)
		add_source(m, "kallsyms", path);
	else
		symtab_free(&m->sym.kallsyms);
	return cfg->kallsyms ? ret : 0;
}

/*
 * Under KASLR, symbols of another boot give wrong names. The kernel's own symbols can be moved to
 * the right place if the kernel is known to be the same.
 */
static int fit_kallsyms(struct map *m, const struct map *sibling, const struct config *cfg)
{
	bool same = sibling ? same_id(&m->build_id, &sibling->build_id) : !m->dir && !cfg->kallsyms;
	struct symtab *t = &m->sym.kallsyms;

	if (!m->text || !t->text || m->text == t->text)
		return 0;
	if (!cfg->force && !same)
		return fail("%s: kallsyms of another boot: _text is at %#llx, not %#llx (--force)",
			    m->name, t->text, m->text);
	symtab_shift(t, m->text - t->text);
	return 0;
}

/* "save" puts it beside a map. */
static int load_user_maps(struct map *m)
{
	char *path __free(pointer) = format("%s/user_maps", m->dir ? m->dir : "");
	char *buf __free(pointer) = NULL;

	return !m->dir || m->live || access(path, R_OK) ? 0 :
	       load_lines(path, "user_maps", &buf, parse_user_line, &m->sym.users);
}

/* @sibling: with diff, the new map; the old one may use its symbols. */
int load_symbols(struct map *m, const struct map *sibling, const struct config *cfg)
{
	int ret;

	m->sym.users.symfs = cfg->symfs;
	m->sym.users.dir = m->dir;
	ret = load_user_maps(m) ?: load_kallsyms(m, sibling, cfg) ?:
	      fit_kallsyms(m, sibling, cfg);
	if (!ret && cfg->vmlinux)
		ret = HAS_LIBS ? vmlinux_load(m, cfg) : fail("%s: " WITHOUT_LIBS, cfg->vmlinux);
	if (!ret && cfg->vmlinux)
		add_source(m, "vmlinux", cfg->vmlinux);
	if (!m->sym.source)
		m->sym.source = copy_string("none, raw addresses (-k kallsyms or -v vmlinux)");
	return ret;
}

void map_free(struct map *m)
{
	frames_free(&m->sym);
	symtab_free(&m->sym.kallsyms);
	symtab_free(&m->sym.elfsyms);
	if (HAS_LIBS)
		vmlinux_free(m->sym.vmlinux);
	map_free_stacks(m);
	free(m->sym.source);
}

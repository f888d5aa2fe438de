// SPDX-License-Identifier: GPL-2.0
/* Chooses the source of a map's symbols, and prints it. */
#include <unistd.h>

#include "view.h"
#include "symbols.h"
#include "user.h"
#include "util.h"

/*
 * Under KASLR, symbols of another boot give wrong names. The kernel's own symbols can be moved to
 * the right place if the kernel is known to be the same.
 */
static int fit_kallsyms(struct map *m, const struct map *sibling, const struct config *cfg)
{
	struct symtab *t = &m->kallsyms;

	if (!m->text || !t->text || m->text == t->text)
		return 0;
	if (!cfg->force && (!sibling || !same_id(&m->build_id, &sibling->build_id))) {
		complain("%s: kallsyms of another boot: _text is at %#llx, not %#llx (--force)",
			 m->name, t->text, m->text);
		return -EINVAL;
	}
	symtab_shift(t, m->text - t->text);
	return 0;
}

static void add_source(struct map *m, const char *kind, const char *path)
{
	char *old __free(pointer) = m->source;

	m->source = format("%s%s%s %s", old ? old : "", old ? ", " : "", kind, path);
}

static int load_kallsyms(struct map *m, const char *path)
{
	int ret = symtab_load(&m->kallsyms, path);

	if (!ret)
		add_source(m, "kallsyms", path);
	else
		symtab_free(&m->kallsyms);
	return ret;
}

/* The running kernel may be the one that wrote a copy of the map. */
static bool is_running(const struct map *m)
{
	struct build_id id = {};

	running_build_id(&id);
	return m->text && same_id(&m->build_id, &id);
}

static const char proc[] = "/proc/kallsyms";

/* Not named by the user, so a failure is no error: addresses are printed. */
void load_own_kallsyms(struct map *m)
{
	char *path __free(pointer) = m->dir && !m->live ? format("%s/kallsyms", m->dir) :
				     copy_string(proc);

	if (m->live || (m->dir && !access(path, R_OK)))
		load_kallsyms(m, path);
	else if (is_running(m) && !symtab_load(&m->kallsyms, proc) && m->kallsyms.text == m->text)
		add_source(m, "kallsyms", proc);
	else
		symtab_free(&m->kallsyms);
}

/* "save" puts the build id of the kernel beside its files. The running kernel tells its own. */
static int check_beside(const struct map *m, const char *path, const struct config *cfg)
{
	char *beside __free(pointer) = NULL;
	const char *slash = strrchr(path, '/');
	struct build_id id = {};

	beside = format("%.*sbuild_id", slash ? (int)(slash + 1 - path) : 0, path);
	if (!strcmp(path, proc))
		running_build_id(&id);
	else
		load_build_id(beside, &id);
	return check_build_id(m, &id, path, cfg);
}

/* What "save" puts beside a map: the build id, which the map may lack, and user_maps. */
static int load_beside(struct map *m, const struct config *cfg)
{
	char *users __free(pointer) = format("%s/user_maps", m->dir);
	char *path __free(pointer) = format("%s/build_id", m->dir);
	int ret;

	if (!m->build_id.len)
		load_build_id(path, &m->build_id);
	ret = check_beside(m, path, cfg);
	return ret || m->live || access(users, R_OK) ? ret : load_users(&m->users, users);
}

static const char no_symbols[] =
	"none, raw addresses; give the kallsyms (-k) or the vmlinux (-v) of the map's kernel";

/* @sibling: with --diff, the new map; the old one may use its symbols. */
int load_symbols(struct map *m, const struct map *sibling, const struct config *cfg)
{
	int ret;

	m->users.symfs = cfg->symfs;
	ret = m->dir ? load_beside(m, cfg) : 0;
	if (!ret && cfg->kallsyms)
		ret = check_beside(m, cfg->kallsyms, cfg);
	if (!ret && cfg->kallsyms)
		ret = load_kallsyms(m, cfg->kallsyms);
	if (ret)
		return ret;
	if (!cfg->kallsyms)
		load_own_kallsyms(m);
	symtab_finish(&m->kallsyms);
	ret = fit_kallsyms(m, sibling, cfg);
	if (!ret && cfg->vmlinux) {
		ret = vmlinux_load(m, cfg);
		if (!ret)
			add_source(m, "vmlinux", cfg->vmlinux);
	}
	if (!m->source)
		m->source = copy_string(no_symbols);
	return ret;
}

void map_free(struct map *m)
{
	frames_free(m);
	symtab_free(&m->kallsyms);
	symtab_free(&m->elfsyms);
	vmlinux_free(m->vmlinux);
	map_free_stacks(m);
	free(m->source);
}

// SPDX-License-Identifier: GPL-2.0
/* Chooses the source of a map's symbols, and prints it. */
#include <unistd.h>

#include "frame.h"
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
	char *old = m->source;

	m->source = format("%s%s%s %s", old ? old : "", old ? ", " : "", kind, path);
	free(old);
}

static int load_kallsyms(struct map *m, const char *path)
{
	int ret = symtab_load(&m->kallsyms, path);

	if (!ret)
		add_source(m, "kallsyms", path);
	return ret;
}

static void drop_kallsyms(struct map *m)
{
	symtab_free(&m->kallsyms);
	m->kallsyms = (struct symtab) {};
}

/* For a copy of stack_map_bin without kallsyms: the running kernel may be the one that wrote it. */
static void load_running_kallsyms(struct map *m)
{
	struct build_id id = {};

	running_build_id(&id);
	if (!m->text || !same_id(&m->build_id, &id))
		return;
	if (symtab_load(&m->kallsyms, "/proc/kallsyms") || m->kallsyms.text != m->text)
		drop_kallsyms(m);
	else
		add_source(m, "kallsyms", "/proc/kallsyms");
}

/* Not named by the user, so a failure is no error: addresses are printed. */
void load_own_kallsyms(struct map *m)
{
	char *path = NULL;

	if (m->live)
		path = copy_string("/proc/kallsyms");
	else if (m->dir)
		path = format("%s/kallsyms", m->dir);
	if (!path || access(path, R_OK))
		load_running_kallsyms(m);
	else if (load_kallsyms(m, path))
		drop_kallsyms(m);
	free(path);
}

/* "save" puts the build id beside kallsyms. For the live kallsyms, ask the kernel. */
static int check_kallsyms(const struct map *m, const char *path, const struct config *cfg)
{
	const char *slash = strrchr(path, '/');
	struct build_id id = {};
	char *beside;

	beside = format("%.*sbuild_id", slash ? (int)(slash + 1 - path) : 0, path);
	if (!strcmp(path, "/proc/kallsyms"))
		running_build_id(&id);
	else
		load_build_id(beside, &id);
	free(beside);
	return check_build_id(m, &id, path, cfg);
}

/* If the map has no such section, use the file of "save". */
static int load_own_build_id(struct map *m, const struct config *cfg)
{
	struct build_id id = {};
	char *path;
	int ret;

	if (!m->dir)
		return 0;
	path = format("%s/build_id", m->dir);
	load_build_id(path, &id);
	ret = check_build_id(m, &id, path, cfg);
	if (!m->build_id.len)
		m->build_id = id;
	free(path);
	return ret;
}

static u64 text_base(const struct map *m, const struct config *cfg)
{
	if (cfg->text_base)
		return cfg->text_base;
	return m->text ? m->text : m->kallsyms.text;
}

static const char no_symbols[] =
	"none, raw addresses; give the kallsyms (-k) or the vmlinux (-v) of the map's kernel";

static int load_own_users(struct map *m, const struct config *cfg)
{
	char *path;
	int ret = 0;

	m->users.symfs = cfg->symfs;
	if (m->live || !m->dir)
		return 0;
	path = format("%s/user_maps", m->dir);
	if (!access(path, R_OK))
		ret = load_users(&m->users, path);
	free(path);
	return ret;
}

/* @sibling: with --diff, the new map; the old one may use its symbols. */
int load_symbols(struct map *m, const struct map *sibling, const struct config *cfg)
{
	size_t i;
	int ret;

	ret = load_own_build_id(m, cfg);
	for (i = 0; !ret && i < cfg->nr_kallsyms; i++) {
		ret = check_kallsyms(m, cfg->kallsyms[i], cfg);
		if (!ret)
			ret = load_kallsyms(m, cfg->kallsyms[i]);
	}
	if (!ret && !cfg->nr_kallsyms)
		load_own_kallsyms(m);
	if (!ret)
		ret = load_own_users(m, cfg);
	if (ret)
		return ret;

	symtab_finish(&m->kallsyms);
	ret = fit_kallsyms(m, sibling, cfg);
	if (!ret && cfg->vmlinux) {
		ret = vmlinux_load(m, cfg, text_base(m, cfg));
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
	users_free(&m->users);
	free(m->stacks);
	free(m->ips);
	free(m->numbers);
	free(m->name);
	free(m->dir);
	free(m->source);
}

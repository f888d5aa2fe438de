// SPDX-License-Identifier: GPL-2.0
/* Decides where the symbols of a map come from, and says so. */

static bool same_build(const struct map *a, const struct map *b)
{
	return a->build_id_len && a->build_id_len == b->build_id_len &&
	       !memcmp(a->build_id, b->build_id, a->build_id_len);
}

/*
 * Under KASLR the addresses of another boot would name other functions. The kernel's own symbols
 * can be moved into place if it is known that the kernel is the same.
 */
static int fit_kallsyms(struct map *m, const struct map *sibling, const struct config *cfg)
{
	struct symtab *t = &m->kallsyms;

	if (!m->text || !t->text || m->text == t->text)
		return 0;
	if (!cfg->force && (!sibling || !same_build(m, sibling))) {
		complain("%s: kallsyms are of another boot, _text is at %#llx, not %#llx (--force)",
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

/* Nobody asked for these by name: without them there are still addresses. */
static void load_own_kallsyms(struct map *m)
{
	char *path = NULL;

	if (m->live)
		path = copy_string("/proc/kallsyms");
	else if (m->dir)
		path = format("%s/kallsyms", m->dir);
	if (path && !access(path, R_OK) && load_kallsyms(m, path))
		m->kallsyms.nr = 0;
	free(path);
}

/* A map that has no section for it may come from a "save" that found it elsewhere. */
static void load_own_build_id(struct map *m)
{
	char *path = m->dir ? format("%s/build_id", m->dir) : NULL;
	FILE *f = path && !m->build_id_len ? fopen(path, "re") : NULL;

	while (f && m->build_id_len < MAX_BUILD_ID &&
	       fscanf(f, "%2hhx", &m->build_id[m->build_id_len]) == 1)
		m->build_id_len++;
	if (f)
		fclose(f);
	free(path);
}

static u64 text_base(const struct map *m, const struct config *cfg)
{
	if (cfg->text_base)
		return cfg->text_base;
	return m->text ? m->text : m->kallsyms.text;
}

/* @sibling: for the older of two maps, the newer one, whose symbols may serve both. */
static int load_symbols(struct map *m, const struct map *sibling, const struct config *cfg)
{
	int ret = 0;
	size_t i;

	load_own_build_id(m);
	for (i = 0; !ret && i < cfg->nr_kallsyms; i++)
		ret = load_kallsyms(m, cfg->kallsyms[i]);
	if (!cfg->nr_kallsyms)
		load_own_kallsyms(m);
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
		m->source = copy_string("none, raw addresses");
	return ret;
}

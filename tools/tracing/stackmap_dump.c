// SPDX-License-Identifier: GPL-2.0
/*
 * stackmap_dump - show the stacks of an ftrace stack map, and profiles of recordings with stacks
 *
 * The binary export (stack_map_bin) has ids, counts and addresses. This finds the names of the
 * addresses in kallsyms or in a vmlinux, and prints the stacks for people or for other tools. The
 * format is described in Documentation/trace/ftrace-stackmap.rst.
 *
 * The command decides what is read: a map, or a recording. In stackmap/, from the bottom up, files
 * of a line call only those of lines above it:
 *   util.c, pool.c, options.c	know nothing of stacks
 *   symtab.c, elf.c, user.c, frame.c, tracer.c	names of addresses
 *   map.c, source.c, ids.c	read a map, find its symbols; what ids stand for
 *   profile.h			tells how a recording (trace.dat) becomes stacks with weights
 *   select.c			selects stacks, and merges those with the same functions
 *   print.c, report.c, diff.c, pprof.c, perf.c, annotate.c	forms of output
 *   config.c, read.c		the commands that read, and their options
 *   record.h			names the files of what works on the running kernel
 */
#include <signal.h>
#include <unistd.h>

#include "stackmap/config.h"
#include "stackmap/record.h"

const char * const program = "stackmap_dump";

static const struct command * const commands[] = {
	&record_command, &save_command, &stacks_command, &report_command, &export_command,
	&diff_command, &map_command, &top_command, &annotate_command,
};

static void print_commands(FILE *f)
{
	size_t i;

	fputs("Usage: stackmap_dump COMMAND [OPTIONS] ...\n"
	      "       stackmap_dump FILE | DIR [OPTIONS]\n"
	      "\n"
	      "Show the stacks of ftrace stack maps, and profiles of recordings with stacks. Without a\n"
	      "COMMAND, it is \"stacks\" of a recording or a directory, and \"map\" of a map.\n"
	      "\n"
	      "Commands:\n", f);
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(f, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
	fputs("\n"
	      "Options:\n"
	      "  -V, --version          print the version\n"
	      "  -h, --help             print this text; behind a COMMAND: what it does, its options\n"
	      "\n"
	      "Exit status: 0 on success, 1 on bad input or failure, 2 on wrong usage.\n"
	      "\n"
	      "Example, the functions where make waits:\n"
	      "  stackmap_dump record -- make && stackmap_dump report --weight off-cpu\n", f);
}

/* A full disk or a closed pipe is a failure. */
static int finish_output(int ret)
{
	if (!fflush(stdout) && !ferror(stdout))
		return ret;
	complain("%s: %s", cfg.output ? cfg.output : "stdout", strerror(errno));
	return 1;
}

static bool is_word(const char *arg)
{
	return *arg != '-' || !arg[1];
}

/* What the file is decides. It may stand before the options, or behind them. */
static const struct command *command_of_file(int argc, char **argv)
{
	const char *path = is_word(argv[1]) ? argv[1] : argv[argc - 1];

	return is_recording(path) || is_directory(path) ? &stacks_command : &map_command;
}

static const struct command *find_command(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		if (!strcmp(name, commands[i]->name))
			return commands[i];
	}
	return NULL;
}

static int run_file(int argc, char **argv)
{
	const struct command *cmd = command_of_file(argc, argv);
	int first = parse_choices(cmd, argc, argv, 1);
	const char *path = argv[first];

	if (!path)
		usage("name a command, or a file", NULL);
	if (!strchr(path, '/') && strcmp(path, "-") && access(path, F_OK))
		usage("no such command or file (options come behind the command)", path);
	return cmd->run(cmd, argc - first, argv + first);
}

static bool is_one_of(const char *arg, const char *a, const char *b, const char *c)
{
	return !strcmp(arg, a) || !strcmp(arg, b) || !strcmp(arg, c);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	const struct command *cmd;
	bool asks = false;
	int first;

	/* While it is ignored, programs have no status. */
	signal(SIGCHLD, SIG_DFL);
	if (!strcmp(name, "help") && argc > 2) {
		name = argv[2];
		argv[2] = (char *)"--help";
		asks = true;
	}
	cmd = find_command(name);
	if (argc < 2) {
		print_commands(stderr);
		return 2;
	}
	if (is_one_of(name, "-h", "--help", "help")) {
		print_commands(stdout);
		return finish_output(0);
	}
	if (is_one_of(name, "-V", "--version", "version")) {
		puts("stackmap_dump 3.0");
		return finish_output(0);
	}
	if (!cmd && asks)
		usage("no such command", name);
	if (!cmd)
		return finish_output(run_file(argc, argv));
	first = parse_choices(cmd, argc, argv, 2);
	return finish_output(cmd->run(cmd, argc - first, argv + first));
}

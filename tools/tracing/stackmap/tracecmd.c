// SPDX-License-Identifier: GPL-2.0
/* Runs trace-cmd. */
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record.h"
#include "util.h"

static bool can_run(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* As execvp() looks for it. */
bool find_program(const char *name)
{
	const char *dir = getenv("PATH"), *end;
	bool found = false;
	char *path;

	if (strchr(name, '/'))
		return can_run(name);
	for (dir = dir ? dir : "/bin:/usr/bin"; !found && dir; dir = *end ? end + 1 : NULL) {
		end = strchrnul(dir, ':');
		path = format("%.*s%s%s", (int)(end - dir), dir, end > dir ? "/" : "", name);
		found = can_run(path);
		free(path);
	}
	return found;
}

/*
 * In a process group of its own, which Ctrl-C does not reach. If the tool is killed, it is told to
 * end. @dir: where it puts its files. @silent: without its messages.
 */
pid_t start_program(const struct args *args, const char *dir, bool silent, const sigset_t *signals)
{
	pid_t pid = fork();
	int null;

	if (pid < 0)
		complain("fork: %s", strerror(errno));
	if (pid)
		return pid;
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGINT);
	if (chdir(dir))
		_exit(127);
	null = open("/dev/null", O_RDWR);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	if (silent)
		dup2(null, STDERR_FILENO);
	close(null);
	sigprocmask(SIG_SETMASK, signals, NULL);
	execvp(args->v[0], args->v);
	complain("%s: %s", args->v[0], strerror(errno));
	_exit(127);
}

/* Returns 0 if the program was successful. */
int wait_for_program(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -ECHILD;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EIO;
}

int run_program(const struct args *args, const char *dir, bool silent, const sigset_t *signals)
{
	return wait_for_program(start_program(args, dir, silent, signals));
}

/* Adds arguments of a program. NULL is the last one here. */
void add_args(struct args *a, ...)
{
	const char *arg;
	va_list more;

	va_start(more, a);
	while ((arg = va_arg(more, const char *))) {
		a->v = grow(a->v, &a->room, a->nr + 2, sizeof(*a->v));
		a->v[a->nr++] = copy_string(arg);
		a->v[a->nr] = NULL;
	}
	va_end(more);
}

void free_args(struct args *a)
{
	while (a->nr)
		free(a->v[--a->nr]);
	free(a->v);
}

/* Makes what trace.dat begins with, in case that it has to be restored. */
int make_head(const char *dir, const sigset_t *signals)
{
	struct args args = {};
	int ret;

	add_args(&args, "trace-cmd", "restore", "-c", "-o", "head.dat", NULL);
	ret = run_program(&args, dir, false, signals);
	if (ret)
		complain("trace-cmd did not make %s/head.dat", dir);
	free_args(&args);
	return ret;
}

/*
 * Makes trace.dat of head.dat and of the files of the recorders, if these are left. The number of a
 * CPU is its place among the arguments.
 */
int restore(const char *dir, const char *instance, const sigset_t *signals)
{
	long cpu, nr = sysconf(_SC_NPROCESSORS_CONF);
	struct args args = {};
	size_t i, first;
	char *name;
	int ret;

	add_args(&args, "trace-cmd", "restore", "-o", "trace.dat", "-i", "head.dat", NULL);
	first = args.nr;
	for (cpu = 0; cpu < nr; cpu++) {
		name = format("trace.dat.%s.cpu%ld", instance, cpu);
		if (has_file(dir, name))
			add_args(&args, name, NULL);
		free(name);
	}
	remove_file(dir, "trace.dat");
	ret = run_program(&args, dir, true, signals);
	if (ret)
		remove_file(dir, "trace.dat");
	for (i = first; !ret && i < args.nr; i++)
		remove_file(dir, args.v[i]);
	free_args(&args);
	return ret;
}

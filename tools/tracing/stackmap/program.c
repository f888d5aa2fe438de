// SPDX-License-Identifier: GPL-2.0
/* Programs that run without the signals that the tool takes. */
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record.h"

static sigset_t old_signals;

/* Sets @set to those that are to be taken. For SIGPIPE and SIGXFSZ, write() has an error. */
void block_signals(sigset_t *set)
{
	static const int signals[] = {
		SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGXCPU,
		SIGCHLD, SIGPIPE, SIGXFSZ,
	};
	struct sigaction hup = {};
	size_t i;

	sigemptyset(set);
	for (i = 0; i < ARRAY_SIZE(signals); i++)
		sigaddset(set, signals[i]);
	sigprocmask(SIG_BLOCK, set, &old_signals);
	sigdelset(set, SIGPIPE);
	sigdelset(set, SIGXFSZ);
	/* As nohup has it. */
	sigaction(SIGHUP, NULL, &hup);
	if (hup.sa_handler == SIG_IGN)
		sigdelset(set, SIGHUP);
}

void unblock_signals(void)
{
	sigprocmask(SIG_SETMASK, &old_signals, NULL);
}

_Noreturn void exec_program(char * const *args)
{
	unblock_signals();
	execvp(args[0], args);
	complain("%s: %s", args[0], strerror(errno));
	_exit(NO_COMMAND);
}

/*
 * In a process group of its own, which Ctrl-C does not reach. If the tool is killed, it is told to
 * end. It works in the directory that is written, and keeps that locked.
 */
pid_t start_program(const char * const *args)
{
	pid_t pid = fork();

	if (pid < 0)
		complain("fork: %s", strerror(errno));
	else
		setpgid(pid, pid);	/* by both, as either may go on first */
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGINT);
	if (!fchdir(output_fd) && !fcntl(output_fd, F_SETFD, 0) &&
	    freopen("/dev/null", "r", stdin) && freopen("/dev/null", "w", stdout))
		exec_program((char * const *)args);
	_exit(NO_COMMAND);
}

/* Returns 0 if it was successful. @arg: $0 of the script */
int run_script(const char *script, const char *arg)
{
	const char * const args[] = { "sh", "-c", script, arg, NULL };
	pid_t pid = start_program(args);
	int status;

	return pid > 0 && waitpid(pid, &status, 0) == pid && !status ? 0 : -EIO;
}

static bool is_program(const char *dir, const char *name)
{
	char *path __free(pointer) = format("%s%s%s", dir, *dir ? "/" : "", name);
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* As execvp() looks for it: an empty element of PATH is the current directory. */
bool find_program(const char *name)
{
	char *dirs __free(pointer) = NULL, *rest, *dir;
	const char *path = strchr(name, '/') ? "" : getenv("PATH");
	bool found = false;

	dirs = copy_string(path ? path : "/bin:/usr/bin");
	rest = dirs;
	while (!found && (dir = strsep(&rest, ":")))
		found = is_program(dir, name);
	return found;
}

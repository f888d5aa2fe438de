// SPDX-License-Identifier: GPL-2.0
/* Trace instances, and programs that run without the signals that the tool takes. */
#include <fcntl.h>
#include <glob.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record.h"

/* The directory of the instance; NULL is the top level. */
char *find_instance(const char *instance)
{
	return instance ? format(TRACEFS "/instances/%s", instance) : copy_string(TRACEFS);
}

int trace_error(const char *dir, const char *file, int err)
{
	complain("%s/%s: %s%s", dir, file, strerror(-err),
		 err == -EACCES ? " (only root may trace)" :
		 err == -EPERM ? " (the kernel may be locked down)" : "");
	return err;
}

/* Tells why there is no map to read. */
int check_instance(const char *dir)
{
	FILE *f __free(file) = open_in(dir, "tracing_on", "re");

	if (f && is_beside(dir, "options/stackmap"))
		return 0;
	if (f)
		complain("this kernel has no stack map: there is no %s/options/stackmap", dir);
	else if (errno != ENOENT)
		trace_error(dir, "tracing_on", -errno);
	else if (strcmp(dir, TRACEFS))
		complain("there is no trace instance %s", basename(dir));
	else
		complain("%s: no tracefs is mounted here", dir);
	return -ENOENT;
}

/* Files of tracefs want all by one write(2). */
int write_file(const char *dir, const char *file, const char *text)
{
	char *path __free(pointer) = format("%s/%s", dir, file);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int ret;

	if (fd < 0)
		return -errno;
	ret = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return ret;
}

int set(const char *dir, const char *file, const char *text)
{
	int ret = write_file(dir, file, text);

	return ret ? trace_error(dir, file, ret) : 0;
}

bool is_set(const char *dir, const char *file)
{
	FILE *f __free(file) = open_in(dir, file, "re");

	return f && getc(f) == '1';
}

/* Tells why a map has no stacks. */
void note_empty(const char *dir)
{
	if (!is_set(dir, "options/stackmap"))
		note("the map is empty: %s/options/stackmap is 0", dir);
	else if (!is_set(dir, "options/stacktrace") && !is_set(dir, "options/userstacktrace") &&
		 !is_set(dir, "options/userstacktrace_delay"))
		note("the map is empty: %s/options/stacktrace is 0", dir);
	else
		note("the map is empty: no event was recorded with its stack");
}

/* Someone may be reading one of its files. */
void remove_instance(const char *dir)
{
	int tries;

	for (tries = 0; rmdir(dir); tries++) {
		if (errno != EBUSY || tries == 50) {
			complain("%s: %s; remove it when nobody reads it: rmdir %s", dir,
				 strerror(errno), dir);
			return;
		}
		usleep(100000);
	}
}

/*
 * @event: "sched:sched_switch", "sched:*", ":sched_switch", "sched_switch" or "sched". The filter
 * of a system leaves alone what lacks the field: it would be recorded in full.
 */
static int set_filter(const char *dir, const char *event, const char *filter)
{
	char *path __free(pointer) = copy_string(*event == ':' ? event + 1 : event);
	char *log_file __free(pointer) = format("%s/error_log", dir);
	char *pattern __free(pointer) = NULL, *log __free(pointer) = NULL;
	char *colon = strchr(path, ':');
	size_t i, len, bad = 0;
	glob_t found = {};
	const char *file;

	if (colon)
		*colon = '/';
	pattern = colon ? format("%s/events/%s%s/filter", dir, path, colon[1] ? "" : "*") :
		  format("%s/events/{%s/*,*/%s}/filter", dir, path, path);
	glob(pattern, GLOB_BRACE, NULL, &found);
	for (i = 0; i < found.gl_pathc; i++) {
		file = found.gl_pathv[i] + strlen(dir) + 1;
		if (!write_file(dir, file, filter))
			continue;
		bad++;
		complain("%s: not a filter of %.*s", filter,
			 (int)(strlen(file) - strlen("/filter")), file);
	}
	globfree(&found);
	log = bad && bad == i ? slurp(log_file, &len) : NULL;
	if (bad || !i)
		complain("%s", log ? log : "name only events that have all its fields");
	return bad || !i ? -EINVAL : 0;
}

int enable_event(const char *dir, const char *event, const char *filter)
{
	int ret = write_file(dir, "set_event", event);

	if (ret == -EINVAL)
		complain("there is no event %s (see " TRACEFS "/available_events)", event);
	else if (ret)
		trace_error(dir, "set_event", ret);
	else if (filter)
		ret = set_filter(dir, event, filter);
	return ret;
}

/* The sum of what the lines with @key count, in all files that @files names. */
u64 count_of(const char *dir, const char *files, const char *key)
{
	char *pattern __free(pointer) = format("%s/%s", dir, files);
	size_t i, len = strlen(key);
	glob_t found = {};
	char line[128];
	u64 sum = 0;

	glob(pattern, 0, NULL, &found);
	for (i = 0; i < found.gl_pathc; i++) {
		FILE *f __free(file) = fopen(found.gl_pathv[i], "re");

		while (f && fgets(line, sizeof(line), f))
			sum += strncmp(line, key, len) ? 0 : strtoull(line + len, NULL, 10);
	}
	globfree(&found);
	return sum;
}

/* Entries that were overwritten, or found no room. */
u64 count_lost(const char *dir)
{
	return count_of(dir, CPU_STATS, "overrun: ") +
	       count_of(dir, CPU_STATS, "commit overrun: ") +
	       count_of(dir, CPU_STATS, "dropped events: ");
}

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

#include "base/program.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"

#define FIRST_FD     3
#define ARGS_MAX     32
#define SIGNAL_TRIES 3

void program_default_signals(void)
{
	static const unsigned long
		all_default[4]; /* the kernel's struct sigaction: handler, flags, restorer, mask */

	for (int signo = 1; signo < _NSIG; signo++)
		(void)syscall(SYS_rt_sigaction, signo, all_default, NULL, sizeof(unsigned long));
}

void program_set_priority(int nice)
{
	char text[8];

	(void)setpriority(PRIO_PROCESS, 0, nice);
	(void)snprintf(text, sizeof text, "%d", nice);
	(void)fd_write_file(AT_FDCWD, "/proc/self/autogroup", text);
}

/* The child's side; only calls that are safe between fork and exec of a program with threads. Returns what
 * failed. */
static int become(const struct program *p, int program_fd, char *const argv[], const int *fds)
{
	static char *const no_environment[] = {NULL};
	int null_fd = open("/dev/null", O_RDWR);

	if (null_fd < 0) return errno;
	(void)dup2(null_fd, STDIN_FILENO);
	(void)dup2(null_fd, STDOUT_FILENO);
	if (null_fd > STDERR_FILENO) close(null_fd);
	for (size_t i = 0; i < p->fd_count; i++) {
		if (dup2(fds[i], FIRST_FD + (int)i) < 0) return errno;
	}
	program_default_signals();
	if (!p->keep_signal_mask) {
		sigset_t none;

		sigemptyset(&none);
		(void)sigprocmask(SIG_SETMASK, &none, NULL);
	}
	(void)setsid(); /* the terminal's signals are for `tombolo serve` alone */
	program_set_priority(getpriority(PRIO_PROCESS, 0));
	if (p->drop && (setgroups(0, NULL) < 0 || setresgid(p->gid, p->gid, p->gid) < 0 ||
			setresuid(p->uid, p->uid, p->uid) < 0))
		return errno;
	if (chdir("/") < 0) return errno;
	/* By descriptor: the user that we became need not be able to reach the file, below root's home for
	 * instance. */
	(void)syscall(SYS_execveat, program_fd, "", argv, no_environment, AT_EMPTY_PATH);
	return errno;
}

/*
 * Next to us, or, in a build tree, where the room that NAME ends with puts it: ../keeper/tombolo-keeper; or
 * at the top of that tree.
 */
static int find(const char *name, char path[PATH_MAX], struct err *e)
{
	const char *room = strrchr(name, '-');
	char own[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);

	if (n < 0) return err_set(e, -errno, "find our own program");
	own[n] = '\0';
	*strrchr(own, '/') = '\0';
	if (snprintf(path, PATH_MAX, "%s/%s", own, name) < PATH_MAX && access(path, X_OK) == 0) return 0;
	if (snprintf(path, PATH_MAX, "%s/../libexec/tombolo/%s", own, name) < PATH_MAX &&
	    access(path, X_OK) == 0)
		return 0;
	if (snprintf(path, PATH_MAX, "%s/../%s/%s", own, room ? room + 1 : name, name) < PATH_MAX &&
	    access(path, X_OK) == 0)
		return 0;
	if (snprintf(path, PATH_MAX, "%s/../../%s", own, name) < PATH_MAX && access(path, X_OK) == 0)
		return 0;
	return err_say(e, -ENOENT, "there is no program %s in %s", name, own);
}

int program_open(const char *name, struct err *e)
{
	char path[PATH_MAX];
	int r = find(name, path, e);

	if (r < 0) return r;
	r = open(path, O_PATH | O_CLOEXEC);
	return r < 0 ? err_set(e, -errno, "open %s", path) : r;
}

/* Above every number that the child will give away, so that no dup2() covers one that is still needed. */
static int lift(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD + PROGRAM_FDS_MAX);
}

static int lift_fds(const struct program *p, int lifted[PROGRAM_FDS_MAX], struct err *e)
{
	for (size_t i = 0; i < p->fd_count; i++) {
		lifted[i] = lift(p->fds[i]);
		if (lifted[i] < 0) {
			int r = -errno;

			while (i--)
				fd_close(lifted[i]);
			return err_set(e, r, "pass descriptors to %s", p->name);
		}
	}
	return 0;
}

/* The other end of TOLD_FD closes at the exec, or brings the errno that prevented it. */
static int await_exec(pid_t pid, int told_fd, const struct program *p, struct err *e)
{
	int code = 0;
	ssize_t n;

	do
		n = read(told_fd, &code, sizeof code);
	while (n < 0 && errno == EINTR);
	if (n <= 0) return 0;
	(void)waitpid(pid, NULL, 0);
	return err_set(e, -code, "run %s", p->name);
}

int program_start(const struct program *p, pid_t *ret_pid, struct err *e)
{
	const char *argv[ARGS_MAX] = {p->name};
	auto_close int program_fd = program_open(p->name, e);
	int lifted[PROGRAM_FDS_MAX], told[2];
	pid_t pid;
	int r;

	for (size_t i = 0; p->args && p->args[i] && i < ARGS_MAX - 2; i++)
		argv[1 + i] = p->args[i];
	if (program_fd < 0) return program_fd;
	if (pipe2(told, O_CLOEXEC) < 0) return err_set(e, -errno, "run %s", p->name);
	r = lift_fds(p, lifted, e);
	if (r < 0) {
		close(told[0]);
		close(told[1]);
		return r;
	}
	auto_close int tell_fd = lift(told[1]), exec_fd = lift(program_fd);

	pid = fork();
	if (pid == 0) {
		int code = become(p, exec_fd, (char *const *)argv, lifted);

		(void)!write(tell_fd, &code, sizeof code);
		_exit(127);
	}
	r = pid < 0 ? err_set(e, -errno, "run %s", p->name) : 0;
	for (size_t i = 0; i < p->fd_count; i++)
		fd_close(lifted[i]);
	tell_fd = fd_close(tell_fd);
	close(told[1]);
	if (r == 0) r = await_exec(pid, told[0], p, e);
	close(told[0]);
	if (r == 0) *ret_pid = pid;
	return r;
}

int program_signal(pid_t pid, int signo)
{
	int r = -EPERM;

	for (int i = 0; i < SIGNAL_TRIES && r == -EPERM; i++)
		r = kill(pid, signo) < 0 ? -errno : 0;
	return r;
}

void program_end(pid_t pid)
{
	if (program_signal(pid, SIGKILL) < 0) return;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

void program_raise_fd_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0) return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

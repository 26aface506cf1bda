#include "keeper/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"

#define KILL_TRIES 3

/* <sys/pidfd.h> is younger than the C libraries we build with. */
static int open_pid(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : fd;
}

int process_open_child(pid_t pid)
{
	siginfo_t info;
	int pidfd = open_pid(pid);

	if (pidfd < 0) return pidfd;
	if (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG | WNOWAIT) == 0) return pidfd;
	fd_close(pidfd);
	return -ECHILD;
}

int process_open(pid_t pid, uint64_t start)
{
	int pidfd = open_pid(pid);

	if (pidfd < 0) return pidfd;
	/* In this order: what the descriptor names cannot change any more while we look. */
	if (process_start(pid) == start) return pidfd;
	fd_close(pidfd);
	return -ESRCH;
}

uint64_t process_start(pid_t pid)
{
	char path[32], text[1024];
	char *at;

	(void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
	if (fd_read_file(AT_FDCWD, path, text, sizeof text) < 0) return 0;
	/* Field 22. The second may hold anything, parentheses included, but the last ')' ends it. */
	at = strrchr(text, ')');
	if (at) at++;
	for (int field = 2; at && field < 22; field++) {
		at = strchr(at, ' ');
		if (at) at++;
	}
	return at ? strtoull(at, NULL, 10) : 0;
}

void process_kill(int pidfd)
{
	for (int i = 0; i < KILL_TRIES; i++)
		if (syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) == 0 || errno == ESRCH) return;
	log_event(LOG_ERROR, "agent_not_killed", "why", strerror(errno), NULL);
}

void process_reap(int pidfd)
{
	siginfo_t info;
	int r;

	do
		r = waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED);
	while (r < 0 && errno == EINTR);
}

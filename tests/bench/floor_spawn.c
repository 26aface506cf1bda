#include "floor_spawn.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/wait.h>

#include "base/err.h"
#include "base/fd.h"

extern char **environ;

static void read_to_end(int fd)
{
	char bytes[4096];
	ssize_t n;

	do
		n = read(fd, bytes, sizeof bytes);
	while (n > 0 || (n < 0 && errno == EINTR));
}

static int spawn(const char *path, int out_fd, int err_fd, pid_t *ret_pid)
{
	char *argv[] = {(char *)(uintptr_t)path, NULL};
	posix_spawn_file_actions_t actions;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, out_fd, 1);
	posix_spawn_file_actions_adddup2(&actions, err_fd, 2);
	int r = posix_spawn(ret_pid, path, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

int spawn_and_wait(const char *path, struct err *e)
{
	int out[2], problems[2], status;
	pid_t pid;

	if (pipe2(out, O_CLOEXEC) < 0) return err_set(e, -errno, "make a pipe");
	if (pipe2(problems, O_CLOEXEC) < 0) {
		int r = err_set(e, -errno, "make a pipe");
		close(out[0]);
		close(out[1]);
		return r;
	}
	int r = spawn(path, out[1], problems[1], &pid);
	close(out[1]);
	close(problems[1]);
	if (r == 0) {
		read_to_end(out[0]);
		read_to_end(problems[0]);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
		}
		if (status) r = -EPROTO;
	}
	close(out[0]);
	close(problems[0]);
	if (r < 0) return err_set(e, r, "run '%s'", path);
	return 0;
}

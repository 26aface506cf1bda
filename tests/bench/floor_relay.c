#include "floor_relay.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "bench.h"
#include "floor_local.h"

extern char **environ;

static char copy_buffer[COPY_SIZE];

static _Noreturn void copy_until_end(int from_fd, int to_fd)
{
	ssize_t n;

	while ((n = read(from_fd, copy_buffer, sizeof copy_buffer)) > 0)
		if (fd_write_all(to_fd, copy_buffer, (size_t)n) < 0) _exit(1);
	_exit(0);
}

/* Keeps the two descriptors it needs: a forgotten copy of a writing end would hide the end from a reader. */
static void close_all_but(int a, int b)
{
	for (int fd = 3; fd < 256; fd++)
		if (fd != a && fd != b) (void)close(fd);
}

static pid_t start_relay(int from_fd, int to_fd, bool accept_first)
{
	pid_t pid = fork();

	if (pid) return pid;
	close_all_but(from_fd, to_fd);
	if (accept_first) to_fd = local_accept(to_fd);
	copy_until_end(from_fd, to_fd);
}

static int start_writer(char *const argv[], int out_fd, pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, out_fd, 1);
	int r = posix_spawnp(ret_pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

static int count_bytes(int fd, uint64_t *ret_bytes, struct err *e)
{
	ssize_t n;

	*ret_bytes = 0;
	while ((n = recv(fd, copy_buffer, sizeof copy_buffer, 0)) > 0)
		*ret_bytes += (uint64_t)n;
	return n < 0 ? err_set(e, -errno, "read from the relay") : 0;
}

int relay_floor_run(char *const argv[], double *ret_us, uint64_t *ret_bytes, struct err *e)
{
	int pipe_fds[2], pair[2], listen_fd, fd = -1;
	unsigned port;
	pid_t pids[3] = {0};

	int r = local_listen(&listen_fd, &port, e);
	if (r < 0) return r;
	if (pipe2(pipe_fds, O_CLOEXEC) < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(e, -errno, "make pipes");
	pids[0] = start_relay(pipe_fds[0], pair[0], false);
	pids[1] = start_relay(pair[1], listen_fd, true);
	close(pair[0]);
	close(pair[1]);
	close(pipe_fds[0]);
	close(listen_fd);

	r = local_connect(port, &fd, e);
	double began = now_us();
	if (r == 0) {
		r = start_writer(argv, pipe_fds[1], &pids[2]);
		if (r < 0) err_set(e, r, "run '%s'", argv[0]);
	}
	close(pipe_fds[1]);
	if (r == 0) r = count_bytes(fd, ret_bytes, e);
	*ret_us = now_us() - began;
	fd_close(fd);
	for (size_t i = 0; i < ARRAY_LEN(pids); i++)
		if (pids[i] > 0) (void)waitpid(pids[i], NULL, 0);
	return r;
}

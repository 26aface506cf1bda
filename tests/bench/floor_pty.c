#include "floor_pty.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "bench.h"
#include "floor_local.h"

extern char **environ;

static char copy_buffer[COPY_SIZE];

/* ARGV with a new terminal as its stdio; *RET_FD is our end of it. */
static int start_on_terminal(char *const argv[], int *ret_fd, pid_t *ret_pid, struct err *e)
{
	auto_close int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	auto_close int slave = -1;
	posix_spawn_file_actions_t actions;
	int unlocked = 0, r;

	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlocked) < 0)
		return err_set(e, -errno, "open a terminal");
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0) return err_set(e, -errno, "open the other end of the terminal");
	posix_spawn_file_actions_init(&actions);
	for (int fd = 0; fd < 3; fd++)
		posix_spawn_file_actions_adddup2(&actions, slave, fd);
	r = posix_spawnp(ret_pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (r) return err_set(e, -r, "run '%s'", argv[0]);
	*ret_fd = take_fd(&master);
	return 0;
}

static void end_process(pid_t pid)
{
	if (pid <= 0) return;
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

/* ---- both ways ---- */

static bool copy_once(int from_fd, int to_fd)
{
	ssize_t n = read(from_fd, copy_buffer, sizeof copy_buffer);

	return n > 0 && fd_write_all(to_fd, copy_buffer, (size_t)n) == 0;
}

static _Noreturn void relay(int terminal_fd, int listen_fd)
{
	int fd = local_accept(listen_fd);
	struct pollfd both[2] = {{.fd = fd, .events = POLLIN}, {.fd = terminal_fd, .events = POLLIN}};

	while (poll(both, 2, -1) > 0) {
		if (both[0].revents && !copy_once(fd, terminal_fd)) break;
		if (both[1].revents && !copy_once(terminal_fd, fd)) break;
	}
	_exit(0);
}

int pty_relay_start(struct pty_relay *ret, struct err *e)
{
	static char *const cat[] = {"cat", NULL};
	auto_close int terminal = -1, listener = -1;
	unsigned port;
	int r = start_on_terminal(cat, &terminal, &ret->cat, e);

	ret->fd = -1;
	if (r == 0) r = local_listen(&listener, &port, e);
	if (r < 0) return r;
	ret->relay = fork();
	if (ret->relay == 0) relay(terminal, listener);
	if (ret->relay < 0) return err_set(e, -errno, "fork");
	return local_connect(port, &ret->fd, e);
}

void pty_relay_end(struct pty_relay *r)
{
	if (!r->cat) return;
	r->fd = fd_close(r->fd);
	end_process(r->relay);
	end_process(r->cat);
}

/* ---- much in one direction ---- */

int pty_read_floor(char *const argv[], uint64_t bytes, double *ret_us, struct err *e)
{
	auto_close int terminal = -1;
	double began;
	pid_t pid = 0;
	int r = start_on_terminal(argv, &terminal, &pid, e);

	if (r < 0) return r;
	began = now_us();
	r = fd_write_all(terminal, "\n", 1);
	while (r == 0 && bytes) {
		ssize_t n = read(terminal, copy_buffer, sizeof copy_buffer);

		if (n <= 0) r = n < 0 ? -errno : -EPROTO;
		else bytes -= MIN((uint64_t)n, bytes);
	}
	*ret_us = now_us() - began;
	end_process(pid);
	return r < 0 ? err_set(e, r, "read from the terminal of '%s'", argv[0]) : 0;
}

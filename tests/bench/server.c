#include "server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "client.h"

#define READY_FD 3
#define START_MS 30000
#define STOP_MS  30000

struct server {
	pid_t pid;
	char *program;
};

/* In the forked child. The state directory is DIR/state. */
static _Noreturn void become_server(const char *tombolo, const char *dir, int ready_fd)
{
	char state[4096], log[4096];
	sigset_t none;

	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	snprintf(state, sizeof state, "%s/state", dir);
	snprintf(log, sizeof log, "%s/server.log", dir);
	int log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (log_fd < 0 || dup2(log_fd, 2) < 0 || dup2(log_fd, 1) < 0) _exit(127);
	if (ready_fd == READY_FD ? fd_set_cloexec(ready_fd, false) < 0 : dup2(ready_fd, READY_FD) < 0)
		_exit(127);
	(void)close_range(READY_FD + 1, ~0U, 0);
	execl(tombolo, tombolo, "serve", "--listen", "127.0.0.1:0", "--state-dir", state, "--ready-fd", "3",
	      "--hydrate-limit", "0", (char *)NULL);
	_exit(127);
}

/* The server writes the addresses it serves to its end, or dies and closes it. */
static int wait_until_ready(int ready_fd, unsigned *ret_port, struct err *e)
{
	struct pollfd ready = {.fd = ready_fd, .events = POLLIN};
	char text[256];

	int r = poll(&ready, 1, START_MS);
	if (r == 0) return err_say(e, -ETIMEDOUT, "the server was not ready after %d s", START_MS / 1000);
	ssize_t n = read(ready_fd, text, sizeof text - 1);
	if (n <= 0) return err_say(e, -EPROTO, "the server ended before it was ready");
	text[n] = '\0';
	char *colon = strrchr(text, ':');
	*ret_port = colon ? (unsigned)atoi(colon + 1) : 0;
	if (*ret_port == 0) return err_say(e, -EPROTO, "the server says it serves '%.60s'", text);
	return 0;
}

/* What the server said last, for the person who must find out why it does not run. */
static void show_log(const char *dir)
{
	char path[4096], text[2000];

	snprintf(path, sizeof path, "%s/server.log", dir);
	if (fd_read_file(AT_FDCWD, path, text, sizeof text) > 0) fprintf(stderr, "%s\n", text);
}

static void server_free(struct server *s)
{
	free(s->program);
	free(s);
}

int server_start(const char *tombolo, const char *dir, struct server **ret, struct endpoint *ret_at,
		 struct err *e)
{
	int ready[2];
	unsigned port = 0;

	if (access(tombolo, X_OK) < 0) return err_set(e, -errno, "find the server program '%s'", tombolo);
	if (pipe2(ready, O_CLOEXEC) < 0) return err_set(e, -errno, "make a pipe");
	pid_t pid = fork();
	if (pid == 0) become_server(tombolo, dir, ready[1]);
	close(ready[1]);
	int r = pid < 0 ? err_set(e, -errno, "fork") : wait_until_ready(ready[0], &port, e);
	close(ready[0]);
	struct server *s = mem_new(sizeof *s);
	s->pid = pid;
	s->program = mem_strdup(tombolo);
	if (r < 0) {
		show_log(dir);
		struct err ignored;
		if (pid > 0) (void)server_stop(s, &ignored);
		else server_free(s);
		return r;
	}
	endpoint_local(ret_at, port);
	*ret = s;
	return 0;
}

/* SIGTERM; SIGKILL for a server that does not care, so that the bench always ends. */
static bool end_in_time(pid_t pid)
{
	auto_close int pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd gone = {.fd = pid_fd, .events = POLLIN};

	kill(pid, SIGTERM);
	if (poll(&gone, 1, STOP_MS) != 0) return true;
	kill(pid, SIGKILL);
	return false;
}

int server_stop(struct server *s, struct err *e)
{
	int status = 0;

	if (!s) return 0;
	bool in_time = end_in_time(s->pid);
	while (waitpid(s->pid, &status, 0) < 0 && errno == EINTR) {
	}
	server_free(s);
	if (!in_time) return err_say(e, -ETIMEDOUT, "the server ignored SIGTERM for %d s", STOP_MS / 1000);
	if (status)
		return err_say(e, -EPROTO, "the server did not end cleanly on SIGTERM (status %#x)",
			       (unsigned)status);
	return 0;
}

pid_t server_pid(const struct server *s)
{
	return s->pid;
}

const char *server_program(const struct server *s)
{
	return s->program;
}

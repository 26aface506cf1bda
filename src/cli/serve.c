/*
 * serve.c - `tombolo serve`: settles everything that can be wrong before anything runs, each with a sentence
 * of its own, then hands over to the supervisor.
 */
#include "cli/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/net.h"
#include "base/program.h"
#include "cli/supervisor.h"
#include "config/address.h"
#include "config/config.h"
#include "isolation/instance.h"
#include "isolation/privilege.h"

#define EXIT_USAGE     2
#define LISTEN_BACKLOG 4096
#define LOCK_TRIES     50
#define LOCK_WAIT_US   10000

struct server {
	struct config config;
	int lock_fd, config_fd;
	int listen_fds[ADDRESSES_MAX];
	struct address addresses[ADDRESSES_MAX]; /* as bound: a port 0 has become a real one */
	int listen_count;
};

/* ---- the state directory ---- */

static void make_dirs(const char *path)
{
	char part[PATH_MAX];

	(void)snprintf(part, sizeof part, "%s", path);
	for (char *slash = part + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		(void)mkdir(part, 0755);
	}
	(void)mkdir(path, 0700);
}

static int refuse_second(int lock_fd, const char *path, struct err *e)
{
	char pid[16] = "";
	ssize_t n = pread(lock_fd, pid, sizeof pid - 1, 0);

	pid[n > 0 ? n : 0] = '\0';
	pid[strcspn(pid, "\n")] = '\0';
	return err_say(e, -EBUSY,
		       "another server (pid %s) uses '%s': choose another directory with --state-dir", pid,
		       path);
}

/* What a killed server was starting just then holds its lock for another moment; a server that lives holds it
 * longer. */
static int take_lock(int fd)
{
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0) return 0;
		(void)usleep(LOCK_WAIT_US);
	}
	return -EWOULDBLOCK;
}

/* The lock goes with the open file: the keeper inherits it, so it ends when both of us have. */
static int lock_state(struct server *s, struct err *e)
{
	const char *path = s->config.state_dir;
	auto_close int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char pid[16];

	if (dir_fd < 0 || fchmod(dir_fd, 0700) < 0)
		return err_set(e, -errno, "open the state directory '%s'", path);
	auto_close int fd = openat(dir_fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) return err_set(e, -errno, "lock the state directory '%s'", path);
	if (take_lock(fd) < 0) return refuse_second(fd, path, e);
	(void)snprintf(pid, sizeof pid, "%d\n", getpid());
	if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, strlen(pid), 0) < 0)
		return err_set(e, -errno, "write into the state directory '%s'", path);
	s->lock_fd = take_fd(&fd);
	return 0;
}

/* ---- sockets ---- */

static int explain_bind(int code, const struct address *a, struct err *e)
{
	char text[ADDRESS_TEXT];

	address_text(a, text);
	if (code == -EADDRINUSE)
		return err_say(e, code,
			       "%s is in use by another program: choose another address with --listen", text);
	return err_set(e, code, "listen on %s", text);
}

static int listen_on(struct address *a, int *ret_fd, struct err *e)
{
	const int on = 1;
	auto_close int fd = socket(a->at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0) return explain_bind(-errno, a, e);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	net_set_service_options(fd);
	if (a->at.ss_family == AF_INET6) (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
	if (bind(fd, (struct sockaddr *)&a->at, a->len) < 0 || listen(fd, LISTEN_BACKLOG) < 0)
		return explain_bind(-errno, a, e);
	if (getsockname(fd, (struct sockaddr *)&a->at, &a->len) < 0) return explain_bind(-errno, a, e);
	*ret_fd = take_fd(&fd);
	return 0;
}

static int listen_on_all(struct server *s, struct err *e)
{
	int count = addresses_parse(s->config.listen, s->addresses, e), r = 0;

	for (; r == 0 && s->listen_count < count; s->listen_count += r == 0)
		r = listen_on(&s->addresses[s->listen_count], &s->listen_fds[s->listen_count], e);
	return count < 0 ? count : r;
}

/* ---- ready ---- */

static void tell_ready_fd(const struct server *s)
{
	char text[ADDRESSES_MAX * (ADDRESS_TEXT + 1)];
	size_t len = 0;

	if (!s->config.ready_fd) return;
	for (int i = 0; i < s->listen_count; i++) {
		char address[ADDRESS_TEXT];

		address_text(&s->addresses[i], address);
		len += (size_t)snprintf(text + len, sizeof text - len, "%s\n", address);
	}
	(void)fd_write_all((int)s->config.ready_fd, text, len);
	(void)close((int)s->config.ready_fd);
}

static void on_ready(void *ctx)
{
	const struct server *s = ctx;
	char first[ADDRESS_TEXT];

	(void)fputs("tombolo: serving on", stdout);
	for (int i = 0; i < s->listen_count; i++) {
		char address[ADDRESS_TEXT];

		address_text(&s->addresses[i], address);
		(void)printf(" http://%s", address);
	}
	address_text(&s->addresses[0], first);
	(void)printf("  (try: curl -N http://%s/v1/sandbox/demo/exec%s -d '{\"argv\":[\"uname\",\"-a\"]}')\n",
		     first, s->config.api_key[0] ? " -H \"Authorization: Bearer $SANDBOX_API_KEY\"" : "");
	(void)fflush(stdout);
	tell_ready_fd(s);
}

/* ---- all of it ---- */

static void help(void)
{
	(void)puts(
		"usage: tombolo serve [OPTIONS]\n\n"
		"Runs the server in the foreground until SIGTERM. Each option is also a line `name = value`\n"
		"of the config file, and an environment variable. Flags win over the environment, the\n"
		"environment over the file.\n");
	config_help(stdout);
}

/* Whatever is wrong in here is a mistake of who typed it. */
static int read_options(struct server *s, int argc, char **argv, struct err *e)
{
	struct limits limits;
	int r = config_load(&s->config, argc, argv, environ, e);

	if (r == 0 && instance_limits(s->config.instance, &limits) < 0)
		r = err_say(e, -EINVAL, "there is no instance type '%.60s'", s->config.instance);
	return r;
}

static int set_up(struct server *s, struct err *e)
{
	int r;

	/* Whether these worked is told by what follows, in better words. */
	make_dirs(s->config.state_dir);
	r = privilege_check(s->config.state_dir, e);
	if (r == 0) r = lock_state(s, e);
	if (r == 0) r = listen_on_all(s, e);
	if (r == 0) r = config_write(&s->config, &s->config_fd, e);
	return r;
}

static void tear_down(struct server *s)
{
	while (s->listen_count > 0)
		fd_close(s->listen_fds[--s->listen_count]);
	fd_close(s->config_fd);
	fd_close(s->lock_fd);
	config_done(&s->config);
}

static int run(struct server *s)
{
	struct supervised what = {
		.lock_fd = s->lock_fd,
		.config_fd = s->config_fd,
		.listen_fds = s->listen_fds,
		.listen_count = (size_t)s->listen_count,
		.on_ready = on_ready,
		.ctx = s,
	};

	if (s->config.ready_fd) (void)fd_set_cloexec((int)s->config.ready_fd, true);
	(void)signal(SIGPIPE, SIG_IGN);
	return supervise(&what);
}

int serve_main(int argc, char **argv)
{
	struct server s = {.lock_fd = -1, .config_fd = -1};
	struct err e = ERR_NONE;
	int status = EXIT_FAILURE;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") != 0 && strcmp(argv[i], "-h") != 0) continue;
		help();
		return EXIT_SUCCESS;
	}
	config_init(&s.config);
	if (read_options(&s, argc, argv, &e) < 0) status = EXIT_USAGE;
	else if (set_up(&s, &e) == 0) status = run(&s);
	if (e.code) (void)fprintf(stderr, "tombolo: %s\n", e.text);
	tear_down(&s);
	return status;
}

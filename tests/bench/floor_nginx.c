#include "floor_nginx.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "client.h"
#include "floor_local.h"

struct nginx {
	pid_t pid;
};

extern char **environ;

/* The master gets a listening socket from us by descriptor 3 (nginx takes it for one of its own): no race for
 * a port. */
static int write_config(const char *dir, unsigned port, struct err *e)
{
	char path[4096], text[1024];

	snprintf(path, sizeof path, "%s/nginx.conf", dir);
	snprintf(text, sizeof text,
		 "daemon off; worker_processes 1; pid nginx.pid; error_log nginx.log crit;\n"
		 "events { worker_connections 256; }\n"
		 "http { access_log off; keepalive_requests 1000000000; default_type application/json;\n"
		 "client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; "
		 "scgi_temp_path t5;\n"
		 "server { listen 127.0.0.1:%u; location / { return 200 '{\"ok\":true}'; } } }\n",
		 port);
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0) return err_set(e, -errno, "write '%s'", path);
	return fd_write_all(fd, text, strlen(text));
}

static int spawn_nginx(const char *dir, int listen_fd, pid_t *ret_pid)
{
	char prefix[4096], *argv[] = {"nginx", "-p", prefix, "-c", "nginx.conf", "-e", "nginx.log", NULL};
	char *env[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "NGINX=3;", NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;

	snprintf(prefix, sizeof prefix, "%s/", dir);
	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, listen_fd, 3);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	int r = posix_spawnp(ret_pid, argv[0], &actions, &attributes, argv, env);
	if (r == ENOENT) r = posix_spawn(ret_pid, "/usr/sbin/nginx", &actions, &attributes, argv, env);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

int nginx_start(const char *dir, struct nginx **ret, struct endpoint *ret_at, struct err *e)
{
	auto_close int listen_fd = -1;
	unsigned port;
	pid_t pid;

	int r = local_listen(&listen_fd, &port, e);
	if (r == 0) r = write_config(dir, port, e);
	if (r < 0) return r;
	r = spawn_nginx(dir, listen_fd, &pid);
	if (r < 0) return err_set(e, r, "start nginx");
	*ret = mem_new(sizeof **ret);
	(*ret)->pid = pid;
	endpoint_local(ret_at, port);
	return 0;
}

struct nginx *nginx_stop(struct nginx *n)
{
	if (!n) return NULL;
	kill(n->pid, SIGTERM);
	while (waitpid(n->pid, NULL, 0) < 0 && errno == EINTR) {
	}
	free(n);
	return NULL;
}

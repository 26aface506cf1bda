/* server.c - listening sockets, the limit of connections, and the end of a server. */
#include "http/internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/net.h"
#include "loop/loop.h"

#define ACCEPTS_MAX     16  /* of one event, so that a storm of clients does not starve those we have */
#define ACCEPT_AGAIN_MS 100 /* after we ran out of descriptors */

struct listener {
	struct http_server *server;
	int fd;
	unsigned index;
	struct watch *watch;
};

/* ---- accepting ---- */

static void watch_listeners(struct http_server *s, bool on)
{
	for (size_t i = 0; i < s->listener_count; i++)
		if (s->listeners[i].watch) watch_want(s->listeners[i].watch, on ? WATCH_IN : 0);
}

static void on_accept_again(void *ctx)
{
	watch_listeners(ctx, true);
}

static void take_client(struct http_server *s, int fd, unsigned index)
{
	bool over_limit = s->conn_count >= s->limits.connections_max;

	if (over_limit && s->over_limit_count >= OVER_LIMIT_MAX) fd_close(fd);
	else conn_start(s, fd, index, over_limit);
}

static void on_client(void *ctx, unsigned events)
{
	struct listener *l = ctx;
	struct http_server *s = l->server;

	(void)events;
	for (unsigned i = 0; i < ACCEPTS_MAX; i++) {
		int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			take_client(s, fd, l->index);
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			/*
			 * The client stays in the queue; to be told of it again and again would help
			 * nobody.
			 */
			log_event(LOG_WARN, "accept_failed", "reason", strerror(errno), NULL);
			watch_listeners(s, false);
			timer_set(s->accept_again, ACCEPT_AGAIN_MS);
			return;
		} else if (errno != ECONNABORTED && errno != EINTR) {
			return;
		}
	}
}

static void close_listeners(struct http_server *s)
{
	for (size_t i = 0; i < s->listener_count; i++) {
		s->listeners[i].watch = watch_free(s->listeners[i].watch);
		s->listeners[i].fd = fd_close(s->listeners[i].fd);
	}
	timer_clear(s->accept_again);
}

/* ---- turns ---- */

/* Before each wait: turns of connections that others have touched. */
static void on_before_wait(void *ctx)
{
	struct http_server *s = ctx;
	struct conn *c;

	while ((c = TAILQ_FIRST(&s->marked))) {
		TAILQ_REMOVE(&s->marked, c, marked);
		c->is_marked = false;
		conn_turn(c);
	}
	if (!s->draining || s->conn_count || s->over_limit_count || !s->on_idle) return;
	void (*on_idle)(void *) = s->on_idle;
	s->on_idle = NULL;
	on_idle(s->idle_ctx);
}

/* ---- life ---- */

int http_server_new(struct loop *loop, const int *listen_fds, size_t listen_count,
		    const struct http_limits *limits, const struct http_callbacks *callbacks, void *ctx,
		    struct http_server **ret, struct err *e)
{
	struct http_server *s = mem_new(sizeof *s);

	(void)e;
	(void)signal(SIGPIPE, SIG_IGN);
	s->loop = loop;
	s->limits = *limits;
	s->callbacks = *callbacks;
	s->ctx = ctx;
	s->head = buf_with_cap(SIZE_MAX / 4);
	s->spare = buf_with_cap(SIZE_MAX / 4);
	TAILQ_INIT(&s->conns);
	TAILQ_INIT(&s->marked);
	s->before_wait = before_wait_new(loop, on_before_wait, s);
	s->accept_again = timer_new(loop, on_accept_again, s);
	s->listeners = mem_new_array(MAX(listen_count, (size_t)1), sizeof *s->listeners);
	s->listener_count = listen_count;
	for (size_t i = 0; i < listen_count; i++) {
		struct listener *l = &s->listeners[i];

		*l = (struct listener){.server = s, .fd = listen_fds[i], .index = (unsigned)i};
		net_set_service_options(l->fd);
		(void)fd_set_nonblocking(l->fd);
		l->watch = watch_new(loop, l->fd, on_client, l);
		watch_want(l->watch, WATCH_IN);
	}
	*ret = s;
	return 0;
}

void http_server_drain(struct http_server *s, void (*on_idle)(void *ctx), void *ctx)
{
	struct conn *c;

	close_listeners(s);
	s->draining = true;
	s->on_idle = on_idle;
	s->idle_ctx = ctx;
	TAILQ_FOREACH(c, &s->conns, all) conn_mark(c);
}

struct http_server *http_server_free(struct http_server *s)
{
	struct conn *c;

	if (!s) return NULL;
	close_listeners(s);
	while ((c = TAILQ_FIRST(&s->conns)))
		conn_free(c);
	before_wait_free(s->before_wait);
	timer_free(s->accept_again);
	buf_done(&s->head);
	buf_done(&s->spare);
	free(s->listeners);
	free(s);
	return NULL;
}

/*
 * fixture.h - a real server on a loopback socket in a thread of its own, and a blocking client in the test's.
 *
 * What the server does is chosen by the path; see on_request(). What happened to it is counted, and tests
 * wait for a count with fixture_wait(). Every wait is bounded by WAIT_S, after which the test fails.
 */
#pragma once

#include "http/http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "http/sse.h"
#include "loop/loop.h"
#include "unit.h"

#define WAIT_S   20
#define FLOOD    70000
#define FILE_LEN (9u << 20) /* more than the pool moves at once */

enum count { GONE, FINISHED, DONE, REQUESTS, IDLE, PIECES, COUNTS };

static struct fixture {
	struct loop *loop;
	struct http_server *server;
	struct watch *wake;
	int wake_fd, port, file_fd;
	uint64_t orders; /* bits written to wake_fd: 1 stop, 2^20 drain */
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	unsigned counts[COUNTS];
	size_t most_pending;
	struct exchange *held;
} fx = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

#define ORDER_STOP  1
#define ORDER_DRAIN (1u << 20)

static void count(enum count what)
{
	pthread_mutex_lock(&fx.mutex);
	fx.counts[what]++;
	pthread_cond_broadcast(&fx.changed);
	pthread_mutex_unlock(&fx.mutex);
}

static inline bool fixture_wait(enum count what, unsigned at_least)
{
	struct timespec until;
	int r = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_S;
	pthread_mutex_lock(&fx.mutex);
	while (fx.counts[what] < at_least && r == 0)
		r = pthread_cond_timedwait(&fx.changed, &fx.mutex, &until);
	bool reached = fx.counts[what] >= at_least;
	pthread_mutex_unlock(&fx.mutex);
	return reached;
}

/* ---- handlers ---- */

static void on_gone(struct exchange *x, void *ctx)
{
	(void)x, (void)ctx;
	count(GONE);
}

static void on_data_done(void *data)
{
	free(data);
	count(DONE);
}

static void echo(struct exchange *x, const char *bytes, size_t len, void *ctx)
{
	(void)ctx;
	if (bytes) http_reply(x, 200, "application/octet-stream", NULL, bytes, len);
	else http_reply_error(x, 413, "payload_too_large", "too large");
}

static void resume_held(void *ctx)
{
	(void)ctx;
	if (fx.held) http_body_resume(fx.held);
}

static bool take_piece(struct exchange *x, const void *bytes, size_t len, void *ctx)
{
	size_t *sum = http_data(x);
	bool pause = ctx != NULL;

	for (size_t i = 0; i < len; i++)
		*sum += ((const unsigned char *)bytes)[i];
	count(PIECES);
	if (pause) loop_defer(fx.loop, resume_held, NULL);
	return !pause;
}

static void answer_sum(struct exchange *x, void *ctx)
{
	char text[32];

	(void)ctx;
	fx.held = NULL;
	(void)snprintf(text, sizeof text, "%zu", *(size_t *)http_data(x));
	http_reply(x, 200, "text/plain", NULL, text, strlen(text));
}

static void second_chunk(void *ctx)
{
	struct exchange *x = ctx;

	http_stream_write(x, "second", 6);
	memcpy(http_stream_reserve(x, 300), "third", 5); /* fewer than asked for */
	http_stream_commit(x, 5);
	http_stream_end(x);
}

static void flood(struct exchange *x, void *ctx)
{
	(void)ctx;
	while (http_stream_pending(x) < 65536) {
		memset(http_stream_reserve(x, FLOOD), 'x', FLOOD);
		http_stream_commit(x, FLOOD);
	}
	pthread_mutex_lock(&fx.mutex);
	fx.most_pending = MAX(fx.most_pending, http_stream_pending(x));
	pthread_mutex_unlock(&fx.mutex);
}

static void abort_later(void *ctx)
{
	http_abort(ctx);
}

static void describe(struct exchange *x)
{
	auto_buf struct buf b = buf_with_cap(100000);
	const char *probe = http_header(x, "x-PROBE");

	(void)buf_addf(&b, "%s|%s|%s|%s|%s|%s|%u", http_method(x), http_target(x), http_path(x),
		       http_query(x) ? http_query(x) : "-", http_host(x), probe ? probe : "-",
		       http_header_count(x, "X-Probe"));
	http_reply(x, 200, "text/plain", "X-Extra: yes\r\n", b.data, b.len);
}

/* What else a test's server can do. */
static void (*fixture_more)(struct exchange *x);

static void on_request(struct exchange *x, void *ctx)
{
	const char *path = http_path(x);
	const struct http_body_sink sink = {.on_piece = take_piece, .on_end = answer_sum};

	(void)ctx;
	count(REQUESTS);
	http_set_data(x, mem_new(sizeof(size_t)), on_data_done);
	http_on_gone(x, on_gone, NULL);
	if (!strcmp(path, "/hello")) {
		http_reply(x, 200, "text/plain", NULL, "hello", 5);
	} else if (!strcmp(path, "/describe")) {
		describe(x);
	} else if (!strcmp(path, "/echo")) {
		http_body_collect(x, 1u << 20, echo, NULL);
	} else if (!strcmp(path, "/sum")) {
		http_body_stream(x, &sink, NULL);
	} else if (!strcmp(path, "/slowsum")) {
		fx.held = x;
		http_body_stream(x, &sink, (void *)1);
	} else if (!strcmp(path, "/stream")) {
		http_stream_begin(x, 200, "text/plain", NULL);
		http_stream_write(x, "first", 5);
		loop_defer(fx.loop, second_chunk, x);
	} else if (!strcmp(path, "/sse")) {
		http_stream_begin(x, 200, "text/event-stream", "Cache-Control: no-cache\r\n");
		sse_event_base64(x, "stdout", "hello\n", 6);
		sse_event_text(x, NULL, "{}");
		sse_comment(x, "keepalive");
		http_stream_end(x);
	} else if (!strcmp(path, "/silent")) {
		http_stream_begin(x, 200, "text/plain", NULL);
	} else if (!strcmp(path, "/flood")) {
		http_on_drain(x, flood, NULL);
		http_stream_begin(x, 200, "text/plain", NULL);
		flood(x, NULL);
	} else if (!strcmp(path, "/abort")) {
		http_stream_begin(x, 200, "text/plain", NULL);
		http_stream_write(x, "part", 4);
		loop_defer(fx.loop, abort_later, x);
	} else if (!strcmp(path, "/file")) {
		http_reply_file(x, 200, NULL, NULL, dup(fx.file_fd), 3, FILE_LEN - 3);
	} else if (!strcmp(path, "/smallfile")) {
		http_reply_file(x, 206, NULL, NULL, dup(fx.file_fd), 1, 1000);
	} else if (!strcmp(path, "/shortfile")) {
		http_reply_file(x, 200, NULL, NULL, dup(fx.file_fd), 0, FILE_LEN + 1);
	} else if (!strcmp(path, "/refuse")) {
		http_reply_error(x, 413, "payload_too_large", "no \"\x01\xc3\xa4\xff\xf0\x9f\x98\x80");
	} else if (!strcmp(path, "/empty")) {
		http_reply(x, 204, NULL, NULL, NULL, 0);
	} else if (fixture_more) {
		fixture_more(x);
	}
	/* Anything else is never answered. */
}

static void on_finished(struct exchange *x, void *ctx)
{
	(void)x, (void)ctx;
	count(FINISHED);
}

/* ---- the server's thread ---- */

static void on_idle(void *ctx)
{
	(void)ctx;
	count(IDLE);
}

static void on_wake(void *ctx, unsigned events)
{
	uint64_t orders = 0;

	(void)ctx, (void)events;
	if (read(fx.wake_fd, &orders, sizeof orders) != sizeof orders) return;
	if (orders & ORDER_DRAIN) http_server_drain(fx.server, on_idle, NULL);
	if (orders & ORDER_STOP) loop_stop(fx.loop);
}

static void *serve(void *arg)
{
	(void)arg;
	loop_run(fx.loop);
	return NULL;
}

static inline void fixture_order(uint64_t order)
{
	ASSERT_EQ(write(fx.wake_fd, &order, sizeof order), sizeof order);
}

static int make_file(void)
{
	int fd = memfd_create("file", MFD_CLOEXEC);
	auto_free char *bytes = malloc(FILE_LEN);

	for (size_t i = 0; i < FILE_LEN; i++)
		bytes[i] = (char)(i * 7 + i / 1000);
	ASSERT_OK(fd_write_all(fd, bytes, FILE_LEN));
	return fd;
}

static inline void fixture_start(const struct http_limits *limits)
{
	static const struct http_limits usual = {.head_max = 16384, .connections_max = 100};
	const struct http_callbacks callbacks = {.on_request = on_request, .on_finished = on_finished};
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t at_len = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memset(fx.counts, 0, sizeof fx.counts);
	fx.most_pending = 0;
	fx.held = NULL;
	fx.file_fd = make_file();
	ASSERT_OK(bind(fd, (struct sockaddr *)&at, sizeof at));
	ASSERT_OK(listen(fd, 100));
	ASSERT_OK(getsockname(fd, (struct sockaddr *)&at, &at_len));
	fx.port = ntohs(at.sin_port);
	ASSERT_OK(loop_new(&fx.loop, NULL));
	ASSERT_OK(http_server_new(fx.loop, &fd, 1, limits ? limits : &usual, &callbacks, NULL, &fx.server,
				  NULL));
	fx.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	fx.wake = watch_new(fx.loop, fx.wake_fd, on_wake, NULL);
	watch_want(fx.wake, WATCH_IN);
	ASSERT_OK(pthread_create(&fx.thread, NULL, serve, NULL));
}

/* Every request that began has ended and has given its data back: checked at the end of each test. */
static inline void fixture_stop(void)
{
	fixture_order(ORDER_STOP);
	ASSERT_OK(pthread_join(fx.thread, NULL));
	fx.server = http_server_free(fx.server);
	fx.wake = watch_free(fx.wake);
	fx.loop = loop_free(fx.loop);
	fd_close(fx.wake_fd);
	fd_close(fx.file_fd);
	ASSERT_EQ(fx.counts[DONE], fx.counts[REQUESTS]);
	ASSERT_EQ(fx.counts[FINISHED], fx.counts[REQUESTS]);
}

/* ---- the client ---- */

static inline int client_connect(void)
{
	const struct timeval limit = {.tv_sec = WAIT_S};
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons((uint16_t)fx.port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ASSERT_OK(connect(fd, (struct sockaddr *)&at, sizeof at));
	ASSERT_OK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
	ASSERT_OK(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit));
	return fd;
}

static inline void client_send(int fd, const char *text)
{
	size_t len = strlen(text);

	ASSERT_EQ(send(fd, text, len, MSG_NOSIGNAL), len);
}

/*
 * Reads until TEXT has been seen at the end, or the connection ends. Returns the last errno, 0 for a clean
 * end or find.
 */
static inline int client_read(int fd, struct buf *got, const char *until)
{
	for (;;) {
		size_t n = until ? strlen(until) : 0;
		char *room = buf_reserve(got, 65536);

		if (n && got->len >= n && !memcmp(got->data + got->len - n, until, n)) return 0;
		assert_non_null(room);
		ssize_t r = recv(fd, room, 65536, 0);
		if (r < 0) return errno;
		if (r == 0) return 0;
		buf_grew(got, (size_t)r);
	}
}

/* Sends TEXT on a connection of its own and returns all that comes until the end (or until UNTIL). */
static inline struct buf client_ask(const char *text, const char *until)
{
	auto_close int fd = client_connect();
	struct buf got = buf_with_cap(64u << 20);

	client_send(fd, text);
	int r = client_read(fd, &got, until);
	if (r != 0) fail_msg("'%s' ended with %s after '%.1000s'", text, strerror(r), buf_text(&got));
	(void)buf_text(&got);
	return got;
}

#define HAS(b, text)     ASSERT_TRUE(strstr(buf_text(&(b)), (text)) != NULL)
#define HAS_NOT(b, text) ASSERT_TRUE(strstr(buf_text(&(b)), (text)) == NULL)

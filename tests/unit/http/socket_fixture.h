/*
 * socket_fixture.h - the fixture's server with sockets that do what a text message says, and a peer who makes
 * its frames by hand.
 */
#pragma once

#include "http/websocket.h"

#include "fixture.h"

/* ---- the server: what a text message says, it does ---- */

struct served {
	uint64_t bytes, sum;
	bool pause;
	size_t flood; /* bytes still to be sent */
};

static unsigned closed_code;
static struct exchange *paused_socket;

static void pour(struct exchange *x, void *ctx)
{
	struct served *s = ctx;
	char block[32768];

	memset(block, 'f', sizeof block);
	while (s->flood && websocket_pending(x) < 65536) {
		size_t n = MIN(s->flood, sizeof block);

		websocket_send_binary(x, block, n);
		s->flood -= n;
	}
	fx.most_pending = MAX(fx.most_pending, websocket_pending(x));
}

static void resume_socket(void *ctx)
{
	(void)ctx;
	if (!paused_socket) return;
	websocket_resume(paused_socket);
	paused_socket = NULL;
}

static bool socket_binary(struct exchange *x, const void *bytes, size_t len, void *ctx)
{
	struct served *s = ctx;

	s->bytes += len;
	for (size_t i = 0; i < len; i++)
		s->sum = s->sum * 31 + ((const unsigned char *)bytes)[i];
	count(PIECES);
	if (!s->pause) return true;
	if (!paused_socket) loop_defer(fx.loop, resume_socket, NULL);
	paused_socket = x;
	return false;
}

static void socket_text(struct exchange *x, const char *text, size_t len, void *ctx)
{
	struct served *s = ctx;
	char answer[80];

	if (!strcmp(text, "sum")) {
		int n = snprintf(answer, sizeof answer, "%llu %llx", (unsigned long long)s->bytes,
				 (unsigned long long)s->sum);
		websocket_send_text(x, answer, (size_t)n);
	} else if (!strcmp(text, "pause")) {
		s->pause = true;
	} else if (!strcmp(text, "big")) {
		auto_free char *block = mem_new(200000);

		memset(block, 'b', 200000);
		websocket_send_binary(x, block, 200000);
	} else if (!strncmp(text, "flood ", 6)) {
		s->flood = strtoul(text + 6, NULL, 10);
		pour(x, s);
	} else if (!strcmp(text, "close")) {
		websocket_send_text(x, "last words", 10);
		websocket_close(x, 4000, "bye");
		websocket_send_text(x, "never heard", 11);
	} else if (!strcmp(text, "abort")) {
		http_abort(x);
	} else {
		websocket_send_text(x, text, len);
	}
}

static void socket_closed(struct exchange *x, unsigned code, void *ctx)
{
	(void)x, (void)ctx;
	if (paused_socket == x) paused_socket = NULL;
	pthread_mutex_lock(&fx.mutex);
	closed_code = code;
	pthread_mutex_unlock(&fx.mutex);
	count(GONE);
}

static void accept_sockets(struct exchange *x)
{
	static const struct websocket_handlers handlers = {.on_binary = socket_binary,
							   .on_text = socket_text,
							   .on_drain = pour,
							   .on_closed = socket_closed};
	struct served *s;

	if (!websocket_is_wanted(x)) {
		http_reply_error(x, 400, "invalid_request", "unwanted");
	} else if (!websocket_is_usable(x)) {
		http_reply_error(x, 400, "invalid_request", "unusable");
	} else {
		s = mem_new(sizeof *s);
		free(http_data(x));
		http_set_data(x, s, on_data_done);
		websocket_accept(x, &handlers, s);
	}
}

/* ---- the peer ---- */

#define FIN  0x80
#define TEXT 1
#define DATA 2
#define BYE  8
#define PING 9
#define PONG 10

#define HANDSHAKE \
	"GET /socket HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n" \
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

/* A frame with a mask, unless BARE. */
static void add_frame(struct buf *b, unsigned first, bool bare, const void *bytes, size_t len)
{
	static const unsigned char mask[4] = {0x12, 0x34, 0x56, 0x78};
	unsigned char head[14] = {(unsigned char)first};
	size_t n = 2;

	if (len < 126) {
		head[1] = (unsigned char)len;
	} else {
		size_t width = len < 65536 ? 2 : 8;

		head[1] = width == 2 ? 126 : 127;
		for (size_t i = 0; i < width; i++)
			head[n++] = (unsigned char)((uint64_t)len >> 8 * (width - 1 - i));
	}
	if (!bare) {
		head[1] |= 0x80;
		memcpy(head + n, mask, 4);
		n += 4;
	}
	ASSERT_OK(buf_add(b, head, n));
	ASSERT_OK(buf_add(b, bytes, len));
	for (size_t i = 0; !bare && i < len; i++)
		b->data[b->len - len + i] ^= (char)mask[i % 4];
}

static void say_frame(int fd, unsigned first, const void *bytes, size_t len)
{
	auto_buf struct buf b = buf_with_cap(SIZE_MAX / 4);

	add_frame(&b, first, false, bytes, len);
	ASSERT_OK(fd_write_all(fd, b.data, b.len));
}

static void say(int fd, const char *text)
{
	say_frame(fd, FIN | TEXT, text, strlen(text));
}

static void read_exactly(int fd, void *to, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = recv(fd, (char *)to + done, len - done, 0);

		if (n <= 0)
			fail_msg("the server ended in the middle of a frame: %zd, %s", n, strerror(errno));
		done += (size_t)n;
	}
}

/* The next frame of the server: its first byte; the payload into GOT. */
static unsigned hear_frame(int fd, struct buf *got)
{
	unsigned char head[10];
	uint64_t len;

	read_exactly(fd, head, 2);
	ASSERT_FALSE(head[1] & 0x80); /* a server masks nothing */
	len = head[1];
	if (len >= 126) {
		size_t width = len == 126 ? 2 : 8;

		read_exactly(fd, head + 2, width);
		len = 0;
		for (size_t i = 0; i < width; i++)
			len = len << 8 | head[2 + i];
	}
	ASSERT_TRUE(len <= WEBSOCKET_FRAME_MAX);
	buf_clear(got);
	if (len) {
		read_exactly(fd, buf_reserve(got, len), len);
		buf_grew(got, len);
	}
	return head[0];
}

static void expect_frame(int fd, unsigned first, const char *text)
{
	auto_buf struct buf got = buf_with_cap(1 << 20);

	ASSERT_EQ(hear_frame(fd, &got), first);
	ASSERT_STR(buf_text(&got), text);
}

/* A close frame of CODE, and then the end of the connection. */
static void expect_close(int fd, unsigned code)
{
	auto_buf struct buf got = buf_with_cap(1 << 20);
	char more;

	ASSERT_EQ(hear_frame(fd, &got), FIN | BYE);
	if (code == WEBSOCKET_NO_CODE) {
		ASSERT_EQ(got.len, 0);
	} else {
		ASSERT_TRUE(got.len >= 2);
		ASSERT_EQ((unsigned char)got.data[0] << 8 | (unsigned char)got.data[1], code);
	}
	ASSERT_EQ(recv(fd, &more, 1, 0), 0);
}

static void expect_upgrade(int fd)
{
	auto_buf struct buf got = buf_with_cap(1 << 20);
	char c;

	while (got.len < 4 || memcmp(got.data + got.len - 4, "\r\n\r\n", 4) != 0) {
		read_exactly(fd, &c, 1);
		ASSERT_OK(buf_add(&got, &c, 1));
	}
	HAS(got, "HTTP/1.1 101 Switching Protocols\r\n");
	HAS(got, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"); /* the example of RFC 6455 1.3 */
}

static int open_socket(void)
{
	int fd = client_connect();

	client_send(fd, HANDSHAKE);
	expect_upgrade(fd);
	return fd;
}

static void sockets_start(void)
{
	fixture_more = accept_sockets;
	closed_code = 0;
	paused_socket = NULL;
	fixture_start(NULL);
}

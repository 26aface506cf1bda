/* measure_pty.c - terminals: how long a key takes to come back, and how much output passes. */
#include <errno.h>
#include <stdio.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "bench.h"
#include "exec.h"
#include "floor_pty.h"
#include "socket.h"

#define KEYS 40 /* in a round */

/* Both sides write 32 MB once they are told. */
#define BYTES  ((uint64_t)32 << 20)
#define WRITER "read go; exec dd if=/dev/zero bs=64k count=512 status=none"

static char *const writer[] = {"sh", "-c", WRITER, NULL};
static const char make_writer[] = "{\"argv\":[\"sh\",\"-c\",\"printf '#!/bin/sh\\\\n" WRITER
				  "\\\\n' > /workspace/writer; chmod +x /workspace/writer\"]}";

struct terminals {
	struct socket socket;
	struct pty_relay relay;
};

static int open_terminal(struct bench *b, const char *shell, struct socket *s, struct err *e)
{
	char path[256];

	snprintf(path, sizeof path, "/v1/sandbox/%s/pty?shell=%s", b->sandbox, shell);
	return socket_open(s, &b->server_at, path, e);
}

/* The echo of KEY is COUNT bytes: it comes from the terminal itself, no program takes part. */
static int echo_ours(struct terminals *t, char key, uint64_t count, struct err *e)
{
	int r = socket_send(&t->socket, &key, 1, e);

	return r < 0 ? r : socket_skip(&t->socket, count, e);
}

static int echo_floor(struct terminals *t, char key, size_t count, struct err *e)
{
	char echo[8];
	int r = fd_write_all(t->relay.fd, &key, 1);

	while (r == 0 && count) {
		ssize_t n = read(t->relay.fd, echo, MIN(count, sizeof echo));

		if (n <= 0) r = -EPROTO;
		else count -= (size_t)n;
	}
	return r < 0 ? err_set(e, r, "wait for the echo of a key") : 0;
}

/* Types a letter and takes it back. */
static int one_key(struct bench *b, struct terminals *t, struct err *e)
{
	double began = now_us(), between;
	int r = echo_ours(t, 'a', 1, e);

	between = now_us();
	if (r == 0) r = echo_floor(t, 'a', 1, e);
	if (r < 0) return r;
	sample_ours(b, ROW_PTY_ECHO, between - began);
	sample_floor(b, ROW_PTY_ECHO, now_us() - between);
	r = echo_ours(t, 0x7f, 3, e);
	return r < 0 ? r : echo_floor(t, 0x7f, 3, e);
}

static int bulk_ours(struct bench *b, struct err *e)
{
	struct socket s = {0};
	double began = 0;
	int r = open_terminal(b, "/workspace/writer", &s, e);

	if (r == 0) {
		began = now_us();
		r = socket_send(&s, "\n", 1, e);
	}
	if (r == 0) r = socket_skip(&s, BYTES, e);
	if (r == 0) sample_ours(b, ROW_PTY_BULK, (double)BYTES / (now_us() - began));
	socket_done(&s);
	return r;
}

static int bulk(struct bench *b, struct err *e)
{
	double us;
	int r = bulk_ours(b, e);

	if (r == 0) r = pty_read_floor(writer, BYTES, &us, e);
	if (r == 0) sample_floor(b, ROW_PTY_BULK, (double)BYTES / us);
	return r;
}

static int pty_begin(struct bench *b, void **ret_state, struct err *e)
{
	struct terminals *t = mem_new(sizeof *t);
	int r;

	*ret_state = t;
	r = sandbox_exec(&b->client, b->sandbox, make_writer, NULL, e);
	if (r == 0) r = open_terminal(b, "/bin/cat", &t->socket, e);
	return r < 0 ? r : pty_relay_start(&t->relay, e);
}

static int pty_round(struct bench *b, void *state, struct err *e)
{
	int r = 0;

	for (int i = 0; r == 0 && i < KEYS; i++)
		r = one_key(b, state, e);
	return r < 0 ? r : bulk(b, e);
}

static void pty_end(void *state)
{
	struct terminals *t = state;

	if (!t) return;
	socket_done(&t->socket);
	pty_relay_end(&t->relay);
	free(t);
}

const struct measurement measure_pty = {.begin = pty_begin, .round = pty_round, .end = pty_end};

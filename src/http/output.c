/* output.c - bytes to the kernel: tried at once, kept when it does not take them. Runs no callback. */
#include "http/internal.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/mem.h"

#define SPARE_MIN 16384
#define SPARE_MAX (1u << 20)

static size_t sent(struct conn *c, ssize_t n, size_t wanted)
{
	if (n < 0 && errno != EAGAIN) {
		c->broken = true;
		return wanted;
	}
	if (n < (ssize_t)wanted) c->blocked = true;
	if (n <= 0) return 0;
	c->progress = true;
	if (c->x) c->x->bytes_sent += (size_t)n;
	return (size_t)n;
}

void output_send_parts(struct conn *c, const struct iovec *parts, size_t count)
{
	struct msghdr msg = {.msg_iov = (struct iovec *)parts, .msg_iovlen = count};
	size_t len = 0, done = 0;

	if (c->broken) return;
	for (size_t i = 0; i < count; i++)
		len += parts[i].iov_len;
	if (!c->out.len && !c->blocked)
		done = sent(c, sendmsg(c->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT), len);
	if (done == len) return;

	char *at = output_reserve(c, len - done);
	for (size_t i = 0; i < count; i++) {
		size_t skip = MIN(done, parts[i].iov_len), rest = parts[i].iov_len - skip;

		if (rest) memcpy(at, (char *)parts[i].iov_base + skip, rest);
		at += rest;
		done -= skip;
		buf_grew(&c->out, rest);
	}
}

void output_send(struct conn *c, const void *head, size_t head_len, const void *body, size_t body_len)
{
	const struct iovec parts[] = {{.iov_base = (void *)head, .iov_len = head_len},
				      {.iov_base = (void *)body, .iov_len = body_len}};

	output_send_parts(c, parts, body_len ? 2 : 1);
}

void output_flush(struct conn *c)
{
	if (!c->out.len || c->blocked || c->broken) return;
	buf_take(&c->out,
		 sent(c, send(c->fd, c->out.data, c->out.len, MSG_NOSIGNAL | MSG_DONTWAIT), c->out.len));
}

char *output_reserve(struct conn *c, size_t len)
{
	struct http_server *s = c->server;

	if (!c->out.room && s->spare.room && len > SPARE_MIN / 16) {
		c->out = s->spare;
		s->spare = buf_with_cap(SIZE_MAX / 4);
	}
	return buf_reserve(&c->out, len);
}

void output_release(struct conn *c)
{
	struct http_server *s = c->server;

	if (c->out.len || !c->out.room) return;
	if (c->out.room >= SPARE_MIN && c->out.room <= SPARE_MAX && !s->spare.room) {
		s->spare = c->out;
		buf_clear(&s->spare);
		c->out = buf_with_cap(SIZE_MAX / 4);
		return;
	}
	buf_reset(&c->out);
}

#include "socket.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"

#define OPCODE_BINARY 2
#define PAYLOAD_MAX   125 /* of one that has its length in the second byte */

int socket_open(struct socket *s, const struct endpoint *to, const char *path, struct err *e)
{
	int r = client_open(&s->client, to, e);

	if (r < 0) return r;
	s->client.headers = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
			    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
	r = client_send(&s->client, "GET", path, NULL, 0, e);
	if (r < 0) return r;
	r = client_status(&s->client, e);
	if (r < 0) return r;
	return r == 101 ? 0 : err_say(e, -EPROTO, "GET %s: status %d instead of 101", path, r);
}

void socket_done(struct socket *s)
{
	client_done(&s->client);
}

int socket_send(struct socket *s, const void *bytes, size_t len, struct err *e)
{
	/* A client masks what it sends; with zeros that changes nothing. */
	uint8_t frame[2 + 4 + PAYLOAD_MAX] = {0x80 | OPCODE_BINARY, 0x80 | (uint8_t)len};
	int r;

	memcpy(frame + 6, bytes, MIN(len, (size_t)PAYLOAD_MAX));
	r = fd_write_all(s->client.fd, frame, 6 + len);
	return r < 0 ? err_set(e, r, "write to the socket") : 0;
}

/* Waits until there is something to look at. */
static int fill(struct socket *s, struct err *e)
{
	ssize_t n = s->len ? (ssize_t)s->len : client_body(&s->client, &s->bytes, e);

	if (n > 0) s->len = (size_t)n;
	return n < 0 ? (int)n : 0;
}

static int take_byte(struct socket *s, uint8_t *ret, struct err *e)
{
	int r = fill(s, e);

	if (r < 0) return r;
	*ret = (uint8_t)*s->bytes++;
	s->len--;
	return 0;
}

static int take_head(struct socket *s, struct err *e)
{
	uint8_t first = 0, length = 0, byte = 0;
	int r = take_byte(s, &first, e);

	if (r == 0) r = take_byte(s, &length, e);
	if (r < 0) return r;
	if (first & 0x0f) s->is_binary = (first & 0x0f) == OPCODE_BINARY;
	s->left = length <= PAYLOAD_MAX ? length : 0;
	for (int i = length == 126 ? 2 : length == 127 ? 8 : 0; i > 0 && r == 0; i--) {
		r = take_byte(s, &byte, e);
		s->left = s->left << 8 | byte;
	}
	return r;
}

ssize_t socket_receive(struct socket *s, bool *ret_binary, const char **ret_bytes, struct err *e)
{
	size_t n;

	while (!s->left) {
		int r = take_head(s, e);

		if (r < 0) return r;
	}
	int r = fill(s, e);
	if (r < 0) return r;
	n = (size_t)MIN(s->left, (uint64_t)s->len);
	*ret_bytes = s->bytes;
	*ret_binary = s->is_binary;
	s->bytes += n;
	s->len -= n;
	s->left -= n;
	return (ssize_t)n;
}

int socket_skip(struct socket *s, uint64_t count, struct err *e)
{
	while (count) {
		const char *bytes;
		bool is_binary;
		ssize_t n = socket_receive(s, &is_binary, &bytes, e);

		if (n < 0) return (int)n;
		if (is_binary) count -= MIN((uint64_t)n, count);
		else if (n >= 7 && memmem(bytes, (size_t)n, "\"error\"", 7))
			return err_say(e, -EPROTO, "the terminal says %.*s", (int)MIN(n, (ssize_t)150),
				       bytes);
	}
	return 0;
}

#include "client.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"

#define IN_SIZE (256 * 1024)

int endpoint_parse(const char *url, struct endpoint *ret, struct err *e)
{
	char name[64], port[8] = "80", rest = 0;
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = NULL;

	int fields = sscanf(url, "http://%63[^:/]:%7[0-9]%c", name, port, &rest);
	if (fields < 1 || (rest && rest != '/'))
		return err_say(e, -EINVAL, "'%s' is not http://host:port", url);
	int r = getaddrinfo(name, port, &hints, &found);
	if (r) return err_say(e, -EINVAL, "look up '%s': %s", name, gai_strerror(r));
	memcpy(&ret->address, found->ai_addr, sizeof ret->address);
	freeaddrinfo(found);
	snprintf(ret->host, sizeof ret->host, "%s:%s", name, port);
	return 0;
}

void endpoint_local(struct endpoint *ret, unsigned port)
{
	ret->address = (struct sockaddr_in){.sin_family = AF_INET,
					    .sin_port = htons((uint16_t)port),
					    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	snprintf(ret->host, sizeof ret->host, "127.0.0.1:%u", port);
}

int client_open(struct client *c, const struct endpoint *to, struct err *e)
{
	auto_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;

	if (fd < 0) return err_set(e, -errno, "make a socket");
	if (connect(fd, (const struct sockaddr *)&to->address, sizeof to->address) < 0)
		return err_set(e, -errno, "connect to %s", to->host);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	*c = (struct client){.to = to, .fd = take_fd(&fd), .in = mem_new(IN_SIZE)};
	return 0;
}

void client_done(struct client *c)
{
	if (c->in) fd_close(c->fd);
	free(c->in);
	*c = (struct client){0};
}

/* Sends all of both parts. */
static int send_parts(int fd, struct iovec part[2])
{
	struct msghdr message = {.msg_iov = part, .msg_iovlen = 2};

	while (part[0].iov_len + part[1].iov_len) {
		ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR) continue;
		if (sent < 0) return -errno;
		for (int i = 0; i < 2; i++) {
			size_t took = MIN((size_t)sent, part[i].iov_len);
			part[i].iov_base = (char *)part[i].iov_base + took;
			part[i].iov_len -= took;
			sent -= (ssize_t)took;
		}
	}
	return 0;
}

/* LENGTH: of the body; negative: there is none. BODY may be NULL: it follows. */
static int send_request(struct client *c, const char *method, const char *path, const void *body,
			ssize_t length, struct err *e)
{
	char head[2048], key[512] = "", length_line[64] = "";

	if (c->to->key) snprintf(key, sizeof key, "Authorization: Bearer %s\r\n", c->to->key);
	if (length >= 0) snprintf(length_line, sizeof length_line, "Content-Length: %zd\r\n", length);
	int n = snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: %s\r\n%s%s%s\r\n", method, path,
			 c->to->host, key, length_line, c->headers ? c->headers : "");
	if (n >= (int)sizeof head) return err_say(e, -E2BIG, "the request's head is too long");

	struct iovec part[2] = {{head, (size_t)n}, {(void *)(uintptr_t)body, body ? (size_t)length : 0}};
	int r = send_parts(c->fd, part);
	if (r < 0) return err_set(e, r, "send %s %s", method, path);
	return 0;
}

int client_send(struct client *c, const char *method, const char *path, const void *body, size_t len,
		struct err *e)
{
	return send_request(c, method, path, body, body ? (ssize_t)len : -1, e);
}

int client_send_head(struct client *c, const char *method, const char *path, size_t len, struct err *e)
{
	return send_request(c, method, path, NULL, (ssize_t)len, e);
}

/* Waits for more bytes behind those not consumed. */
static int receive(struct client *c, struct err *e)
{
	ssize_t n;

	if (c->start == c->end) c->start = c->end = 0;
	if (c->end == IN_SIZE) {
		memmove(c->in, c->in + c->start, c->end - c->start);
		c->end -= c->start;
		c->start = 0;
	}
	do
		n = recv(c->fd, c->in + c->end, IN_SIZE - c->end, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0) return err_set(e, -errno, "receive a response");
	if (n == 0)
		return err_say(e, -ECONNRESET,
			       "the server closed the connection in the middle of a response");
	c->end += (size_t)n;
	return 0;
}

/* Consumes one line; *RET points to it, NUL instead of CR LF. Good until the next receive(). */
static int take_line(struct client *c, char **ret, struct err *e)
{
	for (;;) {
		char *line = c->in + c->start, *end = memchr(line, '\n', c->end - c->start);
		if (end) {
			c->start += (size_t)(end - line) + 1;
			*(end > line && end[-1] == '\r' ? end - 1 : end) = '\0';
			*ret = line;
			return 0;
		}
		int r = receive(c, e);
		if (r < 0) return r;
	}
}

int client_status(struct client *c, struct err *e)
{
	char *line;
	int status, r = take_line(c, &line, e);

	if (r < 0) return r;
	if (sscanf(line, "HTTP/1.1 %d", &status) != 1)
		return err_say(e, -EPROTO, "not an HTTP/1.1 response: '%.60s'", line);
	c->chunked = false;
	c->left = 0;
	for (;;) {
		r = take_line(c, &line, e);
		if (r < 0) return r;
		if (*line == '\0') break;
		if (strncasecmp(line, "content-length:", 15) == 0) c->left = atoll(line + 15);
		if (strncasecmp(line, "transfer-encoding:", 18) == 0)
			c->chunked = strstr(line, "chunked") != NULL;
	}
	if (status == 101) c->left = INT64_MAX;
	c->body_over = !c->chunked && c->left == 0;
	return status;
}

/* Between chunks: reads the next one's size into LEFT; notices the last. */
static int next_chunk(struct client *c, struct err *e)
{
	char *line;
	int r = take_line(c, &line, e);

	if (r == 0 && *line == '\0') r = take_line(c, &line, e); /* the end of the chunk before */
	if (r < 0) return r;
	c->left = strtoll(line, NULL, 16);
	if (c->left) return 0;
	while (r == 0 && *line)
		r = take_line(c, &line, e);
	c->body_over = true;
	return r;
}

ssize_t client_body(struct client *c, const char **ret_bytes, struct err *e)
{
	int r = 0;

	if (!c->body_over && c->chunked && c->left == 0) r = next_chunk(c, e);
	if (r == 0 && !c->body_over && c->start == c->end) r = receive(c, e);
	if (r < 0) return r;
	if (c->body_over) return 0;

	size_t len = MIN((size_t)c->left, c->end - c->start);
	*ret_bytes = c->in + c->start;
	c->start += len;
	c->left -= (int64_t)len;
	if (c->left == 0 && !c->chunked) c->body_over = true;
	return (ssize_t)len;
}

int client_finish(struct client *c, int expected, struct buf *body_out, struct err *e)
{
	const char *bytes;
	ssize_t n;
	int status = client_status(c, e);

	if (status < 0) return status;
	while ((n = client_body(c, &bytes, e)) > 0)
		if (body_out) (void)buf_add(body_out, bytes, (size_t)n);
	if (n < 0) return (int)n;
	return status == expected ? 0 : err_say(e, -EPROTO, "status %d instead of %d", status, expected);
}

int client_request(struct client *c, const char *method, const char *path, const void *body, size_t len,
		   int expected, struct buf *body_out, struct err *e)
{
	int r = client_send(c, method, path, body, len, e);

	if (r == 0) r = client_finish(c, expected, body_out, e);
	return r < 0 ? err_add(e, "%s %s", method, path) : 0;
}

/*
 * client.h - a small blocking HTTP/1.1 client on one kept-alive connection, made for measuring.
 *
 * A request leaves in one system call; a body is handed out in the slices it arrived in, without a copy. It
 * trusts the server: it is pointed at our own, at nginx, or at a server the user names.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

struct err;

struct endpoint {
	struct sockaddr_in address;
	char host[80];   /* for the Host header: "127.0.0.1:8787" */
	const char *key; /* SANDBOX_API_KEY or NULL */
};

struct client {
	const struct endpoint *to;
	const char *headers; /* lines that go with every request, each with its CR LF; NULL: none */
	int fd;
	char *in; /* received and not yet consumed: in[start] to in[end-1] */
	size_t start, end;
	int64_t left; /* of the body, or of the chunk we are in */
	bool chunked, body_over;
};

/* URL is "http://host[:port]"; the host may be a name. */
int endpoint_parse(const char *url, struct endpoint *ret, struct err *e);
void endpoint_local(struct endpoint *ret, unsigned port);

/* Borrows TO. client_done is fine on a zeroed client. */
int client_open(struct client *c, const struct endpoint *to, struct err *e);
void client_done(struct client *c);

/* Sends a request; BODY may be NULL. Then client_status() must be called, and client_body() until it gives 0.
 */
int client_send(struct client *c, const char *method, const char *path, const void *body, size_t len,
		struct err *e);

/* The same for a body that the caller writes to FD itself: LEN bytes. */
int client_send_head(struct client *c, const char *method, const char *path, size_t len, struct err *e);

/*
 * Waits for the head of the response: its status, or a negative errno. After a 101 the body is what the other
 * protocol's peer sends, without an end.
 */
int client_status(struct client *c, struct err *e);

/* The next slice of the body, good until the next call; 0 after the last one; or a negative errno. */
ssize_t client_body(struct client *c, const char **ret_bytes, struct err *e);

/*
 * The response to what was sent; its body goes to BODY_OUT (NULL: it is dropped). An answer other than
 * EXPECTED is -EPROTO with the status in E.
 */
int client_finish(struct client *c, int expected, struct buf *body_out, struct err *e);

/* All of it together. */
int client_request(struct client *c, const char *method, const char *path, const void *body, size_t len,
		   int expected, struct buf *body_out, struct err *e);

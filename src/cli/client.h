/*
 * client.h - the public HTTP API, as the client commands use it: one request at a time, bodies streamed in
 * flat memory.
 *
 * Failures that the server explains carry its own sentence. -EINVAL: the request was at fault (4xx);
 * -EREMOTEIO: the server failed; anything else: the way to it, or a callback.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct buf;
struct client;
struct err;

/*
 * URL, or NULL for TOMBOLO_URL or http://127.0.0.1:8787. The key comes from TOMBOLO_API_KEY or
 * SANDBOX_API_KEY only: a command line is visible to every process of the machine.
 */
int client_new(const char *url, struct client **ret, struct err *e);
struct client *client_free(struct client *c);

/* A piece of the body of a 2xx response. A negative answer cuts the transfer and is returned by
 * client_call(). */
typedef int on_client_bytes(void *ctx, const char *bytes, size_t len, struct err *e);

struct client_request {
	const char *method, *path; /* PATH is already percent-encoded */
	const char *header;        /* one more "Name: value", or NULL */
	const char *json;          /* body, or NULL */
	int upload_fd;             /* body when UPLOADS is set; sent as it is read */
	int64_t upload_size;       /* -1: until the end of the file, in chunks */
	int uploads;
	on_client_bytes *on_bytes; /* NULL: the body is collected into *RET_BODY, or dropped */
	void *ctx;
};

/* RET_BODY may be NULL. */
int client_call(struct client *c, const struct client_request *q, struct buf *ret_body, struct err *e);

/* Appends TEXT with everything but unreserved characters and '/' percent-encoded. */
int client_add_path(struct buf *path, const char *text);

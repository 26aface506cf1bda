/*
 * http.h - one HTTP/1.1 server on one loop, as its handlers see it. It does not know what it serves.
 *
 * An *exchange* is one request and its response on a connection. The handler meets it when the head is
 * complete and has passed the guards (http/guard.h); it decides what happens to the body, and answers
 * exactly once: with a whole response, or with a stream. Exchanges on one connection are strictly one
 * after the other; what a pipelining client sends early waits unread (that is the back-pressure).
 *
 * Life of an exchange: it belongs to the server. It ends (memory gone) after the response is complete and
 * the body was read, or after on_gone. A handler that keeps a pointer across callbacks must set on_gone
 * to hear of the latter.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct loop;
struct http_server;
struct exchange;

struct http_limits {
	size_t head_max;          /* bytes of request line and headers; above: 431 */
	unsigned head_timeout_ms; /* from the accept or first byte to the end of the head: 408 or close */
	unsigned idle_timeout_ms; /* a kept-alive connection without a request */
	unsigned body_idle_timeout_ms;  /* between two reads of a body that we are waiting for: 408 */
	unsigned write_idle_timeout_ms; /* a response of which the client reads nothing; 0: never */
	unsigned connections_max;       /* above, new connections get 503 and are closed */
};

struct http_callbacks {
	/* The head is complete. Must, now or later, answer. Runs on the loop. */
	void (*on_request)(struct exchange *x, void *ctx);
	/*
	 * After the last byte of a response was handed to the kernel or the client was lost: for the access
	 * log.
	 */
	void (*on_finished)(struct exchange *x, void *ctx);
};

/*
 * Takes LISTEN_FDS (bound, listening); borrows LOOP. Copies LIMITS and CALLBACKS. Ignores SIGPIPE in the
 * process: sendfile() knows no other way to be told.
 */
int http_server_new(struct loop *loop, const int *listen_fds, size_t listen_count,
		    const struct http_limits *limits, const struct http_callbacks *callbacks, void *ctx,
		    struct http_server **ret, struct err *e);

/* Stops accepting and closes idle connections; ON_IDLE(ctx) once when none is left. */
void http_server_drain(struct http_server *s, void (*on_idle)(void *ctx), void *ctx);

/* Cuts every connection: handlers hear on_gone. Not from inside a callback of this server. NULL is fine. */
struct http_server *http_server_free(struct http_server *s);

/* ---- the request ---- */

const char *http_method(const struct exchange *x); /* "GET" */
/* As sent, but reduced to path[?query] and pure ASCII. */
const char *http_target(const struct exchange *x);
/* Its parts: the path normalised (http/target.h), for routers; the query raw, without '?', or NULL. */
const char *http_path(const struct exchange *x);
const char *http_query(const struct exchange *x);
/* Of an absolute target, else the Host header; "" without. */
const char *http_host(const struct exchange *x);

/* The value of a header (name in any case), NULL if absent. Repeated headers: the first. */
const char *http_header(const struct exchange *x, const char *name);
unsigned http_header_count(const struct exchange *x, const char *name);

bool http_has_body(const struct exchange *x);          /* Content-Length > 0 or chunked */
int64_t http_content_length(const struct exchange *x); /* -1: not given (chunked or none) */
unsigned http_listener(const struct exchange *x);      /* index into listen_fds */

/*
 * What the handler wants to remember with the exchange. DONE(data) is called when the exchange ends; may be
 * NULL.
 */
void http_set_data(struct exchange *x, void *data, void (*done)(void *data));
void *http_data(const struct exchange *x);

/* ---- the body: choose exactly one, inside on_request or later; until then nothing is read ---- */

/* The default: thrown away, at most 64 KiB; a longer one closes the connection after the response. */
void http_body_ignore(struct exchange *x);

/*
 * Collected whole, then ON_BODY(x, bytes, len, ctx); BYTES are valid during the call. Above CAP (judged
 * early by Content-Length, otherwise while reading): ON_BODY(x, NULL, bytes_seen_or_announced, ctx) once,
 * and the rest is not read.
 */
void http_body_collect(struct exchange *x, size_t cap,
		       void (*on_body)(struct exchange *x, const char *bytes, size_t len, void *ctx),
		       void *ctx);

struct http_body_sink {
	/* A piece, valid during the call. Return false to pause: http_body_resume() asks for the next one. */
	bool (*on_piece)(struct exchange *x, const void *bytes, size_t len, void *ctx);
	/* The body is complete. */
	void (*on_end)(struct exchange *x, void *ctx);
};

/* Streamed with back-pressure. Like http_body_collect() it says "100 Continue" to whom waits for it. */
void http_body_stream(struct exchange *x, const struct http_body_sink *sink, void *ctx);
void http_body_resume(struct exchange *x);

/* ---- the response: exactly one ---- */

/* A whole response. HEADERS is "Name: value\r\n..." or NULL; TYPE may be NULL. Copies all. Handles HEAD. */
void http_reply(struct exchange *x, unsigned status, const char *type, const char *headers, const void *body,
		size_t len);

/* {"error":MESSAGE,"code":CODE} and nothing else. MESSAGE may be any bytes; the JSON is pure ASCII. */
void http_reply_error(struct exchange *x, unsigned status, const char *code, const char *message);

/* A head with a chunked body to follow. It is sent at the end of this turn of the loop, body or not. */
void http_stream_begin(struct exchange *x, unsigned status, const char *type, const char *headers);

/*
 * Room for at least LEN bytes at the end of the output, to be filled in place and claimed by
 * http_stream_commit(); one commit makes one chunk. Never NULL. HTTP/1.0 clients get the bytes without
 * chunking and a close at the end.
 */
char *http_stream_reserve(struct exchange *x, size_t len);
void http_stream_commit(struct exchange *x, size_t len);
void http_stream_write(struct exchange *x, const void *bytes, size_t len);

/* Bytes that the kernel has not taken yet. Writers stop above a mark of their own (64 KiB) until on_drain. */
size_t http_stream_pending(const struct exchange *x);

/* ON_DRAIN(x, ctx) whenever all that was written has gone to the kernel. NULL: not wanted. */
void http_on_drain(struct exchange *x, void (*on_drain)(struct exchange *x, void *ctx), void *ctx);

/* The last chunk. */
void http_stream_end(struct exchange *x);

/*
 * LEN bytes of FD from OFFSET as the body, with Content-Length, moved by sendfile off the loop's thread
 * so that a slow disk delays nobody else. Takes FD. A file that ends early cuts the connection: never a
 * short body that looks whole.
 */
void http_reply_file(struct exchange *x, unsigned status, const char *type, const char *headers, int fd,
		     uint64_t offset, uint64_t len);

/* Resets the connection: the only honest end of a response that cannot be completed. */
void http_abort(struct exchange *x);

/*
 * ON_GONE(x, ctx) once if the client goes away before the response is complete; X is dead after the call.
 *
 * What "away" means: a reset, a failed write, a time limit, or an end in the middle of the body, always.
 * A client that only closed its sending half (the end of `printf ... | nc`) may still read and gets a
 * whole response or a file. A stream can be silent for hours, and then this is all that a killed client
 * leaves to see: there it counts as away.
 *
 * After http_reply(), http_reply_file(), http_stream_end() and http_abort() the handler is done: it hears no
 * on_gone any more, only DONE(data) of http_set_data().
 */
void http_on_gone(struct exchange *x, void (*on_gone)(struct exchange *x, void *ctx), void *ctx);

/*
 * For streams where nothing depends on hearing soon that the client is away: a half-closed one may still
 * be read. Such a client's real end is seen at the next write, so the stream must not be silent for ever.
 */
void http_stream_outlives_half_close(struct exchange *x);

/* What was answered: for logs. 0 when nothing was. */
unsigned http_status(const struct exchange *x);
uint64_t http_bytes_sent(const struct exchange *x);
uint64_t http_duration_ms(const struct exchange *x);

/* Whether GIVEN is SECRET, in a time that does not tell where they differ (only whether their lengths do). */
bool http_equal_secret(const char *given, const char *secret);

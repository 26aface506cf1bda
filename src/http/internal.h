/*
 * internal.h - what the files of this room share. Nobody else includes it.
 *
 * Theory of operation. Two kinds of code touch a connection:
 *
 *  - the handler's side (exchange.c, and the http_... calls of others), at any time, also from callbacks of
 *    other connections. It only notes what is wanted, adds to the output, and calls conn_mark(). It runs no
 *    callback, and after it returns the connection and the exchange are still there.
 *  - the loop's side, conn_turn(): it flushes, runs callbacks, ends exchanges, starts the next one, decides
 *    what to wait for, and is the only place where a connection dies. It runs after each event of the
 *    connection's own descriptor and timer, and for marked connections before the loop waits. So what a
 *    handler does in one turn (headers, first event, last chunk) goes out in one send.
 *
 *	OPEN: head ──▶ exchange (c->x) ──answered, body read──▶ head ...
 *	   │ fault                │ fault, client half gone, Connection: close
 *	   ▼                      ▼
 *	PARTING: the last output is flushed, then our half is closed
 *	   ▼
 *	LINGERING: what still comes is thrown away, so that no reset overtakes our answer
 *	   ▼
 *	DEAD ◀── from anywhere: reset, time, abort
 *
 * Input: read into the server's one buffer; only what cannot be used at once (a head in pieces, the next
 * request of a pipeline, a paused body) is kept in c->in. While something is kept and may not be used,
 * the socket is not read.
 *
 * The room's inner order, which tests/unit/floors.py and calls.py check: each file includes and calls only
 * what stands on lines below its own.
 *
 *   server                      listening, all connections
 *   conn                        the loop's side
 *   request                     input to exchanges
 *   ends                        of exchanges; refusals
 *   websocket, sse              streams of two kinds
 *   exchange, asked             the handler's side: answers; the request
 *   sendfile                    files to the kernel
 *   output, error               bytes to the kernel; how "no" is said
 *   internal                    what all of the above share
 *   guard, target, multipart, base64, secret
 *   http                        what others may ask of the room
 *
 * The last line but one is of bytes alone, and knows of no connection. One call goes up: conn_mark().
 */
#pragma once

#include <llhttp.h>
#include <sys/queue.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "http/guard.h"
#include "http/http.h"
#include "http/target.h"

#define READ_ROOM      65536
#define OUT_HIGH       65536 /* above, output is sent without waiting for the end of the turn */
#define IGNORE_MAX     65536 /* of a body that nobody wants */
#define LINGER_BYTES   (64u << 20)
#define LINGER_IDLE_MS 2000
#define LINGER_ALL_MS  15000
#define OVER_LIMIT_MAX 64 /* connections above connections_max that are told so; more are just closed */

/* ---- one request and its response ---- */

enum body_mode { BODY_UNDECIDED, BODY_IGNORED, BODY_COLLECTED, BODY_STREAMED };

enum answer { ANSWER_NONE, ANSWER_STREAM, ANSWER_FILE, ANSWER_SOCKET, ANSWER_COMPLETE };

struct field {
	uint32_t name, name_len, value, value_len; /* offsets in the head */
};

struct exchange {
	struct conn *conn;
	uint64_t started_ms;

	/* The request. Strings point into the head, which is our copy and was cut at their ends. */
	char *head;
	size_t head_len;
	const char *method, *target, *host;
	struct target url;
	char *url_room;
	struct field *fields;
	unsigned field_count;
	struct guard_facts facts;
	int64_t content_length;
	bool chunked, keep_alive, old_version, is_head, version_known, head_parsed;

	enum body_mode body_mode;
	bool body_done, body_paused, body_too_large, body_told, continue_due, in_trailers;
	uint64_t body_seen; /* bytes of it so far */
	size_t framing;     /* chunk lines since the last piece of it */
	struct buf body;    /* collected */
	void (*on_body)(struct exchange *x, const char *bytes, size_t len, void *ctx);
	struct http_body_sink sink;
	void *body_ctx;

	enum answer answer;
	struct websocket *socket; /* of ANSWER_SOCKET, and until the exchange ends */
	unsigned status;
	bool aborted, bodyless, drain_due;
	bool outlives_half_close; /* see http_stream_outlives_half_close() */
	unsigned chunk_digits;    /* of the room that was reserved */
	uint64_t bytes_sent;
	void (*on_drain)(struct exchange *x, void *ctx);
	void *drain_ctx;
	void (*on_gone)(struct exchange *x, void *ctx);
	void *gone_ctx;
	void *data;
	void (*done)(void *data);
};

/* ---- a connection ---- */

enum conn_state { CONN_OPEN, CONN_PARTING, CONN_LINGERING, CONN_DEAD };

/* What a connection is waiting for: decides its deadline. */
enum phase { PHASE_NEW, PHASE_IDLE, PHASE_HEAD, PHASE_BODY, PHASE_WRITE, PHASE_LINGER, PHASE_HANDLER };

struct conn {
	struct http_server *server;
	TAILQ_ENTRY(conn) all, marked;
	int fd;
	unsigned listener;
	enum conn_state state;
	struct watch *watch;            /* NULL until we have to wait for the first time */
	struct timer *timer;            /* likewise */
	uint64_t deadline_ms, timer_ms; /* the timer may be due before the deadline; it then looks again */
	enum phase phase;
	bool is_marked, in_turn, again; /* see conn_mark() */
	bool progress;                  /* bytes moved since the deadline was set */
	bool served;                    /* a request was answered: between requests the idle limit counts */
	bool input_waits;               /* there is input that we do not want yet: not watched until we do */
	bool half_closed;               /* the client's sending half is closed... */
	bool at_end;                    /* ...and read to its end */
	bool broken;                    /* a read or write failed */
	bool blocked;                   /* the kernel's send buffer is full */
	bool cut;                       /* close with a reset */
	bool input_lost;                /* the input is beyond use: close after the response */
	bool over_limit;
	llhttp_t parser;
	struct guard guard;
	struct buf in, out;
	struct exchange *x;
	struct file_job *file;
	uint64_t lingered, linger_end_ms;
};

TAILQ_HEAD(conn_list, conn);

struct http_server {
	struct loop *loop;
	struct before_wait *before_wait;
	struct http_limits limits;
	struct http_callbacks callbacks;
	void *ctx;
	struct listener *listeners;
	size_t listener_count;
	struct timer *accept_again;
	struct conn_list conns, marked;
	unsigned conn_count, over_limit_count;
	bool draining;
	void (*on_idle)(void *ctx);
	void *idle_ctx;
	struct buf head;  /* a response head is composed here */
	struct buf spare; /* a warm output buffer that no connection uses */
	time_t date_s;
	char date[40];
	char room[READ_ROOM];
};

/* conn.c: the loop's side. */
void conn_start(struct http_server *s, int fd, unsigned listener, bool over_limit);
void conn_turn(struct conn *c);
void conn_free(struct conn *c);

/* Something about C changed outside of its turn (or inside: then the turn looks again). */
void conn_mark(struct conn *c);

/* ends.c. GONE: the client was lost before the response was complete, as far as the handler knows. */
void exchange_end(struct conn *c, bool gone);
void exchange_free(struct exchange *x);

/* Ends the exchange, if any, as gone, and the connection with an answer of its own where none was begun. */
void conn_refuse(struct conn *c, unsigned status, const char *code, const char *message);

/* output.c: bytes to the kernel. PARTS are sent or, what the kernel does not take, kept. */
void output_send_parts(struct conn *c, const struct iovec *parts, size_t count);
void output_send(struct conn *c, const void *head, size_t head_len, const void *body, size_t body_len);
void output_flush(struct conn *c);
char *output_reserve(struct conn *c, size_t len);
void output_release(struct conn *c);

/* request.c: input to exchanges. Both return how many bytes were used. */
size_t request_head(struct conn *c, const char *bytes, size_t len);
size_t request_body(struct conn *c, const char *bytes, size_t len);
bool request_wants_input(const struct conn *c);

/* exchange.c */
bool exchange_closes(const struct exchange *x);

const char *reply_date(struct http_server *s);
const char *status_text(unsigned status);

/* error.c */
void error_json(struct buf *json, const char *code, const char *message);

/* sendfile.c: takes FD; LEN may be 0. */
void file_begin(struct exchange *x, const struct buf *head, int fd, uint64_t offset, uint64_t len);
void file_step(struct conn *c);
/* The exchange ends: a job under way takes the socket along (c->fd is -1 then). */
void file_drop(struct conn *c);
bool file_is_blocked(const struct conn *c);
void file_unblock(struct conn *c);

/* websocket.c: the loop's side of a socket. */
size_t socket_input(struct conn *c, const char *bytes, size_t len);
bool socket_wants_input(const struct exchange *x);
bool socket_is_closing(const struct exchange *x); /* waits for the peer's close frame */
void socket_leave(struct exchange *x);            /* the server ends */
void socket_free(struct websocket *ws);

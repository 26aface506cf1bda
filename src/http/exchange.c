/* exchange.c - the handler's side of a response. Notes and marks only: no callback runs from here. */
#include "http/internal.h"

#include <assert.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"

/* ---- the body of the request ---- */

static void want_continue(struct exchange *x)
{
	/* Sent in the turn of the connection, which knows whether the body has begun. */
	x->continue_due = x->facts.continue_expected && !x->old_version;
	x->facts.continue_expected = false;
}

static void drop_body(struct exchange *x)
{
	if (x->body_done) return;
	x->body_mode = BODY_IGNORED;
	x->body_paused = false;
	/*
	 * Who waits for "100 Continue" may send the body or not, now that it does not come: the next bytes
	 * mean nothing.
	 */
	if ((x->facts.continue_expected || x->continue_due) && !x->body_seen) x->conn->input_lost = true;
	if (x->content_length > 0 && (uint64_t)x->content_length - x->body_seen > IGNORE_MAX)
		x->conn->input_lost = true;
}

void http_body_ignore(struct exchange *x)
{
	if (x->aborted) return;
	drop_body(x);
	conn_mark(x->conn);
}

void http_body_collect(struct exchange *x, size_t cap,
		       void (*on_body)(struct exchange *x, const char *bytes, size_t len, void *ctx),
		       void *ctx)
{
	if (x->aborted) return;
	assert(x->body_mode == BODY_UNDECIDED);
	x->body_mode = BODY_COLLECTED;
	x->body.cap = cap;
	x->on_body = on_body;
	x->body_ctx = ctx;
	x->body_too_large = x->content_length > 0 && (uint64_t)x->content_length > cap;
	if (!x->body_too_large) want_continue(x);
	conn_mark(x->conn);
}

void http_body_stream(struct exchange *x, const struct http_body_sink *sink, void *ctx)
{
	if (x->aborted) return;
	assert(x->body_mode == BODY_UNDECIDED);
	x->body_mode = BODY_STREAMED;
	x->sink = *sink;
	x->body_ctx = ctx;
	want_continue(x);
	conn_mark(x->conn);
}

void http_body_resume(struct exchange *x)
{
	x->body_paused = false;
	conn_mark(x->conn);
}

/* ---- heads ---- */

const char *status_text(unsigned status)
{
	switch (status) {
	case 101: return "Switching Protocols";
	case 200: return "OK";
	case 201: return "Created";
	case 202: return "Accepted";
	case 204: return "No Content";
	case 206: return "Partial Content";
	case 304: return "Not Modified";
	case 400: return "Bad Request";
	case 401: return "Unauthorized";
	case 403: return "Forbidden";
	case 404: return "Not Found";
	case 408: return "Request Timeout";
	case 409: return "Conflict";
	case 410: return "Gone";
	case 412: return "Precondition Failed";
	case 413: return "Content Too Large";
	case 415: return "Unsupported Media Type";
	case 416: return "Range Not Satisfiable";
	case 417: return "Expectation Failed";
	case 422: return "Unprocessable Content";
	case 426: return "Upgrade Required";
	case 429: return "Too Many Requests";
	case 431: return "Request Header Fields Too Large";
	case 500: return "Internal Server Error";
	case 501: return "Not Implemented";
	case 502: return "Bad Gateway";
	case 503: return "Service Unavailable";
	case 504: return "Gateway Timeout";
	case 505: return "HTTP Version Not Supported";
	case 507: return "Insufficient Storage";
	}
	return "Status";
}

const char *reply_date(struct http_server *s)
{
	time_t now = (time_t)(clock_wall_ms() / 1000);
	struct tm parts;

	if (now != s->date_s) {
		s->date_s = now;
		(void)gmtime_r(&now, &parts);
		/* The C locale's names: no program of ours sets another. */
		(void)strftime(s->date, sizeof s->date, "%a, %d %b %Y %H:%M:%S GMT", &parts);
	}
	return s->date;
}

bool exchange_closes(const struct exchange *x)
{
	return !x->keep_alive || x->conn->input_lost || x->conn->server->draining;
}

static void add_number(struct buf *b, uint64_t n)
{
	char digits[20];
	size_t at = sizeof digits;

	do
		digits[--at] = (char)('0' + n % 10);
	while (n /= 10);
	(void)buf_add(b, digits + at, sizeof digits - at);
}

static void add_header(struct buf *b, const char *name, const char *value)
{
	(void)buf_add_text(b, name);
	(void)buf_add_text(b, value);
	(void)buf_add(b, "\r\n", 2);
}

#define NO_LENGTH UINT64_MAX /* a stream */

/* Composes the head in the server's buffer, where it stays until the next one. */
static struct buf *compose_head(struct exchange *x, unsigned status, const char *type, const char *headers,
				uint64_t len)
{
	struct http_server *s = x->conn->server;
	struct buf *b = &s->head;

	x->status = status;
	x->bodyless = x->is_head || status == 204 || status == 304 || status < 200;
	/* The end of the body is the end of the line. */
	if (len == NO_LENGTH && x->old_version) x->keep_alive = false;
	buf_clear(b);
	(void)buf_add(b, "HTTP/1.1 ", 9);
	add_number(b, status);
	(void)buf_add(b, " ", 1);
	add_header(b, status_text(status), "");
	add_header(b, "Date: ", reply_date(s));
	if (type) add_header(b, "Content-Type: ", type);
	if (len == NO_LENGTH) {
		if (!x->old_version) add_header(b, "Transfer-Encoding: chunked", "");
	} else if (status != 204 && status != 304 && status >= 200) {
		(void)buf_add_text(b, "Content-Length: ");
		add_number(b, len);
		(void)buf_add(b, "\r\n", 2);
	}
	if (exchange_closes(x)) add_header(b, "Connection: close", "");
	else if (x->old_version) add_header(b, "Connection: keep-alive", "");
	if (headers) (void)buf_add_text(b, headers);
	(void)buf_add(b, "\r\n", 2);
	return b;
}

/* ---- whole responses ---- */

void http_reply(struct exchange *x, unsigned status, const char *type, const char *headers, const void *body,
		size_t len)
{
	if (x->aborted) return;
	assert(x->answer == ANSWER_NONE);
	drop_body(x);
	struct buf *head = compose_head(x, status, type, headers, len);
	x->answer = ANSWER_COMPLETE;
	output_send(x->conn, head->data, head->len, body, x->bodyless ? 0 : len);
	conn_mark(x->conn);
}

void http_reply_error(struct exchange *x, unsigned status, const char *code, const char *message)
{
	auto_buf struct buf json = buf_with_cap(SIZE_MAX / 4);

	error_json(&json, code, message);
	http_reply(x, status, "application/json", NULL, json.data, json.len);
}

void http_reply_file(struct exchange *x, unsigned status, const char *type, const char *headers, int fd,
		     uint64_t offset, uint64_t len)
{
	if (x->aborted) {
		fd_close(fd);
		return;
	}
	assert(x->answer == ANSWER_NONE);
	drop_body(x);
	struct buf *head = compose_head(x, status, type, headers, len);
	file_begin(x, head, fd, offset, x->bodyless ? 0 : len);
	conn_mark(x->conn);
}

/* ---- streams ---- */

void http_stream_begin(struct exchange *x, unsigned status, const char *type, const char *headers)
{
	if (x->aborted) return;
	assert(x->answer == ANSWER_NONE);
	struct buf *head = compose_head(x, status, type, headers, NO_LENGTH);
	x->answer = ANSWER_STREAM;
	/* Kept until the end of the turn: the first bytes of the body may go out with it. */
	memcpy(output_reserve(x->conn, head->len), head->data, head->len);
	buf_grew(&x->conn->out, head->len);
	conn_mark(x->conn);
}

static unsigned hex_digits(size_t n)
{
	unsigned digits = 1;

	while (n >>= 4)
		digits++;
	return digits;
}

static bool is_chunked(const struct exchange *x)
{
	return !x->old_version && !x->bodyless;
}

/*
 * A chunk is written in place: its size line is as wide as the room that was asked for. Where less is
 * committed the size has leading zeros, which RFC 9112 allows.
 */
char *http_stream_reserve(struct exchange *x, size_t len)
{
	if (!is_chunked(x)) return output_reserve(x->conn, len);
	x->chunk_digits = hex_digits(len);
	return output_reserve(x->conn, x->chunk_digits + 2 + len + 2) + x->chunk_digits + 2;
}

void http_stream_commit(struct exchange *x, size_t len)
{
	struct conn *c = x->conn;

	if (!len || x->bodyless || x->aborted || x->answer != ANSWER_STREAM) return;
	if (is_chunked(x)) {
		char *at = c->out.data + c->out.len;
		size_t rest = len;

		for (unsigned i = x->chunk_digits; i-- > 0; rest >>= 4)
			at[i] = "0123456789abcdef"[rest & 15];
		memcpy(at + x->chunk_digits, "\r\n", 2);
		memcpy(at + x->chunk_digits + 2 + len, "\r\n", 2);
		len += x->chunk_digits + 4;
	}
	buf_grew(&c->out, len);
	x->drain_due = true;
	if (c->out.len >= OUT_HIGH) output_flush(c);
	conn_mark(c);
}

void http_stream_write(struct exchange *x, const void *bytes, size_t len)
{
	if (!len || x->aborted) return;
	memcpy(http_stream_reserve(x, len), bytes, len);
	http_stream_commit(x, len);
}

size_t http_stream_pending(const struct exchange *x)
{
	return x->conn->out.len;
}

void http_on_drain(struct exchange *x, void (*on_drain)(struct exchange *x, void *ctx), void *ctx)
{
	x->on_drain = on_drain;
	x->drain_ctx = ctx;
}

void http_stream_end(struct exchange *x)
{
	if (x->aborted || x->answer != ANSWER_STREAM) return;
	drop_body(x);
	if (is_chunked(x)) {
		memcpy(output_reserve(x->conn, 5), "0\r\n\r\n", 5);
		buf_grew(&x->conn->out, 5);
	}
	x->answer = ANSWER_COMPLETE;
	conn_mark(x->conn);
}

/* ---- the rest ---- */

void http_abort(struct exchange *x)
{
	x->aborted = true;
	conn_mark(x->conn);
}

void http_on_gone(struct exchange *x, void (*on_gone)(struct exchange *x, void *ctx), void *ctx)
{
	x->on_gone = on_gone;
	x->gone_ctx = ctx;
}

void http_stream_outlives_half_close(struct exchange *x)
{
	x->outlives_half_close = true;
}

void http_set_data(struct exchange *x, void *data, void (*done)(void *data))
{
	x->data = data;
	x->done = done;
}

void *http_data(const struct exchange *x)
{
	return x->data;
}

unsigned http_status(const struct exchange *x)
{
	return x->status;
}

uint64_t http_bytes_sent(const struct exchange *x)
{
	return x->bytes_sent;
}

uint64_t http_duration_ms(const struct exchange *x)
{
	return clock_ms() - x->started_ms;
}

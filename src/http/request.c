/*
 * request.c - from bytes to exchanges: guard, then llhttp, then our own checks; and the bodies.
 *
 * The parser gets a head in one piece, after the guard saw its end, so that fields need no gluing; and
 * the bytes of a body as they come. It pauses at the end of each message and whenever a sink asks for a
 * pause.
 */
#include "http/internal.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"

/* ---- what the parser tells ---- */

static int on_url(llhttp_t *p, const char *at, size_t len)
{
	struct exchange *x = ((struct conn *)p->data)->x;

	if (!x->target) x->target = x->head + (at - x->head);
	x->url.origin_at += len; /* its length, until target_parse() */
	return 0;
}

static int on_version(llhttp_t *p)
{
	((struct conn *)p->data)->x->version_known = true;
	return 0;
}

static int on_field(llhttp_t *p, const char *at, size_t len)
{
	struct exchange *x = ((struct conn *)p->data)->x;

	if (x->head_parsed) return 0; /* trailers: read, bounded, not used */
	assert(x->field_count < GUARD_LINES_MAX);
	x->fields[x->field_count++] =
		(struct field){.name = (uint32_t)(at - x->head), .name_len = (uint32_t)len};
	return 0;
}

static int on_value(llhttp_t *p, const char *at, size_t len)
{
	struct exchange *x = ((struct conn *)p->data)->x;

	if (x->head_parsed) return 0;
	struct field *f = &x->fields[x->field_count - 1];
	while (len && (at[len - 1] == ' ' || at[len - 1] == '\t'))
		len--;
	f->value = (uint32_t)(at - x->head);
	f->value_len = (uint32_t)len;
	guard_note(&x->facts, x->head + f->name, f->name_len, at, len);
	return 0;
}

static int on_head(llhttp_t *p)
{
	struct exchange *x = ((struct conn *)p->data)->x;

	x->head_parsed = true;
	x->chunked = p->flags & F_CHUNKED;
	x->content_length = p->flags & F_CONTENT_LENGTH ? (int64_t)p->content_length : -1;
	x->keep_alive = llhttp_should_keep_alive(p);
	return 0;
}

/* The last chunk is empty, and trailers follow: from here on the guard sees the bytes first. */
static int on_chunk(llhttp_t *p)
{
	struct conn *c = p->data;

	if (p->content_length) return 0;
	c->guard = guard_of_trailers();
	c->x->in_trailers = true;
	return HPE_PAUSED;
}

static int on_message(llhttp_t *p)
{
	((struct conn *)p->data)->x->body_done = true;
	return HPE_PAUSED;
}

static int on_body(llhttp_t *p, const char *at, size_t len)
{
	struct conn *c = p->data;
	struct exchange *x = c->x;

	if (!len) return 0; /* the parser was resumed with no further bytes */
	x->body_seen += len;
	x->framing = 0;
	if (x->aborted) return 0;
	switch (x->body_mode) {
	case BODY_UNDECIDED:
	case BODY_IGNORED: c->input_lost |= x->body_seen > IGNORE_MAX; return 0;
	case BODY_COLLECTED:
		x->body_too_large |= buf_add(&x->body, at, len) < 0;
		return x->body_too_large ? HPE_PAUSED : 0;
	case BODY_STREAMED:
		x->body_paused = !x->sink.on_piece(x, at, len, x->body_ctx) && x->body_mode == BODY_STREAMED;
		return x->body_paused ? HPE_PAUSED : 0;
	}
	return 0;
}

static const llhttp_settings_t parser_settings = {
	.on_url = on_url,
	.on_version_complete = on_version,
	.on_header_field = on_field,
	.on_header_value = on_value,
	.on_headers_complete = on_head,
	.on_chunk_header = on_chunk,
	.on_body = on_body,
	.on_message_complete = on_message,
};

/* ---- heads ---- */

/*
 * Copies a head. What stands above ASCII in its first line is percent-encoded, as browsers do before they
 * send it.
 */
static size_t copy_head(char *to, const char *head, size_t len, unsigned wide)
{
	size_t at = 0, to_len = 0;

	for (; wide; at++) {
		unsigned char b = (unsigned char)head[at];

		to[to_len++] = (char)b;
		if (b < 0x80) continue;
		to[to_len - 1] = '%';
		to[to_len++] = "0123456789ABCDEF"[b >> 4];
		to[to_len++] = "0123456789ABCDEF"[b & 15];
		wide--;
	}
	memcpy(to + to_len, head + at, len - at);
	return to_len + len - at;
}

/* HEAD passed the guard G. */
static struct exchange *exchange_new(struct conn *c, const char *head, size_t len, const struct guard *g)
{
	/* One allocation: the exchange, its fields, its copy of the head. */
	size_t fields = g->lines * sizeof(struct field);
	struct exchange *x = mem_new(sizeof *x + fields + len + 2 * g->wide + 1);

	x->conn = c;
	x->started_ms = clock_ms();
	x->fields = (struct field *)(x + 1);
	x->head = (char *)(x + 1) + fields;
	x->head_len = copy_head(x->head, head, len, g->wide);
	x->content_length = -1;
	return x;
}

/* Makes C strings of names, values and target, now that the parser is done with the bytes behind them. */
static int cut_head(struct exchange *x)
{
	size_t target_len = x->url.origin_at;

	x->url_room = mem_new(TARGET_ROOM(target_len));
	if (!x->target || target_parse(x->target, target_len, x->url_room, &x->url) < 0) return -1;
	for (unsigned i = 0; i < x->field_count; i++) {
		x->head[x->fields[i].name + x->fields[i].name_len] = '\0';
		x->head[x->fields[i].value + x->fields[i].value_len] = '\0';
	}
	char *target = x->head + (x->target - x->head);
	target[target_len] = '\0';
	/* "http://host?q" has no path: a slash over the end of the host, of which url has a copy. */
	if (*x->url.authority && target[x->url.origin_at] != '/') target[--x->url.origin_at] = '/';
	x->target = target + x->url.origin_at;
	x->host = http_header(x, "host");
	if (*x->url.authority) x->host = x->url.authority;
	return 0;
}

/* What the parser's complaint means for the client. */
static unsigned status_of(llhttp_errno_t error)
{
	if (error == HPE_INVALID_METHOD) return 501;
	if (error == HPE_INVALID_VERSION || error == HPE_PAUSED_H2_UPGRADE) return 505;
	return 400;
}

/* 0, or the status to refuse with. */
static unsigned parse_head(struct conn *c, const char **ret_why)
{
	struct exchange *x = c->x;
	enum guard_fault fault = GUARD_FINE;
	llhttp_errno_t error;

	llhttp_init(&c->parser, HTTP_REQUEST, &parser_settings);
	c->parser.data = c;
	error = llhttp_execute(&c->parser, x->head, x->head_len);
	if (error == HPE_PAUSED) llhttp_resume(&c->parser);
	if (error == HPE_PAUSED_UPGRADE) llhttp_resume_after_upgrade(&c->parser);
	bool fine = x->head_parsed && (error == HPE_OK || error == HPE_PAUSED || error == HPE_PAUSED_UPGRADE);

	if (x->version_known || fine)
		fault = guard_judge(&x->facts, c->parser.http_major, c->parser.http_minor);
	if (fault != GUARD_FINE && (fine || fault != GUARD_NO_HOST)) {
		*ret_why = guard_text(fault);
		return guard_status(fault);
	}
	if (!fine) {
		*ret_why = error == HPE_OK ? "The request head is incomplete"
					   : llhttp_get_error_reason(&c->parser);
		return status_of(error);
	}
	if (c->parser.method == HTTP_CONNECT) {
		*ret_why = "CONNECT is not offered here";
		return 501;
	}
	if (cut_head(x) < 0) {
		*ret_why = "The request target is malformed";
		return 400;
	}
	return 0;
}

static void begin_exchange(struct conn *c, struct exchange *x)
{
	x->method = llhttp_method_name((llhttp_method_t)c->parser.method);
	x->is_head = c->parser.method == HTTP_HEAD;
	x->old_version = c->parser.http_minor == 0;
	x->body = buf_with_cap(0);
	c->server->callbacks.on_request(x, c->server->ctx);
}

size_t request_head(struct conn *c, const char *bytes, size_t len)
{
	struct guard *g = &c->guard;
	const char *why = NULL;
	size_t used;
	/* Earlier calls judged the first bytes already. */
	enum guard_fault fault =
		guard_feed(g, bytes + g->seen, len - g->seen, c->server->limits.head_max, &used);

	if (fault != GUARD_FINE) {
		conn_refuse(c, guard_status(fault), "invalid_request", guard_text(fault));
		return len;
	}
	if (!g->complete) return 0;
	used = g->seen;
	c->x = exchange_new(c, bytes + g->skipped, used - g->skipped, g);
	unsigned status = parse_head(c, &why);
	*g = (struct guard){0};
	if (status == 0) {
		begin_exchange(c, c->x);
		return used;
	}
	/* Nobody has met this exchange yet. WHY may point into the parser, not into the exchange. */
	exchange_free(c->x);
	c->x = NULL;
	conn_refuse(c, status, "invalid_request", why);
	return len;
}

/* ---- bodies ---- */

bool request_wants_input(const struct conn *c)
{
	const struct exchange *x = c->x;

	if (c->state != CONN_OPEN || c->input_lost || c->broken) return false;
	if (!x) return true;
	if (x->answer == ANSWER_SOCKET) return !x->aborted && socket_wants_input(x);
	return x->body_mode != BODY_UNDECIDED && !x->body_done && !x->body_paused && !x->body_too_large &&
	       !x->aborted;
}

size_t request_body(struct conn *c, const char *bytes, size_t len)
{
	struct exchange *x = c->x;
	uint64_t seen = x->body_seen;
	enum guard_fault fault = GUARD_FINE;
	size_t used = len;

	if (x->in_trailers) fault = guard_feed(&c->guard, bytes, len, c->server->limits.head_max, &used);
	if (fault != GUARD_FINE) {
		conn_refuse(c, guard_status(fault), "invalid_request", guard_text(fault));
		return len;
	}
	llhttp_errno_t error = llhttp_execute(&c->parser, bytes, used);
	if (error == HPE_PAUSED || error == HPE_PAUSED_UPGRADE) {
		used = (size_t)(llhttp_get_error_pos(&c->parser) - bytes);
		if (error == HPE_PAUSED) llhttp_resume(&c->parser);
		else llhttp_resume_after_upgrade(&c->parser);
	} else if (error != HPE_OK) {
		conn_refuse(c, 400, "invalid_request", llhttp_get_error_reason(&c->parser));
		return len;
	}
	if (x->body_done) {
		c->guard = (struct guard){0};
	} else if (c->guard.complete) { /* the two do not agree where the trailers end */
		conn_refuse(c, 400, "invalid_request", "The trailers are malformed");
		return len;
	}
	/* Chunk extensions carry nothing for us, and must not go on for ever. */
	x->framing += used - MIN(used, (size_t)(x->body_seen - seen));
	if (x->framing > c->server->limits.head_max + READ_ROOM) {
		conn_refuse(c, 431, "invalid_request", guard_text(GUARD_TOO_LARGE));
		return len;
	}
	return used;
}

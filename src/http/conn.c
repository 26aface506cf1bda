/* conn.c - the loop's side of a connection: see the theory in internal.h. */
#include "http/internal.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "loop/loop.h"

#define ROUNDS_MAX 8 /* of one turn, so that one connection's fast sink does not keep the loop to itself */
#define READS_MAX  4 /* of one event, likewise */

/* ---- ends ---- */

static void lose(struct conn *c)
{
	if (c->x) exchange_end(c, true);
	c->state = CONN_DEAD;
}

void conn_free(struct conn *c)
{
	struct http_server *s = c->server;
	const struct linger reset = {.l_onoff = 1};

	c->in_turn = true; /* marks made by callbacks from here on go nowhere */
	if (c->x) exchange_end(c, true);
	if (c->is_marked) TAILQ_REMOVE(&s->marked, c, marked);
	TAILQ_REMOVE(&s->conns, c, all);
	if (c->over_limit) s->over_limit_count--;
	else s->conn_count--;
	watch_free(c->watch);
	timer_free(c->timer);
	if (c->fd >= 0) {
		if (c->cut) (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
		fd_close(c->fd);
	}
	buf_done(&c->in);
	buf_done(&c->out);
	free(c);
}

/* ---- input ---- */

static bool is_socket(const struct conn *c)
{
	return c->x && c->x->answer == ANSWER_SOCKET;
}

static size_t use_once(struct conn *c, const char *bytes, size_t len)
{
	if (!c->x) return request_head(c, bytes, len);
	return is_socket(c) ? socket_input(c, bytes, len) : request_body(c, bytes, len);
}

/* Uses what it can of BYTES. LEN may be 0: a paused parser may have news that need no further byte. */
static size_t use_input(struct conn *c, const char *bytes, size_t len)
{
	size_t used = 0;

	while (request_wants_input(c)) {
		size_t n = use_once(c, bytes + used, len - used);

		used += n;
		if (used == len || n == 0) break;
	}
	return used;
}

static void use_kept_input(struct conn *c)
{
	bool pending = c->in.len || (c->x && !c->x->body_done && c->x->body_seen);

	if (pending && request_wants_input(c))
		buf_take(&c->in, use_input(c, c->in.len ? c->in.data : "", c->in.len));
	if (!c->in.len && c->in.room) buf_reset(&c->in);
}

/* The socket has something to say while we want no input: remembers it, and tells an end from a pause. */
static void notice_unwanted(struct conn *c, bool gone)
{
	struct pollfd state = {.fd = c->fd};

	c->input_waits = true;
	(void)poll(&state, 1, 0);
	if (state.revents & (POLLERR | POLLHUP)) c->broken = true;
	c->half_closed |= gone;
}

/* Reads once. Whether there may be more. */
static bool read_some(struct conn *c)
{
	bool kept = c->in.len > 0;
	char *room = kept ? buf_reserve(&c->in, READ_ROOM) : c->server->room;
	ssize_t n;

	if (!room) return false; /* cannot be: heads and pieces are bounded below the cap */
	do
		n = recv(c->fd, room, READ_ROOM, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN) return false;
	if (n <= 0) {
		c->broken |= n < 0;
		c->at_end = c->half_closed = true;
		return false;
	}
	c->progress = true;
	if (kept) {
		buf_grew(&c->in, (size_t)n);
		use_kept_input(c);
	} else {
		size_t used = use_input(c, room, (size_t)n);

		if (used < (size_t)n) (void)buf_add(&c->in, room + used, (size_t)n - used);
	}
	return n == READ_ROOM;
}

static void linger(struct conn *c)
{
	for (unsigned i = 0; i < READS_MAX; i++) {
		/* MSG_TRUNC: TCP throws the bytes away without copying them. */
		ssize_t n = recv(c->fd, c->server->room, READ_ROOM, MSG_DONTWAIT | MSG_TRUNC);

		if (n < 0 && errno == EAGAIN) return;
		if (n > 0) c->lingered += (uint64_t)n;
		if (n <= 0 || c->lingered > LINGER_BYTES || clock_ms() > c->linger_end_ms)
			c->state = CONN_DEAD;
		if (c->state == CONN_DEAD) return;
		c->progress = true;
	}
}

static void on_ready(void *ctx, unsigned events)
{
	struct conn *c = ctx;

	c->in_turn = true;
	if (events & WATCH_OUT) {
		c->blocked = false;
		file_unblock(c);
	}
	if (c->state == CONN_LINGERING) linger(c);
	else if ((events & (WATCH_IN | WATCH_GONE)) && !request_wants_input(c))
		notice_unwanted(c, events & WATCH_GONE);
	else if (events & WATCH_IN)
		for (unsigned i = 0; i < READS_MAX && request_wants_input(c) && read_some(c); i++)
			;
	conn_turn(c);
}

/* ---- one turn ---- */

static void tell_body(struct conn *c)
{
	struct exchange *x = c->x;

	if (!x || x->aborted || x->body_told || x->answer == ANSWER_COMPLETE) return;
	switch (x->body_mode) {
	case BODY_UNDECIDED:
	case BODY_IGNORED: break;
	case BODY_COLLECTED:
		if (!x->body_done && !x->body_too_large) break;
		x->body_told = true;
		if (!x->body_too_large) {
			x->on_body(x, buf_text(&x->body), x->body.len, x->body_ctx);
			break;
		}
		c->input_lost = true;
		x->on_body(x, NULL, MAX(x->body_seen, (uint64_t)MAX(x->content_length, (int64_t)0)),
			   x->body_ctx);
		break;
	case BODY_STREAMED:
		if (!x->body_done || x->body_paused) break;
		x->body_told = true;
		x->sink.on_end(x, x->body_ctx);
		break;
	}
}

/* What the end of the client's half means for what we are doing. */
static void judge_end(struct conn *c)
{
	struct exchange *x = c->x;

	bool open_ended = x && ((x->answer == ANSWER_STREAM && !x->outlives_half_close) || is_socket(c));

	if (c->half_closed && open_ended) {
		lose(c);
		return;
	}
	if (!c->at_end || !request_wants_input(c)) return;
	if (!x && !c->in.len) c->state = CONN_DEAD;
	else if (!x) conn_refuse(c, 400, "invalid_request", "The request ends in the middle of its head");
	else if (x->answer == ANSWER_COMPLETE) c->input_lost = true;
	else if (!c->in.len)
		conn_refuse(c, 400, "invalid_request", "The request ends in the middle of its body");
}

static void tell_drained(struct conn *c)
{
	struct exchange *x = c->x;

	if (!x || !x->drain_due || c->out.len || x->aborted) return;
	if (x->answer != ANSWER_STREAM && x->answer != ANSWER_SOCKET) return;
	x->drain_due = false;
	if (x->on_drain) x->on_drain(x, x->drain_ctx);
	/* A socket that answers to nobody who reads its answers has stopped to take input. */
	c->again |= is_socket(c) && c->in.len;
}

/*
 * Ends the exchange when the response is with the kernel and the request was read, and goes on to the next.
 */
static void finish(struct conn *c)
{
	struct exchange *x = c->x;

	if (!x || x->aborted || x->answer != ANSWER_COMPLETE || c->out.len) return;
	if (!x->body_done && !c->input_lost) return; /* the body that is ignored is still on its way */
	bool close = exchange_closes(x) || c->input_lost;
	bool all_read = x->body_done && !c->in.len && !c->input_waits;

	exchange_end(c, false);
	c->served = true;
	if (!close) c->again |= c->in.len || c->at_end;
	else c->state = all_read ? CONN_DEAD : CONN_PARTING;
}

static void part(struct conn *c)
{
	if (c->out.len) return;
	if (c->at_end || c->broken || shutdown(c->fd, SHUT_WR) < 0) {
		c->state = CONN_DEAD;
		return;
	}
	c->state = CONN_LINGERING;
	c->linger_end_ms = clock_ms() + LINGER_ALL_MS;
}

/* A client that has begun to send its body waits for nothing any more. */
static void send_continue(struct conn *c)
{
	static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
	struct exchange *x = c->x;

	if (!x || !x->continue_due) return;
	x->continue_due = false;
	if (x->answer == ANSWER_NONE && !x->body_done && !x->body_seen && !c->in.len)
		output_send(c, text, sizeof text - 1, NULL, 0);
}

static void step(struct conn *c)
{
	if (c->server->draining && is_socket(c)) socket_leave(c->x);
	use_kept_input(c);
	send_continue(c);
	tell_body(c);
	judge_end(c);
	output_flush(c);
	file_step(c);
	tell_drained(c);
	if (c->x && c->x->aborted && c->state != CONN_DEAD) {
		c->cut = true;
		lose(c);
	} else if (c->broken) {
		lose(c);
	}
	finish(c);
	if (c->server->draining && !c->x && !c->in.len && c->state == CONN_OPEN) c->state = CONN_DEAD;
	if (c->state == CONN_PARTING) part(c);
}

/* ---- what to wait for ---- */

static bool wants_out(const struct conn *c)
{
	return c->out.len || c->again || file_is_blocked(c);
}

static unsigned wanted_events(struct conn *c)
{
	unsigned want = wants_out(c) ? WATCH_OUT : 0;

	if (c->state == CONN_LINGERING) return WATCH_IN;
	if (c->state != CONN_OPEN) return WATCH_OUT;
	if (!c->half_closed) want |= WATCH_GONE;
	if (request_wants_input(c) && !c->at_end) {
		c->input_waits = false;
		return want | WATCH_IN;
	}
	/*
	 * Most clients send nothing while they wait: to stop watching and to start again would be four
	 * system calls.
	 */
	if (!c->input_waits && !c->half_closed) want |= WATCH_IN;
	return want;
}

static enum phase phase_of(const struct conn *c)
{
	if (c->state == CONN_LINGERING) return PHASE_LINGER;
	if (c->state == CONN_PARTING) return PHASE_WRITE;
	if (!c->x && c->in.len) return PHASE_HEAD;
	if (!c->x) return c->served ? PHASE_IDLE : PHASE_NEW;
	if (socket_is_closing(c->x)) return PHASE_LINGER;
	if (c->out.len || file_is_blocked(c)) return PHASE_WRITE;
	return request_wants_input(c) && !is_socket(c) ? PHASE_BODY : PHASE_HANDLER;
}

/* 0: no limit. */
static unsigned limit_of(const struct conn *c, enum phase phase)
{
	const struct http_limits *limits = &c->server->limits;

	switch (phase) {
	case PHASE_NEW:
	case PHASE_HEAD: return limits->head_timeout_ms;
	case PHASE_IDLE: return limits->idle_timeout_ms;
	case PHASE_BODY: return limits->body_idle_timeout_ms;
	case PHASE_WRITE: return c->state == CONN_PARTING ? LINGER_ALL_MS : limits->write_idle_timeout_ms;
	case PHASE_LINGER: return c->state == CONN_LINGERING ? LINGER_IDLE_MS : LINGER_ALL_MS;
	case PHASE_HANDLER: return 0;
	}
	return 0;
}

static void on_time(void *ctx)
{
	struct conn *c = ctx;

	c->timer_ms = UINT64_MAX;
	c->in_turn = true;
	if (clock_ms() < c->deadline_ms) {
		conn_turn(c);
		return;
	}
	switch (c->phase) {
	case PHASE_NEW:
	case PHASE_IDLE:
	case PHASE_LINGER: c->state = CONN_DEAD; break;
	case PHASE_HEAD: conn_refuse(c, 408, "invalid_request", "The request head took too long"); break;
	case PHASE_BODY:
		if (c->x->answer == ANSWER_COMPLETE) c->input_lost = true;
		else conn_refuse(c, 408, "invalid_request", "The request body took too long");
		break;
	case PHASE_WRITE:
		c->cut = true;
		lose(c);
		break;
	case PHASE_HANDLER: break;
	}
	conn_turn(c);
}

static void set_deadline(struct conn *c)
{
	enum phase phase = phase_of(c);
	bool same = phase == c->phase && (!c->progress || phase == PHASE_HEAD || phase == PHASE_NEW);
	unsigned limit = limit_of(c, phase);

	c->progress = false;
	if (!limit) c->deadline_ms = UINT64_MAX;
	else if (!same || c->deadline_ms == 0) c->deadline_ms = clock_ms() + limit;
	c->phase = phase;
	/*
	 * The timer is only moved to earlier: one that is due too early looks again. So a request sets
	 * none, usually.
	 */
	if (c->deadline_ms >= c->timer_ms) return;
	uint64_t now = clock_ms();
	if (!c->timer) c->timer = timer_new(c->server->loop, on_time, c);
	timer_set(c->timer, c->deadline_ms > now ? c->deadline_ms - now : 0);
	c->timer_ms = c->deadline_ms;
}

void conn_turn(struct conn *c)
{
	unsigned rounds = 0;

	c->in_turn = true;
	do {
		c->again = false;
		step(c);
	} while (c->again && c->state != CONN_DEAD && ++rounds < ROUNDS_MAX);
	if (c->state == CONN_DEAD) {
		conn_free(c);
		return;
	}
	output_release(c);
	unsigned want = wanted_events(c);
	if (!c->watch && want) c->watch = watch_new(c->server->loop, c->fd, on_ready, c);
	if (c->watch) watch_want(c->watch, want);
	set_deadline(c);
	c->in_turn = false;
}

void conn_mark(struct conn *c)
{
	if (c->in_turn) {
		c->again = true;
	} else if (!c->is_marked) {
		c->is_marked = true;
		TAILQ_INSERT_TAIL(&c->server->marked, c, marked);
	}
}

void conn_start(struct http_server *s, int fd, unsigned listener, bool over_limit)
{
	struct conn *c = mem_new(sizeof *c);

	c->server = s;
	c->fd = fd;
	c->listener = listener;
	c->timer_ms = UINT64_MAX;
	c->in = buf_with_cap(s->limits.head_max + 2 * READ_ROOM);
	c->out = buf_with_cap(SIZE_MAX / 4);
	TAILQ_INSERT_TAIL(&s->conns, c, all);
	c->over_limit = over_limit;
	if (over_limit) {
		s->over_limit_count++;
		c->in_turn = true;
		conn_refuse(c, 503, "capacity_exceeded", "Too many connections");
	} else {
		s->conn_count++;
		c->in_turn = true;
		(void)read_some(c); /* most clients have sent their request by now */
	}
	conn_turn(c);
}

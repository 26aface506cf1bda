/*
 * terminal_connect.c - GET /v1/sandbox/:id/terminals/:tid/connect: a terminal on a socket, with places in its
 * output that a client may come back to (API.md 3.26).
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "http/target.h"
#include "http/websocket.h"
#include "routes/answers.h"
#include "routes/attachment.h"
#include "routes/cursor.h"
#include "routes/handlers.h"
#include "routes/status_json.h"
#include "routes/terminal_size.h"
#include "sandbox/call.h"

struct connect {
	struct attachment a;
	char *name;
	char cursor[CURSOR_MAX]; /* as it was sent; "" for none */
	bool cursor_is_malformed;
	bool live;                          /* all that was retained has been sent */
	char claimed[CURSOR_STORE_MAX + 1]; /* the log that the cursor belongs to */
	char store[CURSOR_STORE_MAX + 1];   /* this log */
};

static struct connect *connect_of(void *ctx)
{
	return container_of((struct attachment *)ctx, struct connect, a);
}

static void connect_done(struct attachment *a)
{
	free(connect_of(a)->name);
}

/* ---- what the client says ---- */

static void on_terminated(void *ctx, const struct operation_end *end)
{
	(void)ctx, (void)end; /* the follow tells what became of it */
}

/* SIGTERM, then SIGKILL: goes on without us, so that a client may leave after saying it. */
static void terminate(struct attachment *a)
{
	struct sandbox *sb = sandboxes_find(a->rq->routes->sandboxes, a->rq->match.id);

	if (!sb) return;
	(void)process_signal(sandbox_link(sb), KIND_TERMINAL, connect_of(a)->name, 0, SIGNAL_TERMINATE,
			     on_terminated, NULL);
}

static void on_control(struct attachment *a, const struct control_message *m)
{
	if (!a->follow) return;
	switch (m->kind) {
	case CONTROL_MALFORMED:
	case CONTROL_UNKNOWN:
	case CONTROL_BAD_SIZE: attachment_send_error(a, "Invalid control message"); break;
	case CONTROL_RESIZE: terminal_resize(a->follow, m->cols, m->rows); break;
	case CONTROL_INTERRUPT: terminal_signal(a->follow, SIGINT); break;
	case CONTROL_TERMINATE: terminate(a); break;
	}
}

static const struct attachment_class connect_class = {
	.on_control = on_control, .whole_numbers = true, .done = connect_done};

/* ---- what the terminal says ---- */

static void begin(struct connect *c)
{
	json_t *ready = json_pack("{s:s}", "type", "ready");

	if (*c->cursor) json_object_set_new(ready, "cursor", json_of_text(c->cursor, strlen(c->cursor)));
	attachment_accept(&c->a);
	attachment_send(&c->a, ready);
}

static void refuse_cursor(struct connect *c)
{
	attachment_send(&c->a, json_pack("{s:s, s:s, s:s}", "type", "error", "code",
					 "INVALID_TERMINAL_CURSOR", "message", "Invalid terminal cursor"));
	attachment_close(&c->a, WEBSOCKET_FAILED, "Invalid terminal cursor");
}

static void on_opened(void *ctx, const char *id, uint32_t pid)
{
	struct connect *c = connect_of(ctx);

	cursor_store(id, pid, c->store);
	begin(c);
	if (*c->cursor && (c->cursor_is_malformed || strcmp(c->claimed, c->store) != 0)) refuse_cursor(c);
	else attachment_ready(&c->a);
}

static void on_log(void *ctx, const struct follow_event *event)
{
	struct connect *c = connect_of(ctx);
	struct exchange *x = c->a.rq->x;
	char cursor[CURSOR_MAX], chunk[CURSOR_MAX + 64];
	int n;

	cursor_encode(c->store, event->seq, cursor);
	n = snprintf(chunk, sizeof chunk, "{\"type\":\"chunk\",\"cursor\":\"%s\",\"byteLength\":%zu}", cursor,
		     event->len);
	/* Nothing gets between the two: each is in the output when its call returns. */
	websocket_send_text(x, chunk, (size_t)n);
	websocket_send_binary(x, event->bytes, event->len);
	attachment_sent(&c->a, event->len);
}

static void on_now(void *ctx)
{
	connect_of(ctx)->live = true;
}

static void on_gap(void *ctx, uint64_t seq)
{
	struct connect *c = connect_of(ctx);
	char cursor[CURSOR_MAX];

	if (c->live) {
		attachment_close(&c->a, WEBSOCKET_TOO_SLOW, "the client cannot keep up");
		return;
	}
	cursor_encode(c->store, seq ? seq - 1 : 0, cursor);
	attachment_send(&c->a, json_pack("{s:s, s:s}", "type", "truncated", "cursor", cursor));
}

static void end_unopened(struct connect *c, const struct operation_end *end)
{
	if (end->reason == END_FAILED && end->error == EINVAL) {
		begin(c);
		refuse_cursor(c);
	} else if (end->reason == END_DELETED || (end->reason == END_FAILED && end->error == ESRCH)) {
		answer_no_process(attachment_give_up(&c->a)->x, KIND_TERMINAL);
	} else {
		http_reply_error(attachment_give_up(&c->a)->x, 502, "exec_transport_error",
				 "terminal failed: the sandbox did not answer");
	}
}

static void on_end(void *ctx, const struct operation_end *end)
{
	struct connect *c = connect_of(ctx);
	char cursor[CURSOR_MAX];

	c->a.follow = NULL;
	if (!c->a.accepted) {
		end_unopened(c, end);
	} else if (end->reason <= END_DISK) {
		cursor_encode(c->store, end->seq, cursor);
		attachment_send(&c->a, json_pack("{s:s, s:s, s:o}", "type", "exit", "cursor", cursor, "exit",
						 exit_json(end)));
		attachment_close(&c->a, WEBSOCKET_DONE, "Terminal exited");
	} else {
		attachment_send_error(&c->a, *end->text ? end->text : "the sandbox did not answer");
		attachment_close(&c->a, WEBSOCKET_FAILED, "");
	}
}

static const struct follow_events events = {.on_opened = on_opened,
					    .on_log = on_log,
					    .on_gap = on_gap,
					    .on_now = on_now,
					    .on_room = attachment_on_room,
					    .on_end = on_end};

/* ---- the request, in the order of API.md 3.26 ---- */

static void take_cursor(struct connect *c, struct follow_spec *spec)
{
	auto_buf struct buf value = buf_with_cap(sizeof c->cursor - 1);
	int r = target_query_get(http_query(c->a.rq->x), "cursor", &value);

	if (r == -ENOENT) return;
	if (r == 0 && value.len == 0) return;
	/* One that is too long, or no text, is echoed as what is left of it. */
	(void)snprintf(c->cursor, sizeof c->cursor, "%s", r == 0 ? buf_text(&value) : "?");
	if (r == 0) r = cursor_decode(value.data, value.len, c->claimed, &spec->since);
	c->cursor_is_malformed = r < 0;
	spec->flags |= r == 0 ? FOLLOW_SINCE : FOLLOW_NOW;
}

/* What is wrong, or NULL. */
static const char *take_size(const struct request *rq, struct follow_spec *spec)
{
	const char *query = http_query(rq->x);
	enum size_verdict cols = size_of_connect(query, "cols", &spec->cols), rows;

	if (cols == SIZE_WRONG) return "cols must be a positive integer";
	rows = size_of_connect(query, "rows", &spec->rows);
	if (rows == SIZE_WRONG) return "rows must be a positive integer";
	/* One alone is ignored. */
	if (cols != SIZE_GIVEN || rows != SIZE_GIVEN) spec->cols = spec->rows = 0;
	return NULL;
}

void handle_terminal_connect(struct request *rq)
{
	struct follow_spec spec = {.kind = KIND_TERMINAL, .flags = FOLLOW_LIVE | FOLLOW_INPUT};
	struct agent_link *link = request_process_sandbox(rq, KIND_TERMINAL);
	auto_free char *name = NULL;
	const char *fault;

	if (!link) return;
	if (!websocket_is_wanted(rq->x)) {
		answer_invalid(rq->x, "WebSocket upgrade required");
		return;
	}
	if (!request_process_name(rq, KIND_TERMINAL, &name)) return;
	fault = take_size(rq, &spec);
	if (!fault && !websocket_is_usable(rq->x)) fault = "WebSocket upgrade required";
	if (fault) {
		answer_invalid(rq->x, fault);
		return;
	}
	struct connect *c = mem_new(sizeof *c);
	spec.name = c->name = take_ptr(name);
	attachment_begin(&c->a, rq, &connect_class);
	take_cursor(c, &spec);
	c->a.follow = follow_start(link, &spec, &events, &c->a);
	if (!c->a.follow)
		http_reply_error(attachment_give_up(&c->a)->x, 502, "exec_transport_error",
				 "terminal failed: too much goes on in this sandbox");
}

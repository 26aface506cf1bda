#include "routes/attachment.h"

#include "base/mem.h"
#include "http/websocket.h"
#include "routes/answers.h"

#define PENDING_MAX (128u << 10)               /* bytes of output that wait for the client */
#define HELD_MAX    (2u * WEBSOCKET_PIECE_MAX) /* bytes of input that wait for the terminal */

static void attachment_free(struct attachment *a)
{
	follow_drop(a->follow);
	if (a->class->done) a->class->done(a);
	buf_done(&a->held);
	free(a);
}

static void on_gone(struct exchange *x, void *ctx)
{
	(void)x;
	attachment_free(ctx);
}

void attachment_begin(struct attachment *a, struct request *rq, const struct attachment_class *class)
{
	a->rq = rq;
	a->class = class;
	a->held = buf_with_cap(HELD_MAX);
	http_on_gone(rq->x, on_gone, a);
}

struct request *attachment_give_up(void *attachment)
{
	struct attachment *a = attachment;
	struct request *rq = a->rq;

	attachment_free(a);
	return request_settled(rq);
}

/* ---- input ---- */

static bool on_binary(struct exchange *x, const void *bytes, size_t len, void *ctx)
{
	struct attachment *a = ctx;
	size_t taken = 0;

	(void)x;
	if (!a->follow) return true; /* for a terminal that has ended */
	if (a->ready && !a->held.len) taken = terminal_input(a->follow, bytes, len);
	if (taken == len) return true;
	(void)buf_add(&a->held, (const char *)bytes + taken, len - taken);
	return false;
}

void attachment_on_room(void *ctx)
{
	struct attachment *a = ctx;

	if (!a->ready) return;
	buf_take(&a->held, terminal_input(a->follow, a->held.data, a->held.len));
	if (a->held.len) return;
	buf_reset(&a->held);
	websocket_resume(a->rq->x);
}

void attachment_ready(struct attachment *a)
{
	a->ready = true;
	attachment_on_room(a);
}

static void on_text(struct exchange *x, const char *text, size_t len, void *ctx)
{
	struct attachment *a = ctx;
	struct control_message m = control_message_parse(text, len, a->class->whole_numbers);

	(void)x;
	a->class->on_control(a, &m);
}

/* ---- output ---- */

static void on_drain(struct exchange *x, void *ctx)
{
	struct attachment *a = ctx;
	size_t len = a->withheld;

	(void)x;
	a->withheld = 0;
	if (len && a->follow) follow_consumed(a->follow, len);
}

void attachment_sent(struct attachment *a, size_t len)
{
	a->withheld += len;
	if (websocket_pending(a->rq->x) <= PENDING_MAX) on_drain(a->rq->x, a);
}

void attachment_send(struct attachment *a, json_t *json)
{
	auto_free char *text = json_dumps(json, JSON_COMPACT | JSON_ENSURE_ASCII);

	json_decref(json);
	if (text) websocket_send_text(a->rq->x, text, strlen(text));
}

void attachment_send_error(struct attachment *a, const char *message)
{
	attachment_send(a, json_pack("{s:s, s:o}", "type", "error", "message",
				     json_of_text(message, strlen(message))));
}

/* ---- life ---- */

static void on_closed(struct exchange *x, unsigned code, void *ctx)
{
	(void)x, (void)code;
	attachment_free(ctx);
}

void attachment_accept(struct attachment *a)
{
	static const struct websocket_handlers handlers = {
		.on_binary = on_binary, .on_text = on_text, .on_drain = on_drain, .on_closed = on_closed};

	a->accepted = true;
	websocket_accept(a->rq->x, &handlers, a);
}

void attachment_close(struct attachment *a, unsigned code, const char *reason)
{
	websocket_close(a->rq->x, code, reason);
	attachment_free(a);
}

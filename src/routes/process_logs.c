/*
 * process_logs.c - GET /processes/:pid/logs: a log as a stream of events (API.md 3.21).
 *
 * Theory of operation: the agent's log is the buffer. What a client does not read is not asked for
 * (follow_consumed() waits for on_drain); what falls out of the log in the meantime is one `truncated`
 * event. The cursor of the request is judged in two halves: its form here, before anything is asked, and
 * whether it belongs to this log when the agent has said which one that is, because 404 comes before 400.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "http/sse.h"
#include "http/target.h"
#include "routes/answers.h"
#include "routes/cursor.h"
#include "routes/end_reason.h"
#include "routes/handlers.h"
#include "routes/keepalive.h"
#include "routes/process_request.h"
#include "routes/status_json.h"
#include "sandbox/follow.h"

#define PENDING_MAX (256u << 10) /* bytes of events that wait for the client */

struct reading {
	struct request *rq;
	struct follow *follow;
	bool has_cursor, cursor_is_malformed;
	char claimed[CURSOR_STORE_MAX + 1]; /* the log that the request's cursor belongs to */
	char store[CURSOR_STORE_MAX + 1];   /* this log */
	uint64_t seq;                       /* of the newest event that was told */
	size_t withheld;                    /* bytes of output for which the agent has no new credit yet */
	struct keepalive keepalive;
};

static struct request *reading_done(struct reading *r)
{
	struct request *rq = r->rq;

	http_on_gone(rq->x, NULL, NULL);
	http_on_drain(rq->x, NULL, NULL);
	keepalive_done(&r->keepalive);
	follow_drop(r->follow);
	free(r);
	return rq;
}

static void on_gone(struct exchange *x, void *ctx)
{
	(void)x;
	reading_done(ctx);
}

static void on_drain(struct exchange *x, void *ctx)
{
	struct reading *r = ctx;

	(void)x;
	if (!r->withheld) return;
	follow_consumed(r->follow, r->withheld);
	r->withheld = 0;
}

/* ---- events ---- */

static void on_opened(void *ctx, const char *id, uint32_t pid)
{
	struct reading *r = ctx;
	unsigned keepalive_ms = r->rq->routes->settings.keepalive_ms;

	cursor_store(id, pid, r->store);
	if (r->cursor_is_malformed || (r->has_cursor && strcmp(r->claimed, r->store) != 0)) {
		answer_invalid(reading_done(r)->x, "Invalid log cursor");
		return;
	}
	http_stream_begin(r->rq->x, 200, "text/event-stream", "Cache-Control: no-cache\r\n");
	keepalive_begin(&r->keepalive, r->rq, keepalive_ms);
}

static void on_log(void *ctx, const struct follow_event *event)
{
	struct reading *r = ctx;
	char cursor[CURSOR_MAX], when[CLOCK_ISO_SIZE], head[CURSOR_MAX + 128];

	r->seq = event->seq;
	cursor_encode(r->store, event->seq, cursor);
	clock_iso(event->at_ms, when);
	(void)snprintf(head, sizeof head,
		       "{\"type\":\"%s\",\"cursor\":\"%s\",\"timestamp\":\"%s\",\"data\":\"",
		       event->stream == STREAM_ERR ? "stderr" : "stdout", cursor, when);
	sse_data_base64(r->rq->x, head, event->bytes, event->len, "\"}");
	keepalive_note(&r->keepalive);
	r->withheld += event->len;
	if (http_stream_pending(r->rq->x) <= PENDING_MAX) on_drain(r->rq->x, r);
}

static void on_gap(void *ctx, uint64_t seq)
{
	struct reading *r = ctx;
	char json[80], when[CLOCK_ISO_SIZE];

	(void)seq;
	clock_iso(clock_wall_ms(), when);
	(void)snprintf(json, sizeof json, "{\"type\":\"truncated\",\"timestamp\":\"%s\"}", when);
	sse_event_text(r->rq->x, NULL, json);
	keepalive_note(&r->keepalive);
}

static void on_now(void *ctx)
{
	(void)ctx;
}

/* ---- the end ---- */

static void write_terminal(struct reading *r, uint64_t seq, uint64_t at_ms, const struct operation_end *end,
			   const char *error)
{
	char cursor[CURSOR_MAX];
	json_t *json;

	cursor_encode(r->store, seq, cursor);
	json = json_pack("{s:s, s:s, s:s, s:o}", "type", "terminal", "state", end ? "exited" : "error",
			 "cursor", cursor, "timestamp", time_json(at_ms));
	if (end) {
		json_object_set_new(json, "exit", exit_json(end));
		end_reason_add_of_limit(json, end);
	} else {
		json_object_set_new(json, "error",
				    json_pack("{s:s, s:s}", "code", "process_error", "message", error));
	}
	auto_free char *text = json_dumps(json, JSON_COMPACT | JSON_ENSURE_ASCII);
	json_decref(json);
	sse_event_text(r->rq->x, NULL, text);
}

static void fail(struct reading *r, const struct operation_end *end)
{
	struct exchange *x = reading_done(r)->x;

	if (end->reason == END_DELETED || (end->reason == END_FAILED && end->error == ESRCH))
		answer_no_process(x, KIND_PROCESS);
	else if (end->reason == END_FAILED && end->error == EINVAL) answer_invalid(x, "Invalid log cursor");
	else http_reply_error(x, 502, "exec_transport_error", "log failed: the sandbox did not answer");
}

static void on_end(void *ctx, const struct operation_end *end)
{
	struct reading *r = ctx;

	r->follow = NULL;
	if (!http_status(r->rq->x)) {
		fail(r, end);
		return;
	}
	if (end->reason <= END_DISK) {
		write_terminal(r, end->seq, end->at_ms, end, NULL);
	} else if (end->reason == END_DELETED) {
		write_terminal(r, r->seq + 1, clock_wall_ms(), NULL, "the sandbox was deleted");
	} else if (end->reason == END_LOST && end->seq) {
		write_terminal(r, end->seq, end->at_ms, NULL,
			       *end->text ? end->text : "its end was not seen");
	} else if (end->reason != END_DONE) {
		/* The process may well go on: an end that looks like the end of what there is would be a lie.
		 */
		http_abort(reading_done(r)->x);
		return;
	}
	http_stream_end(reading_done(r)->x);
}

static const struct follow_events events = {
	.on_opened = on_opened, .on_log = on_log, .on_gap = on_gap, .on_now = on_now, .on_end = on_end};

/* ---- the request ---- */

static bool query_flag(const char *query, const char *name, bool usual)
{
	auto_buf struct buf value = buf_with_cap(16);
	int r = target_query_get(query, name, &value);

	if (r == -ENOENT) return usual;
	return r == 0 && (strcmp(buf_text(&value), "true") == 0 || strcmp(buf_text(&value), "1") == 0);
}

static void take_cursor(struct reading *r, struct follow_spec *spec)
{
	auto_buf struct buf value = buf_with_cap(CURSOR_MAX);
	int got = target_query_get(http_query(r->rq->x), "since", &value);

	if (got == -ENOENT) return;
	if (got == 0) got = cursor_decode(value.data, value.len, r->claimed, &spec->since);
	r->has_cursor = got == 0;
	r->cursor_is_malformed = got < 0;
	/* Not to be read: only to learn whether there is such a process. */
	spec->flags |= got == 0 ? FOLLOW_SINCE : FOLLOW_NOW;
}

void handle_process_logs(struct request *rq)
{
	const char *query = http_query(rq->x);
	auto_free char *name = NULL;
	struct agent_link *link = request_process(rq, KIND_PROCESS, &name);
	struct follow_spec spec = {.kind = KIND_PROCESS, .name = name};

	if (!link) return;
	struct reading *r = mem_new(sizeof *r);
	r->rq = rq;
	if (query_flag(query, "follow", false)) spec.flags |= FOLLOW_LIVE;
	if (query_flag(query, "replay", true)) take_cursor(r, &spec);
	else spec.flags |= FOLLOW_NOW;
	http_on_gone(rq->x, on_gone, r);
	http_on_drain(rq->x, on_drain, r);
	r->follow = follow_start(link, &spec, &events, r);
	if (!r->follow)
		http_reply_error(reading_done(r)->x, 502, "exec_transport_error",
				 "log failed: too much goes on");
}

/*
 * exec.c - POST /v1/sandbox/:id/exec: one command as a stream of events.
 *
 * Theory of operation: a *command* goes through these stages, each with what it waits for:
 *
 *     body      the whole JSON body
 *     sandbox   the registry (skipped when the sandbox lives)
 *     opening   the agent's `opened`, or its `end` when the command cannot run
 *     stream    output and the end
 *
 * The response begins when the agent has answered, so that its head can name the process; from then on every
 * answer is an event. Output goes straight from the agent's packet into the connection's buffer. The agent
 * gets its credit back at once while the client keeps up; above PENDING_MAX of waiting output it gets none
 * until the client has read it all.
 *
 * A client that goes away ends the stream, not the command, unless the request or the setting says so.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

#include "base/mem.h"
#include "http/http.h"
#include "http/sse.h"
#include "routes/answers.h"
#include "routes/exec_end.h"
#include "routes/exec_request.h"
#include "routes/handlers.h"
#include "routes/keepalive.h"
#include "routes/pieces.h"
#include "routes/request.h"
#include "routes/session_request.h"
#include "sandbox/agent_link.h"
#include "sandbox/operations.h"

#define PENDING_MAX (256u << 10) /* bytes of output that wait for the client */
#define GRACE_MS    2000         /* between SIGTERM and SIGKILL: clients give up 5 s after their timeout */

struct command {
	struct request *rq;
	struct exec_request wish;
	struct sandbox_wait *wait;            /* stage sandbox */
	struct exec *exec;                    /* stages opening and stream */
	struct pieces pieces[STREAM_ERR + 1]; /* by stream */
	enum wire_stream stream;              /* of the pieces that are being written */
	size_t withheld;                      /* bytes of output for which the agent has no new credit yet */
	struct keepalive keepalive;
	bool kill_on_disconnect;
	bool streaming; /* the response has begun */
};

static void command_free(struct command *c)
{
	keepalive_done(&c->keepalive);
	exec_request_done(&c->wish);
	free(c);
}

/* Before an answer that is the last: from here on nobody needs C. */
static struct request *command_done(struct command *c)
{
	struct request *rq = c->rq;

	http_on_gone(rq->x, NULL, NULL);
	http_on_drain(rq->x, NULL, NULL);
	command_free(c);
	return rq;
}

static void on_gone(struct exchange *x, void *ctx)
{
	struct command *c = ctx;

	(void)x;
	sandbox_wait_cancel(c->wait);
	exec_detach(c->exec, c->kill_on_disconnect);
	command_free(c);
}

/* ---- the stream ---- */

static void stream_begin(struct command *c, const char *process_id)
{
	char headers[160];

	c->streaming = true;
	(void)snprintf(headers, sizeof headers, "Cache-Control: no-cache\r\n%s%s%s",
		       *process_id ? "X-Process-Id: " : "", process_id, *process_id ? "\r\n" : "");
	http_stream_begin(c->rq->x, 200, "text/event-stream", headers);
}

static void write_piece(void *ctx, const void *bytes, size_t len)
{
	struct command *c = ctx;

	sse_event_base64(c->rq->x, c->stream == STREAM_OUT ? "stdout" : "stderr", bytes, len);
}

static void on_drain(struct exchange *x, void *ctx)
{
	struct command *c = ctx;
	size_t withheld = c->withheld;

	(void)x;
	c->withheld = 0;
	if (withheld) exec_consumed(c->exec, withheld);
}

static void on_output(void *ctx, enum wire_stream stream, const void *bytes, size_t len)
{
	struct command *c = ctx;

	c->stream = stream;
	keepalive_note(&c->keepalive);
	pieces_add(&c->pieces[stream], bytes, len, write_piece, c);
	c->withheld += len;
	if (http_stream_pending(c->rq->x) <= PENDING_MAX) on_drain(c->rq->x, c);
}

static void on_started(void *ctx, const char *process_id, uint32_t pid)
{
	struct command *c = ctx;

	(void)pid;
	/* Trust: the agent made this text, and it goes into a header. */
	stream_begin(c, id_is_name(process_id, strlen(process_id)) ? process_id : "");
	keepalive_begin(&c->keepalive, c->rq, c->rq->routes->settings.keepalive_ms);
}

static void write_end(struct command *c, const struct operation_end *end)
{
	auto_free char *json = NULL;
	const char *event;
	char late[80];

	for (int stream = STREAM_OUT; stream <= STREAM_ERR; stream++) {
		c->stream = (enum wire_stream)stream;
		pieces_end(&c->pieces[stream], write_piece, c);
	}
	if (end->reason == END_TIMEOUT) {
		int n;

		/* The time may be the session's own, which only the agent knows. */
		if (!*c->wish.timeout_text)
			(void)snprintf(c->wish.timeout_text, sizeof c->wish.timeout_text, "%" PRIu64,
				       end->duration_ms);
		n = snprintf(late, sizeof late, "Command timed out after %sms\n", c->wish.timeout_text);
		c->stream = STREAM_ERR;
		write_piece(c, late, (size_t)n);
	}
	json = exec_end_json(end, &event);
	sse_event_text(c->rq->x, event, json);
}

static void on_end(void *ctx, const struct operation_end *end)
{
	struct command *c = ctx;

	if (!c->streaming) stream_begin(c, "");
	write_end(c, end);
	http_stream_end(command_done(c)->x);
}

static const struct exec_events events = {.on_started = on_started, .on_output = on_output, .on_end = on_end};

/* ---- the stages before it ---- */

/* "" for none. */
static const char *session_of(const struct request *rq)
{
	const char *session = http_header(rq->x, "session-id");

	if (session && *session) return session;
	return rq->profile == PROFILE_LEGACY ? SESSION_DEFAULT : "";
}

static void run(struct command *c, struct agent_link *link)
{
	const char *session = session_of(c->rq);
	struct exec_spec spec = {
		.uid = c->rq->routes->settings.uid,
		.timeout_ms = c->wish.timeout_ms,
		.grace_ms = GRACE_MS,
		.cwd = *session && !c->wish.cwd_given ? "" : c->wish.cwd,
		.session = session,
		.argv = c->wish.argv,
		.argc = c->wish.argc,
		.env = (const char *const *)c->wish.env,
		.env_count = c->wish.env_count,
		.input = c->wish.input,
		.input_len = c->wish.input_len,
	};
	int r = exec_start(link, &spec, &events, c, &c->exec);

	if (r == 0) return;
	struct operation_end end = {.reason = END_FAILED, .error = -r};
	end.text = r == -E2BIG    ? "the command is too long"
		   : r == -EMFILE ? "too many commands run in this sandbox"
				  : "the server is out of memory";
	on_end(c, &end);
}

static void on_sandbox(void *ctx, const struct sandbox_outcome *outcome)
{
	struct command *c = ctx;

	c->wait = NULL;
	if (outcome->sandbox) run(c, sandbox_link(outcome->sandbox));
	else if (outcome->error == -ECANCELED) /* as a command that was cut a moment later */
		on_end(c, &(struct operation_end){.reason = END_DELETED, .text = outcome->text});
	else answer_not_started(command_done(c), outcome);
}

static bool wants_kill(const struct request *rq)
{
	const char *wish = http_header(rq->x, "x-exec-on-disconnect");

	if (wish && strcasecmp(wish, "kill") == 0) return true;
	if (wish && strcasecmp(wish, "keep") == 0) return false;
	return rq->routes->settings.kill_on_disconnect;
}

static void on_body(struct exchange *x, const char *bytes, size_t len, void *ctx)
{
	struct request *rq = ctx;
	struct exec_request wish;
	struct exec_fault fault;

	if (!bytes) {
		answer_too_large(x, "JSON body too large", len, rq->routes->settings.json_limit);
		return;
	}
	if (!exec_request_parse(bytes, len, http_header(x, "session-id"), &wish, &fault)) {
		http_reply_error(x, fault.status, "invalid_request", fault.message);
		return;
	}
	struct command *c = mem_new(sizeof *c);
	c->rq = rq;
	c->wish = wish;
	c->kill_on_disconnect = wants_kill(rq);
	/*
	 * Whoever wants no kill loses nothing when we notice late; keep-alive comments see to it that we do.
	 */
	if (!c->kill_on_disconnect && rq->routes->settings.keepalive_ms) http_stream_outlives_half_close(x);
	http_on_gone(x, on_gone, c);
	http_on_drain(x, on_drain, c);
	struct sandbox *sb = sandboxes_find(rq->routes->sandboxes, rq->match.id);
	if (sb) {
		run(c, sandbox_link(sb));
		return;
	}
	c->wait = sandboxes_start(rq->routes->sandboxes, rq->match.id, on_sandbox, c);
	if (!c->wait) answer_no_keeper(command_done(c)->x);
}

void handle_exec(struct request *rq)
{
	http_body_collect(rq->x, rq->routes->settings.json_limit, on_body, rq);
}

/*
 * process_start.c - POST /processes and POST /terminals (API.md 3.18, 3.23): something that goes on without
 * its request.
 */
#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "routes/answers.h"
#include "routes/handlers.h"
#include "routes/process_request.h"
#include "routes/start_request.h"
#include "routes/status_json.h"
#include "sandbox/terminal.h"

#define GRACE_MS  1000 /* between SIGTERM and SIGKILL, at the end of a process's time */
#define WORDS_MAX 1000

struct starting {
	struct request *rq;
	enum process_kind kind;
	struct start_request wish;
	struct exec *process;
	struct follow *terminal;
	char *id; /* once it runs */
	uint32_t pid;
};

static void starting_free(struct starting *s)
{
	start_request_done(&s->wish);
	free(s->id);
	free(s);
}

static struct request *starting_done(void *ctx)
{
	struct starting *s = ctx;
	struct request *rq = s->rq;

	starting_free(s);
	return request_settled(rq);
}

/* It runs, or will, although nobody waits for the answer. */
static void on_gone(struct exchange *x, void *ctx)
{
	struct starting *s = ctx;

	(void)x;
	exec_detach(s->process, false);
	follow_drop(s->terminal);
	starting_free(s);
}

static void fail(struct starting *s, const char *why)
{
	bool is_process = s->kind == KIND_PROCESS;
	char message[WORDS_MAX + 64];

	(void)snprintf(message, sizeof message, "%s: %.*s",
		       is_process ? "process launch failed" : "terminal failed", WORDS_MAX, why);
	http_reply_error(starting_done(s)->x, 502, is_process ? "process_error" : "exec_transport_error",
			 message);
}

/* ---- what the agent says ---- */

static void on_opened(void *ctx, const char *id, uint32_t pid)
{
	struct starting *s = ctx;

	s->id = mem_strdup(id);
	s->pid = pid;
}

static void on_end(void *ctx, const struct operation_end *end)
{
	struct starting *s = ctx;

	s->process = NULL;
	s->terminal = NULL;
	if (end->reason != END_DONE) {
		fail(s, *end->text ? end->text : "the sandbox did not answer");
		return;
	}
	struct started started = {
		.id = s->id, .pid = s->pid, .argv = s->wish.argv, .argc = s->wish.argc, .cwd = s->wish.cwd};
	json_t *json = s->kind == KIND_PROCESS ? started_process_json(&started, end->at_ms)
					       : started_terminal_json(&started);
	answer_json(starting_done(s)->x, 200, json);
}

static void on_output(void *ctx, enum wire_stream stream, const void *bytes, size_t len)
{
	(void)ctx, (void)stream, (void)bytes, (void)len; /* there is none: it is only started */
}

static void on_log(void *ctx, const struct follow_event *event)
{
	(void)ctx, (void)event; /* likewise */
}

static void on_gap(void *ctx, uint64_t seq)
{
	(void)ctx, (void)seq;
}

static void on_now(void *ctx)
{
	(void)ctx;
}

static const struct exec_events process_events = {
	.on_started = on_opened, .on_output = on_output, .on_end = on_end};
static const struct follow_events terminal_events = {
	.on_opened = on_opened, .on_log = on_log, .on_gap = on_gap, .on_now = on_now, .on_end = on_end};

/* ---- the start ---- */

static int start_process(struct starting *s, struct agent_link *link)
{
	const struct exec_spec spec = {
		.direct = true,
		.background = true,
		.uid = s->rq->routes->settings.uid,
		.timeout_ms = s->wish.timeout_ms,
		.grace_ms = GRACE_MS,
		.cwd = s->wish.cwd,
		.argv = s->wish.argv,
		.argc = s->wish.argc,
		.env = (const char *const *)s->wish.env,
		.env_count = s->wish.env_count,
	};

	return exec_start(link, &spec, &process_events, s, &s->process);
}

static int start_terminal(struct starting *s, struct agent_link *link)
{
	const struct terminal_spec spec = {
		.flags = TERMINAL_DETACHED,
		.name = "",
		.uid = s->rq->routes->settings.uid,
		.cols = s->wish.cols,
		.rows = s->wish.rows,
		.cwd = s->wish.cwd,
		.argv = s->wish.argv,
		.argc = s->wish.argc,
		.env = (const char *const *)s->wish.env,
		.env_count = s->wish.env_count,
	};

	return terminal_start(link, &spec, &terminal_events, s, &s->terminal);
}

static void run(void *ctx, struct agent_link *link)
{
	struct starting *s = ctx;
	int r = s->kind == KIND_PROCESS ? start_process(s, link) : start_terminal(s, link);

	if (r < 0) fail(s, why_not_begun(r));
}

static void on_body(struct exchange *x, const char *bytes, size_t len, enum process_kind kind,
		    struct request *rq)
{
	struct start_request wish;
	struct start_fault fault;

	if (!bytes) {
		answer_too_large(x, "JSON body too large", len, rq->routes->settings.json_limit);
		return;
	}
	if (kind == KIND_PROCESS ? !start_request_process(bytes, len, &wish, &fault)
				 : !start_request_terminal(bytes, len, &wish, &fault)) {
		http_reply_error(x, fault.status, fault.code, fault.message);
		return;
	}
	struct starting *s = mem_new(sizeof *s);
	s->rq = rq;
	s->kind = kind;
	s->wish = wish;
	http_on_gone(x, on_gone, s);
	request_sandbox(rq, run, starting_done, s);
}

static void on_process_body(struct exchange *x, const char *bytes, size_t len, void *ctx)
{
	on_body(x, bytes, len, KIND_PROCESS, ctx);
}

static void on_terminal_body(struct exchange *x, const char *bytes, size_t len, void *ctx)
{
	on_body(x, bytes, len, KIND_TERMINAL, ctx);
}

void handle_process_start(struct request *rq)
{
	http_body_collect(rq->x, rq->routes->settings.json_limit, on_process_body, rq);
}

void handle_terminal_start(struct request *rq)
{
	http_body_collect(rq->x, rq->routes->settings.json_limit, on_terminal_body, rq);
}

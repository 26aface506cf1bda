/*
 * process_signal.c - POST /processes/:pid/kill, /terminals/:tid/interrupt and /terminals/:tid/terminate
 * (API.md 3.22, 3.27).
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>

#include "base/mem.h"
#include "routes/answers.h"
#include "routes/handlers.h"
#include "routes/json_body.h"
#include "routes/process_request.h"
#include "sandbox/call.h"

#define SIGNAL_MAX 64
#define WORDS_MAX  1000

struct signalling {
	struct request *rq;
	enum process_kind kind;
	const char *fault; /* of a request that is only looked up any more: 404 comes before it */
	struct call *operation;
	struct process_list *look;
	bool found;
};

static struct request *signalling_done(struct signalling *s)
{
	struct request *rq = s->rq;

	http_on_gone(rq->x, NULL, NULL);
	free(s);
	return rq;
}

static void on_gone(struct exchange *x, void *ctx)
{
	struct signalling *s = ctx;

	(void)x;
	call_drop(s->operation);
	process_list_drop(s->look);
	free(s);
}

static struct signalling *signalling_new(struct request *rq, enum process_kind kind)
{
	struct signalling *s = mem_new(sizeof *s);

	s->rq = rq;
	s->kind = kind;
	http_on_gone(rq->x, on_gone, s);
	return s;
}

static void fail(struct signalling *s, const char *why)
{
	char message[WORDS_MAX + 64];

	(void)snprintf(message, sizeof message, "%s failed: %.*s",
		       s->kind == KIND_PROCESS ? "kill" : "terminal", WORDS_MAX, why);
	http_reply_error(signalling_done(s)->x, 502, "exec_transport_error", message);
}

/* ---- the signal ---- */

static void on_answer(void *ctx, const struct operation_end *end)
{
	struct signalling *s = ctx;
	enum process_kind kind = s->kind;

	if (end->reason == END_DONE) answer_nothing(signalling_done(s)->x);
	else if (end->reason == END_DELETED || (end->reason == END_FAILED && end->error == ESRCH))
		answer_no_process(signalling_done(s)->x, kind);
	else fail(s, *end->text ? end->text : "the sandbox did not answer");
}

static void send_signal(struct request *rq, struct agent_link *link, enum process_kind kind, const char *name,
			int signo, enum signal_how how)
{
	struct signalling *s = signalling_new(rq, kind);

	s->operation = process_signal(link, kind, name, signo, how, on_answer, s);
	if (!s->operation) fail(s, why_not_begun(-EMFILE));
}

/* ---- a request that is wrong, and perhaps for nobody ---- */

static void on_found(void *ctx, const struct msg_process *p)
{
	struct signalling *s = ctx;

	(void)p;
	s->found = true;
}

static void on_looked(void *ctx, const struct operation_end *end)
{
	struct signalling *s = ctx;
	const char *fault = s->fault;
	bool found = s->found;

	if (end->reason != END_DONE) fail(s, "the sandbox did not answer");
	else if (found) answer_invalid(signalling_done(s)->x, fault);
	else answer_no_process(signalling_done(s)->x, KIND_PROCESS);
}

static const struct process_list_events look_events = {.on_process = on_found, .on_end = on_looked};

static void refuse_if_there(struct request *rq, struct agent_link *link, const char *name, const char *fault)
{
	struct signalling *s = signalling_new(rq, KIND_PROCESS);

	s->fault = fault;
	s->look = process_list_start(link, KIND_PROCESS, name, &look_events, s);
	if (!s->look) fail(s, why_not_begun(-EMFILE));
}

/* ---- kill ---- */

/* What is wrong with the body, or NULL. */
static const char *parse_signal(const char *body, size_t len, int *ret_signo)
{
	json_t *json = json_body_parse(body, len);
	const json_t *signal = json_object_get(json, "signal");
	double signo = json_number_value(signal);
	const char *fault = NULL;

	if (!json) fault = "Invalid JSON body";
	else if (!json_is_object(json)) fault = "Request body must be an object";
	else if (signal &&
		 !(json_is_number(signal) && signo >= 1 && signo <= SIGNAL_MAX && signo == trunc(signo)))
		fault = "signal must be an integer between 1 and 64";
	else if (signal) *ret_signo = (int)signo;
	json_decref(json);
	return fault;
}

static void kill_process(struct request *rq, const char *body, size_t len)
{
	auto_free char *name = NULL;
	struct agent_link *link = request_process(rq, KIND_PROCESS, &name);
	int signo = SIGTERM;
	const char *fault = body ? parse_signal(body, len, &signo) : NULL;

	if (!link) return;
	if (fault) refuse_if_there(rq, link, name, fault);
	else send_signal(rq, link, KIND_PROCESS, name, signo, SIGNAL_SEND);
}

static void on_body(struct exchange *x, const char *body, size_t len, void *ctx)
{
	struct request *rq = ctx;

	if (body) kill_process(rq, body, len);
	else answer_too_large(x, "JSON body too large", len, rq->routes->settings.json_limit);
}

void handle_process_kill(struct request *rq)
{
	/* Who does not say what a body is sends none that counts. */
	if (http_header(rq->x, "content-type"))
		http_body_collect(rq->x, rq->routes->settings.json_limit, on_body, rq);
	else kill_process(rq, NULL, 0);
}

/* ---- terminals ---- */

static void signal_terminal(struct request *rq, int signo, enum signal_how how)
{
	auto_free char *name = NULL;
	struct agent_link *link = request_process(rq, KIND_TERMINAL, &name);

	if (link) send_signal(rq, link, KIND_TERMINAL, name, signo, how);
}

void handle_terminal_interrupt(struct request *rq)
{
	signal_terminal(rq, SIGINT, SIGNAL_SEND);
}

void handle_terminal_terminate(struct request *rq)
{
	signal_terminal(rq, SIGTERM, SIGNAL_TERMINATE);
}

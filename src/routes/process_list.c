/*
 * process_list.c - what runs and what ran: GET /processes, /processes/:pid, /terminals and /terminals/:tid
 * (API.md 3.19, 3.20, 3.24, 3.25), oldest first.
 */
#include "base/mem.h"
#include "routes/answers.h"
#include "routes/handlers.h"
#include "routes/process_request.h"
#include "routes/status_json.h"

#define PROCESSES_MAX 10000 /* an agent that tells more lies, or we could not hold them */
#define TEXTS_MAX     (16u << 20)

struct listing {
	struct request *rq;
	enum process_kind kind;
	bool one; /* the answer is the one of that name, or that there is none */
	struct process_list *operation;
	json_t *found;
	size_t texts; /* bytes of all command lines */
};

static struct request *listing_done(struct listing *l)
{
	struct request *rq = l->rq;

	http_on_gone(rq->x, NULL, NULL);
	json_decref(l->found);
	free(l);
	return rq;
}

static void on_gone(struct exchange *x, void *ctx)
{
	struct listing *l = ctx;

	(void)x;
	process_list_drop(l->operation);
	json_decref(l->found);
	free(l);
}

static void on_process(void *ctx, const struct msg_process *p)
{
	struct listing *l = ctx;

	if (p->kind != l->kind) return;
	l->texts += p->argv.packed_len + p->cwd.len;
	if (json_array_size(l->found) >= PROCESSES_MAX || l->texts > TEXTS_MAX) return;
	json_array_append_new(l->found,
			      l->kind == KIND_PROCESS ? process_status_json(p) : terminal_snapshot_json(p));
}

static void on_end(void *ctx, const struct operation_end *end)
{
	struct listing *l = ctx;
	json_t *found = json_incref(l->found), *first = json_array_get(found, 0);
	bool done = end->reason == END_DONE, one = l->one;
	enum process_kind kind = l->kind;
	struct request *rq = listing_done(l);

	if (!done)
		http_reply_error(rq->x, 502, "exec_transport_error",
				 "list failed: the sandbox did not answer");
	else if (!one) answer_json(rq->x, 200, json_incref(found));
	else if (first) answer_json(rq->x, 200, json_incref(first));
	else answer_no_process(rq->x, kind);
	json_decref(found);
}

static const struct process_list_events events = {.on_process = on_process, .on_end = on_end};

/* NAME: NULL for all. */
static void list(struct request *rq, struct agent_link *link, enum process_kind kind, const char *name)
{
	struct listing *l = mem_new(sizeof *l);

	l->rq = rq;
	l->kind = kind;
	l->one = name != NULL;
	l->found = json_array();
	http_on_gone(rq->x, on_gone, l);
	l->operation = process_list_start(link, kind, name, &events, l);
	if (!l->operation)
		http_reply_error(listing_done(l)->x, 502, "exec_transport_error",
				 "list failed: too much goes on");
}

static void list_all(struct request *rq, enum process_kind kind)
{
	struct sandbox *sb = sandboxes_find(rq->routes->sandboxes, rq->match.id);

	if (sb) list(rq, sandbox_link(sb), kind, NULL);
	else answer_json(rq->x, 200, json_array());
}

static void list_one(struct request *rq, enum process_kind kind)
{
	auto_free char *name = NULL;
	struct agent_link *link = request_process(rq, kind, &name);

	if (link) list(rq, link, kind, name);
}

void handle_process_list(struct request *rq)
{
	list_all(rq, KIND_PROCESS);
}

void handle_process_get(struct request *rq)
{
	list_one(rq, KIND_PROCESS);
}

void handle_terminal_list(struct request *rq)
{
	list_all(rq, KIND_TERMINAL);
}

void handle_terminal_get(struct request *rq)
{
	list_one(rq, KIND_TERMINAL);
}

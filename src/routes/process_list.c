/* process_list.c - GET /v1/sandbox/:id/processes: ProcessStatus objects (API.md 3.18), oldest first. */
#include "base/clock.h"
#include "base/mem.h"
#include "routes/answers.h"
#include "routes/handlers.h"
#include "routes/request.h"
#include "sandbox/agent_link.h"
#include "sandbox/process.h"

#define PROCESSES_MAX 10000 /* an agent that tells more lies, or we could not hold them */
#define TEXTS_MAX     (16u << 20)

struct listing {
	struct request *rq;
	struct process_list *operation;
	json_t *processes;
	size_t texts; /* bytes of all command lines */
};

static struct request *listing_done(struct listing *l)
{
	struct request *rq = l->rq;

	http_on_gone(rq->x, NULL, NULL);
	json_decref(l->processes);
	free(l);
	return rq;
}

static void on_gone(struct exchange *x, void *ctx)
{
	struct listing *l = ctx;

	(void)x;
	process_list_drop(l->operation);
	json_decref(l->processes);
	free(l);
}

static json_t *json_of_time(uint64_t wall_ms)
{
	char text[CLOCK_ISO_SIZE];

	clock_iso(wall_ms, text);
	return json_string(text);
}

static json_t *json_of_command(const struct wire_list *argv)
{
	json_t *command = json_array();
	const uint8_t *at = argv->packed;
	const char *word;
	uint32_t len;

	while ((word = wire_list_next(argv, &at, &len)))
		json_array_append_new(command, json_of_text(word, len));
	return command;
}

static void add_end(json_t *json, const struct msg_process *p)
{
	json_t *exit;

	json_object_set_new(json, "endedAt", json_of_time(p->ended_ms));
	if (p->state == PROCESS_LOST) {
		json_object_set_new(
			json, "error",
			json_pack("{s:s, s:s}", "code", "process_error", "message", "its end was not seen"));
		return;
	}
	exit = json_pack("{s:i, s:b}", "code", p->code, "timedOut", p->timed_out);
	if (p->signo) json_object_set_new(exit, "signal", json_integer(p->signo));
	json_object_set_new(json, "exit", exit);
}

static void on_process(void *ctx, const struct msg_process *p)
{
	static const char *const states[] = {
		[PROCESS_RUNNING] = "running", [PROCESS_EXITED] = "exited", [PROCESS_LOST] = "error"};
	struct listing *l = ctx;

	l->texts += p->argv.packed_len + p->cwd.len;
	if (json_array_size(l->processes) >= PROCESSES_MAX || l->texts > TEXTS_MAX) return;
	json_t *json = json_pack(
		"{s:o, s:i, s:o, s:o, s:o, s:s, s:i}", "id",
		json_of_text(p->process_id.at, p->process_id.len), "pid", (int)(p->pid & INT32_MAX),
		"command", json_of_command(&p->argv), "cwd", json_of_text(p->cwd.at, p->cwd.len), "startedAt",
		json_of_time(p->started_ms), "state", states[p->state], "live", (int)(p->live & INT32_MAX));
	if (p->state != PROCESS_RUNNING) add_end(json, p);
	json_array_append_new(l->processes, json);
}

static void on_end(void *ctx, const struct operation_end *end)
{
	struct listing *l = ctx;
	json_t *processes = json_incref(l->processes);
	bool failed = end->reason != END_DONE;
	struct request *rq = listing_done(l);

	if (!failed) {
		answer_json(rq->x, 200, processes);
		return;
	}
	json_decref(processes);
	http_reply_error(rq->x, 502, "exec_transport_error", "list failed: the sandbox did not answer");
}

static const struct process_list_events events = {.on_process = on_process, .on_end = on_end};

void handle_process_list(struct request *rq)
{
	struct sandbox *sb = sandboxes_find(rq->routes->sandboxes, rq->match.id);
	struct listing *l;

	if (!sb) {
		answer_json(rq->x, 200, json_array());
		return;
	}
	l = mem_new(sizeof *l);
	l->rq = rq;
	l->processes = json_array();
	http_on_gone(rq->x, on_gone, l);
	l->operation = process_list_start(sandbox_link(sb), KIND_PROCESS, NULL, &events, l);
	if (!l->operation)
		http_reply_error(listing_done(l)->x, 502, "exec_transport_error",
				 "list failed: too much goes on");
}

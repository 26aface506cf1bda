/* sandboxes.c - /v1/sandbox and /v1/sandbox/:id: make a name, look, delete. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/mem.h"
#include "routes/answers.h"
#include "routes/handlers.h"
#include "routes/limits_request.h"
#include "routes/request.h"

/* A handler that waits for the registry. */
struct asking {
	struct request *rq;
	struct sandbox_wait *wait;
};

static void on_gone(struct exchange *x, void *ctx)
{
	struct asking *a = ctx;

	(void)x;
	sandbox_wait_cancel(a->wait);
	free(a);
}

static struct asking *asking_new(struct request *rq)
{
	struct asking *a = mem_new(sizeof *a);

	a->rq = rq;
	http_on_gone(rq->x, on_gone, a);
	return a;
}

/* Before the answer: from here on nobody needs A. */
static struct request *asking_done(struct asking *a)
{
	struct request *rq = a->rq;

	http_on_gone(rq->x, NULL, NULL);
	free(a);
	return rq;
}

/* ---- POST /v1/sandbox ---- */

#define CREATE_BODY_MAX (64u << 10) /* more cannot be what we understand */

/*
 * Clients send all kinds of bodies here, which are to be ignored. Two wishes are understood:
 * {"instance":"lite", "limits":{"memory_mb":256}} (limits_request.h).
 */
static const char *wanted_instance(const struct request *rq, const json_t *json)
{
	const char *name = json_string_value(json_object_get(json, "instance"));
	const char *const *known = rq->routes->settings.instances;

	for (size_t i = 0; name && known && known[i]; i++)
		if (strcmp(name, known[i]) == 0) return known[i];
	return "";
}

static void on_create_body(struct exchange *x, const char *bytes, size_t len, void *ctx)
{
	struct request *rq = ctx;
	char id[SANDBOX_ID_MADE + 1];
	json_t *json = bytes ? json_loadb(bytes, len, 0, NULL) : NULL;
	char wrong[LIMITS_REQUEST_WRONG];
	struct limits own;

	if (limits_request(json_object_get(json, "limits"), &own, wrong) < 0) {
		answer_invalid(x, wrong);
	} else {
		sandboxes_issue(rq->routes->sandboxes, wanted_instance(rq, json), &own, id);
		answer_json(x, 200, json_pack("{s:s}", "id", id));
	}
	json_decref(json);
}

void handle_sandbox_create(struct request *rq)
{
	if (http_has_body(rq->x)) http_body_collect(rq->x, CREATE_BODY_MAX, on_create_body, rq);
	else on_create_body(rq->x, NULL, 0, rq);
}

/* ---- GET /v1/sandbox, GET /v1/sandbox/:id ---- */

static const char *state_name(enum sandbox_state state)
{
	switch (state) {
	case SANDBOX_ABSENT: return "absent";
	case SANDBOX_MAKING: return "starting";
	case SANDBOX_LIVE: return "running";
	case SANDBOX_REMOVING:
	case SANDBOX_FALLING_ASLEEP: return "stopping";
	case SANDBOX_ASLEEP: return "asleep";
	}
	return "";
}

static json_t *json_of_sandbox(const struct sandbox *sb)
{
	char created[CLOCK_ISO_SIZE];

	clock_iso(sandbox_created_ms(sb), created);
	return json_pack("{s:s, s:s, s:s, s:s, s:s}", "id", sandbox_id(sb), "state",
			 state_name(sandbox_state(sb)), "instance", sandbox_instance(sb), "instanceId",
			 sandbox_run(sb), "createdAt", created);
}

static void add_sandbox(void *ctx, struct sandbox *sb)
{
	json_array_append_new(ctx, json_of_sandbox(sb));
}

void handle_sandbox_list(struct request *rq)
{
	json_t *list = json_array();

	sandboxes_each(rq->routes->sandboxes, add_sandbox, list);
	answer_json(rq->x, 200, json_pack("{s:o}", "sandboxes", list));
}

static json_t *json_of_number(uint64_t n)
{
	return json_integer((json_int_t)(n & INT64_MAX));
}

static void on_usage(void *ctx, const struct sandbox_outcome *outcome)
{
	struct request *rq = asking_done(ctx);
	const struct msg_usage *u = outcome->usage;
	struct sandbox *sb = sandboxes_find(rq->routes->sandboxes, rq->match.id);
	json_t *json;

	if (!u || !sb) {
		http_reply_error(rq->x, 502, "pool_error", "pool error: the sandbox could not be looked at");
		return;
	}
	json = json_of_sandbox(sb);
	json_object_set_new(json, "limits",
			    json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:s}", "memory_bytes",
				      json_of_number(u->memory_limit), "pids", json_of_number(u->pids_limit),
				      "cpu_milli", json_of_number(u->cpu_milli), "disk_bytes",
				      json_of_number(u->disk_limit), "inodes",
				      json_of_number(u->inodes_limit), "disk_enforced", u->disk_enforced,
				      "disk_backend", u->disk_backend.at));
	json_object_set_new(json, "usage",
			    json_pack("{s:b, s:o, s:o, s:o, s:o, s:o}", "known", u->known, "memory_bytes",
				      json_of_number(u->memory_bytes), "pids", json_of_number(u->pids),
				      "disk_bytes", json_of_number(u->disk_bytes), "pids_max_hits",
				      json_of_number(u->pids_refused), "oom_kills",
				      json_of_number(u->oom_kills)));
	answer_json(rq->x, 200, json);
}

/* One that ended by itself is worth a word. */
static void answer_no_sandbox(struct request *rq)
{
	const char *why = sandboxes_lost(rq->routes->sandboxes, rq->match.id);
	char hint[256];

	if (!why) {
		http_reply_error(rq->x, 404, "not_found", "Sandbox not found");
		return;
	}
	(void)snprintf(hint, sizeof hint, "It was lost: %s. The next command under this id gets a new one.",
		       why);
	answer_json(rq->x, 404,
		    json_pack("{s:s, s:s, s:o}", "error", "Sandbox not found", "code", "not_found", "hint",
			      json_of_text(hint, strlen(hint))));
}

void handle_sandbox_inspect(struct request *rq)
{
	struct sandboxes *all = rq->routes->sandboxes;
	enum sandbox_state state = sandboxes_state(all, rq->match.id);
	struct sandbox *sleeper = sandboxes_sleeper(all, rq->match.id);
	struct asking *a;

	if (sleeper) {
		answer_json(rq->x, 200, json_of_sandbox(sleeper));
		return;
	}
	if (state == SANDBOX_LIVE) {
		a = asking_new(rq);
		a->wait = sandboxes_inspect(all, rq->match.id, on_usage, a);
		if (a->wait) return;
		answer_no_keeper(asking_done(a)->x);
		return;
	}
	if (state == SANDBOX_ABSENT && !sandboxes_issued(all, rq->match.id)) {
		answer_no_sandbox(rq);
		return;
	}
	answer_json(rq->x, 200,
		    json_pack("{s:s, s:s}", "id", rq->match.id, "state",
			      state == SANDBOX_ABSENT ? "issued" : state_name(state)));
}

/* ---- DELETE /v1/sandbox/:id ---- */

static void on_removed(void *ctx, const struct sandbox_outcome *outcome)
{
	struct request *rq = asking_done(ctx);

	if (outcome->error) answer_no_keeper(rq->x);
	else answer_nothing(rq->x);
}

void handle_sandbox_delete(struct request *rq)
{
	struct asking *a = asking_new(rq);

	a->wait = sandboxes_remove(rq->routes->sandboxes, rq->match.id, on_removed, a);
	if (!a->wait) answer_no_keeper(asking_done(a)->x);
}

/* ---- GET /v1/sandbox/:id/running ---- */

static void answer_running(struct request *rq, bool running)
{
	struct sandbox *sb = sandboxes_find(rq->routes->sandboxes, rq->match.id);
	json_t *json = json_pack("{s:b}", "running", running);

	if (sb) json_object_set_new(json, "instanceId", json_string(sandbox_run(sb)));
	answer_json(rq->x, 200, json);
}

static void on_started(void *ctx, const struct sandbox_outcome *outcome)
{
	answer_running(asking_done(ctx), outcome->sandbox != NULL);
}

/* The old dialects start a sandbox to find out whether it runs. */
static void start_and_tell(struct request *rq)
{
	struct asking *a = asking_new(rq);

	a->wait = sandboxes_start(rq->routes->sandboxes, rq->match.id, on_started, a);
	if (!a->wait) answer_running(asking_done(a), false);
}

void handle_sandbox_running(struct request *rq)
{
	struct sandboxes *all = rq->routes->sandboxes;
	enum sandbox_state state = sandboxes_state(all, rq->match.id);
	bool runs = state == SANDBOX_LIVE || state == SANDBOX_MAKING;
	bool asleep = state == SANDBOX_ASLEEP || state == SANDBOX_FALLING_ASLEEP;

	switch (rq->profile) {
	case PROFILE_UNION: answer_running(rq, runs || asleep || sandboxes_issued(all, rq->match.id)); return;
	case PROFILE_NEXT: answer_running(rq, state == SANDBOX_LIVE); return;
	case PROFILE_LEGACY:
	case PROFILE_STABLE:
	case PROFILE_PREVIEW: break;
	}
	/* HEAD starts nothing: it is for routes that do not. */
	if (strcmp(http_method(rq->x), "HEAD") == 0) answer_no_route(rq->x, "/v1/sandbox");
	else if (state == SANDBOX_LIVE) answer_running(rq, true);
	else start_and_tell(rq);
}

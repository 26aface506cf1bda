/*
 * sessions.c - POST /session and DELETE /session/:sid (API.md 3.13, 3.14). What a session is:
 * agent/session.h.
 *
 * In the dialect `legacy` all commands without a Session-Id share the session "default": it is never made or
 * deleted.
 */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/mem.h"
#include "http/target.h"
#include "routes/answers.h"
#include "routes/handlers.h"
#include "routes/json_body.h"
#include "routes/request.h"
#include "routes/session_request.h"
#include "sandbox/call.h"

#define WORDS_MAX 1000

struct session_change {
	struct request *rq;
	bool deletes;
	char id[NAME_ID_MAX + 1];
	struct session_request wish; /* of a creation */
	struct call *operation;
};

static void change_free(struct session_change *c)
{
	session_request_done(&c->wish);
	free(c);
}

static struct request *change_done(void *ctx)
{
	struct session_change *c = ctx;
	struct request *rq = c->rq;

	change_free(c);
	return request_settled(rq);
}

static void on_gone(struct exchange *x, void *ctx)
{
	struct session_change *c = ctx;

	(void)x;
	call_drop(c->operation);
	change_free(c);
}

static void answer_failed(struct exchange *x, bool deletes, const char *why)
{
	char message[WORDS_MAX + 64];

	(void)snprintf(message, sizeof message, "session %s failed: %.*s", deletes ? "delete" : "create",
		       WORDS_MAX, why);
	http_reply_error(x, 502, "session_error", message);
}

static void answer_deleted(struct request *rq, const char *id)
{
	char now[CLOCK_ISO_SIZE];

	if (rq->profile == PROFILE_LEGACY) {
		answer_nothing(rq->x);
		return;
	}
	clock_iso(clock_wall_ms(), now);
	answer_json(rq->x, 200,
		    json_pack("{s:b, s:s, s:s}", "success", 1, "sessionId", id, "timestamp", now));
}

static void on_done(void *ctx, const struct operation_end *end)
{
	struct session_change *c = ctx;
	bool deletes = c->deletes;
	struct request *rq;
	char id[sizeof c->id];

	memcpy(id, c->id, sizeof id);
	rq = change_done(c);
	if (end->reason != END_DONE)
		answer_failed(rq->x, deletes, *end->text ? end->text : "the sandbox did not answer");
	else if (deletes) answer_deleted(rq, id);
	else answer_json(rq->x, 200, json_pack("{s:s}", "id", id));
}

static void begin(void *ctx, struct agent_link *link)
{
	struct session_change *c = ctx;
	bool deletes = c->deletes;
	const struct session_spec spec = {.cwd = c->wish.cwd,
					  .env = (const char *const *)c->wish.env,
					  .env_count = c->wish.env_count,
					  .timeout_ms = c->wish.timeout_ms};

	c->operation =
		deletes ? session_end(link, c->id, on_done, c) : session_make(link, c->id, &spec, on_done, c);
	if (!c->operation) answer_failed(change_done(c)->x, deletes, "too much goes on in this sandbox");
}

static struct session_change *change_new(struct request *rq)
{
	struct session_change *c = mem_new(sizeof *c);

	c->rq = rq;
	http_on_gone(rq->x, on_gone, c);
	return c;
}

/* ---- creation ---- */

static void make_id(char id[NAME_ID_MAX + 1])
{
	char uuid[UUID_LEN + 1];

	id_make_uuid(uuid);
	(void)snprintf(id, NAME_ID_MAX + 1, "session-%s", uuid);
}

static void on_body(struct exchange *x, const char *bytes, size_t len, void *ctx)
{
	struct request *rq = ctx;
	struct session_request wish;
	const char *fault;

	if (!bytes) {
		answer_too_large(x, "JSON body too large", len, rq->routes->settings.json_limit);
		return;
	}
	fault = session_request_parse(bytes, len, &wish);
	if (fault) {
		answer_invalid(x, fault);
		return;
	}
	struct session_change *c = change_new(rq);
	c->wish = wish;
	if (*wish.id) memcpy(c->id, wish.id, sizeof c->id);
	else make_id(c->id);
	request_sandbox(rq, begin, change_done, c);
}

void handle_session_create(struct request *rq)
{
	http_body_collect(rq->x, rq->routes->settings.json_limit, on_body, rq);
}

/* ---- deletion ---- */

void handle_session_delete(struct request *rq)
{
	struct sandbox *sb = sandboxes_find(rq->routes->sandboxes, rq->match.id);
	auto_free char *id = mem_new(rq->match.part_len + 1);
	size_t len;

	if (target_decode(rq->match.part, rq->match.part_len, id, &len) < 0 || !id_is_name(id, len) || !sb) {
		answer_failed(rq->x, true, "there is no session of that name");
		return;
	}
	if (strcmp(id, SESSION_DEFAULT) == 0) {
		answer_failed(rq->x, true, "the default session cannot be deleted");
		return;
	}
	struct session_change *c = change_new(rq);
	c->deletes = true;
	memcpy(c->id, id, len + 1);
	begin(c, sandbox_link(sb));
}

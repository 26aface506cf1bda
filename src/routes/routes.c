#include "routes/routes.h"

#include <errno.h>
#include <stdio.h>

#include "base/id.h"
#include "base/mem.h"
#include "base/path.h"
#include "http/http.h"
#include "http/target.h"
#include "routes/answers.h"
#include "routes/handlers.h"
#include "routes/openapi.h"
#include "routes/request.h"

#define WORKSPACE "/workspace"

const struct route routes_table[] = {
/* clang-format off */
#define ROUTE(method, pattern, handler, credentials, profiles, sandbox, operation)                           \
	{#method, pattern, handle_##handler, CREDENTIALS_##credentials, PROFILES_##profiles, sandbox, #operation},
/* clang-format on */
#include "routes/routes.def"
};
const unsigned routes_count = ARRAY_LEN(routes_table);

struct routes *routes_new(struct loop *loop, struct sandboxes *all, struct pool *pool,
			  const struct routes_settings *settings)
{
	struct routes *r = mem_new(sizeof *r);

	r->loop = loop;
	r->sandboxes = all;
	r->pool = pool;
	r->openapi = openapi_new();
	r->settings = *settings;
	return r;
}

struct routes *routes_free(struct routes *r)
{
	if (!r) return NULL;
	openapi_free(r->openapi);
	free(r);
	return NULL;
}

/* Who only asks how a sandbox is does not keep it awake, or monitoring would keep all of them. */
static bool keeps_awake(const struct router_match *m)
{
	return m->id[0] && m->route->handler != handle_sandbox_running &&
	       m->route->handler != handle_sandbox_inspect;
}

static void request_free(void *data)
{
	struct request *rq = data;

	sandbox_wait_cancel(rq->wait);
	sandbox_unuse(rq->used);
	free(rq);
}

static void on_made(void *ctx, const struct sandbox_outcome *outcome)
{
	struct request *rq = ctx;

	(void)outcome; /* whatever it is, the handler finds it out */
	rq->wait = NULL;
	rq->match.route->handler(rq);
}

/*
 * Who only looks for a sandbox starts none, but one that is just coming (or coming back, after a keeper's
 * death) must not be taken for one that is not there. True: the handler is called later.
 */
static bool wait_for_late(struct request *rq)
{
	struct sandboxes *all = rq->routes->sandboxes;
	const struct router_match *m = &rq->match;

	if (m->route->sandbox != LOOKS || !keeps_awake(m) || m->route->handler == handle_sandbox_delete)
		return false;
	if (sandboxes_state(all, m->id) != SANDBOX_MAKING) return false;
	rq->wait = sandboxes_start(all, m->id, on_made, rq);
	return rq->wait != NULL;
}

/* API.md 1.1, in its order. */
void routes_on_request(struct exchange *x, void *ctx)
{
	struct routes *routes = ctx;
	struct request *rq = mem_new(sizeof *rq);
	enum router_verdict verdict;
	const char *path;

	rq->routes = routes;
	rq->x = x;
	rq->profile = routes->settings.profiles[http_listener(x)];
	http_set_data(x, rq, request_free);
	path = router_strip_profile(http_path(x), &rq->profile);
	verdict = router_match(http_method(x), path, rq->profile, &rq->match);
	if (verdict == ROUTER_BAD_ID) {
		answer_invalid(x, "Invalid sandbox ID format");
		return;
	}
	if (!router_may(rq->match.credentials, routes->settings.api_key, http_header(x, "authorization"),
			http_query(x))) {
		http_reply_error(x, 401, "unauthorized", "Unauthorized");
		return;
	}
	if (verdict == ROUTER_UNKNOWN) {
		answer_no_route(x, path);
		return;
	}
	if (keeps_awake(&rq->match)) rq->used = sandboxes_use(routes->sandboxes, rq->match.id);
	if (!wait_for_late(rq)) rq->match.route->handler(rq);
}

const char *routes_sandbox_of(const struct exchange *x)
{
	const struct request *rq = http_data(x);

	return rq ? rq->match.id : "";
}

/* ---- steps that several routes share ---- */

static void on_started(void *ctx, const struct sandbox_outcome *outcome)
{
	struct request *rq = ctx;

	rq->wait = NULL;
	if (outcome->sandbox) rq->begin(rq->user, sandbox_link(outcome->sandbox));
	else answer_not_started(rq->give_up(rq->user), outcome);
}

void request_sandbox(struct request *rq, void (*begin)(void *user, struct agent_link *link),
		     struct request *(*give_up)(void *user), void *user)
{
	struct sandboxes *all = rq->routes->sandboxes;
	struct sandbox *sb = sandboxes_find(all, rq->match.id);

	if (sb) {
		begin(user, sandbox_link(sb));
		return;
	}
	rq->begin = begin;
	rq->give_up = give_up;
	rq->user = user;
	rq->wait = sandboxes_start(all, rq->match.id, on_started, rq);
	if (!rq->wait) answer_no_keeper(give_up(user)->x);
}

struct request *request_settled(struct request *rq)
{
	rq->wait = sandbox_wait_cancel(rq->wait);
	http_on_gone(rq->x, NULL, NULL);
	return rq;
}

bool request_session_is_fine(const struct request *rq)
{
	const char *session = http_header(rq->x, "session-id");

	return !session || !*session || id_is_name(session, strlen(session));
}

bool request_file_path(struct request *rq, char path[PATH_LIMIT])
{
	const char *raw = rq->match.rest;
	size_t raw_len = strlen(raw), len;
	auto_free char *decoded = NULL;

	if (raw_len == 0) {
		answer_invalid(rq->x, "file path must not be empty");
		return false;
	}
	decoded = mem_new(raw_len + 2);
	decoded[0] = '/';
	if (target_decode(raw, raw_len, decoded + 1, &len) < 0) {
		answer_invalid(rq->x, "file path must not hold a NUL byte");
		return false;
	}
	if (path_resolve("/", decoded, len + 1, path) < 0) {
		answer_invalid(rq->x, "file path is too long");
		return false;
	}
	if (!path_is_within(path, WORKSPACE)) {
		http_reply_error(rq->x, 403, "invalid_request",
				 "path must resolve to a location within /workspace");
		return false;
	}
	/* The next dialect does not know the header. */
	if (rq->profile != PROFILE_NEXT && !request_session_is_fine(rq)) {
		answer_invalid(rq->x, "Invalid session ID format");
		return false;
	}
	return true;
}

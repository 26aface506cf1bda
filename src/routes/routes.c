#include "routes/routes.h"

#include "base/mem.h"
#include "http/http.h"
#include "routes/answers.h"
#include "routes/handlers.h"
#include "routes/openapi.h"
#include "routes/request.h"

typedef void handler(struct request *rq);

/* As routes_table. */
static handler *const handlers[] = {
#define ROUTE(method, pattern, handler, ...) handle_##handler,
#include "routes/routes.def"
};

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

static handler *handler_of(const struct router_match *m)
{
	return handlers[m->route - routes_table];
}

/* Who only asks how a sandbox is does not keep it awake, or monitoring would keep all of them. */
static bool keeps_awake(const struct router_match *m)
{
	return m->id[0] && handler_of(m) != handle_sandbox_running && handler_of(m) != handle_sandbox_inspect;
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
	handler_of (&rq->match)(rq);
}

/*
 * Who only looks for a sandbox starts none, but one that is just coming (or coming back, after a keeper's
 * death) must not be taken for one that is not there. True: the handler is called later.
 */
static bool wait_for_late(struct request *rq)
{
	struct sandboxes *all = rq->routes->sandboxes;
	const struct router_match *m = &rq->match;

	if (m->route->sandbox != LOOKS || !keeps_awake(m) || handler_of(m) == handle_sandbox_delete)
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
	if (!wait_for_late(rq)) handler_of (&rq->match)(rq);
}

const char *routes_sandbox_of(const struct exchange *x)
{
	const struct request *rq = http_data(x);

	return rq ? rq->match.id : "";
}

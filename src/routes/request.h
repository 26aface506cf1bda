/* request.h - inside the room: one request on its way through a handler. It lives as long as its exchange. */
#pragma once

#include "base/path.h"
#include "http/http.h"
#include "routes/router.h"
#include "routes/routes.h"
#include "sandbox/registry.h"

struct routes {
	struct loop *loop;
	struct sandboxes *sandboxes;
	struct pool *pool;
	struct openapi *openapi;
	struct routes_settings settings;
};

struct request {
	struct sandbox *used;      /* what it keeps awake; NULL: nothing */
	struct sandbox_wait *wait; /* for its sandbox, before anything else or as follows; mostly NULL */
	struct routes *routes;
	struct exchange *x;
	enum profile profile;
	struct router_match match;

	/* See request_sandbox(). */
	void (*begin)(void *user, struct agent_link *link);
	struct request *(*give_up)(void *user);
	void *user;
};

/* ---- steps that several routes share ---- */

/*
 * Step 6 for a route that starts: BEGIN(USER, link) with the link to the living sandbox, at once or later. Or
 * there will be none: then GIVE_UP(USER), which lets go of USER and returns request_settled(RQ), and RQ is
 * answered.
 */
void request_sandbox(struct request *rq, void (*begin)(void *user, struct agent_link *link),
		     struct request *(*give_up)(void *user), void *user);

/* Before an answer: RQ waits for its sandbox no more, nor for its client's leaving (http_on_gone()). Returns
 * RQ. */
struct request *request_settled(struct request *rq);

/* Whether the Session-Id header is absent, empty or well-formed. */
bool request_session_is_fine(const struct request *rq);

/*
 * API.md 4: the path behind /file/ as an absolute one inside /workspace. False: the request has been
 * answered.
 */
bool request_file_path(struct request *rq, char path[PATH_LIMIT]);

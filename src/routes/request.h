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
	struct sandbox_wait *late; /* what it waits for before anything else; mostly NULL */
	struct routes *routes;
	struct exchange *x;
	enum profile profile;
	struct router_match match;
};

/* ---- steps that several routes share ---- */

/*
 * Step 6 for a route that starts: the link to the living sandbox, or NULL. Then either *RET_WAIT is set and
 * ON_STARTED comes, or it is NULL: there is no keeper to start one.
 */
struct agent_link *request_sandbox(struct request *rq, struct sandbox_wait **ret_wait, on_outcome *on_started,
				   void *ctx);

/* Whether the Session-Id header is absent, empty or well-formed. */
bool request_session_is_fine(const struct request *rq);

/*
 * API.md 4: the path behind /file/ as an absolute one inside /workspace. False: the request has been
 * answered.
 */
bool request_file_path(struct request *rq, char path[PATH_LIMIT]);

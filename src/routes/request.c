#include "routes/request.h"

#include <string.h>

#include "base/id.h"
#include "base/mem.h"
#include "base/path.h"
#include "http/http.h"
#include "http/target.h"
#include "routes/answers.h"

#define WORKSPACE "/workspace"

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

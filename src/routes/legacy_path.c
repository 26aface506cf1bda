#include "routes/legacy_path.h"

#include <errno.h>

#include "http/http.h"
#include "routes/answers.h"
#include "routes/request.h"

#define WORKSPACE "/workspace"

bool legacy_path(struct request *rq, const char *text, size_t len, char path[PATH_LIMIT])
{
	int r;

	if (!len) {
		answer_invalid(rq->x, LEGACY_PATH_MISSING);
		return false;
	}
	r = path_resolve(WORKSPACE, text, len, path);
	if (r < 0) {
		answer_invalid(rq->x,
			       r == -EINVAL ? "path must not contain a NUL character" : "path is too long");
		return false;
	}
	if (!path_is_within(path, WORKSPACE)) {
		http_reply_error(rq->x, 403, "invalid_request",
				 "path must resolve to a location within /workspace");
		return false;
	}
	if (!request_session_is_fine(rq)) {
		answer_invalid(rq->x, "Invalid session ID format");
		return false;
	}
	return true;
}

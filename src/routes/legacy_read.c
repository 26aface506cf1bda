/* legacy_read.c - POST /v1/sandbox/:id/read (API.md 3.8): a file by JSON, otherwise as GET /file. */
#include "base/mem.h"
#include "base/path.h"
#include "http/http.h"
#include "routes/answers.h"
#include "routes/files.h"
#include "routes/handlers.h"
#include "routes/json_body.h"
#include "routes/legacy_path.h"
#include "routes/request.h"

static void on_body(struct exchange *x, const char *bytes, size_t len, void *ctx)
{
	struct request *rq = ctx;
	char path[PATH_LIMIT];
	json_t *json, *given;
	bool fine = false;

	if (!bytes) {
		answer_too_large(x, "JSON body too large", len, rq->routes->settings.json_limit);
		return;
	}
	json = json_body_parse(bytes, len);
	if (!json) {
		answer_invalid(x, "Invalid JSON body");
		return;
	}
	given = json_object_get(json, "path");
	if (json_is_string(given))
		fine = legacy_path(rq, json_string_value(given), json_string_length(given), path);
	else answer_invalid(x, LEGACY_PATH_MISSING);
	json_decref(json);
	if (fine) file_answer(rq, path);
}

void handle_file_read(struct request *rq)
{
	http_body_collect(rq->x, rq->routes->settings.json_limit, on_body, rq);
}

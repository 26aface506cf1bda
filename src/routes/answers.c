#include "routes/answers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "http/http.h"
#include "routes/request.h"

#define JSON_TYPE "application/json"

static void reply_json(struct exchange *x, unsigned status, const char *headers, json_t *json)
{
	/* ASCII only, so that no client can cut a character in two. */
	auto_free char *text = json_dumps(json, JSON_COMPACT | JSON_ENSURE_ASCII);

	json_decref(json);
	if (text) http_reply(x, status, JSON_TYPE, headers, text, strlen(text));
	else http_reply(x, 500, "text/plain; charset=UTF-8", NULL, "Internal Server Error", 21);
}

void answer_json(struct exchange *x, unsigned status, json_t *json)
{
	reply_json(x, status, NULL, json);
}

void answer_ok(struct exchange *x)
{
	http_reply(x, 200, JSON_TYPE, NULL, "{\"ok\":true}", 11);
}

void answer_nothing(struct exchange *x)
{
	http_reply(x, 204, NULL, NULL, NULL, 0);
}

void answer_error_with(struct exchange *x, unsigned status, const char *code, const char *message,
		       const char *headers)
{
	json_t *json = json_pack("{s:o, s:s}", "error", json_of_text(message, strlen(message)), "code", code);

	reply_json(x, status, headers, json);
}

void answer_invalid(struct exchange *x, const char *message)
{
	http_reply_error(x, 400, "invalid_request", message);
}

void answer_too_large(struct exchange *x, const char *what, uint64_t bytes, uint64_t limit)
{
	char message[128];

	(void)snprintf(message, sizeof message, "%s: %" PRIu64 " bytes exceeds the %" PRIu64 "-byte limit",
		       what, bytes, limit);
	http_reply_error(x, 413, "payload_too_large", message);
}

void answer_no_route(struct exchange *x, const char *path)
{
	if (router_is_api(path)) http_reply(x, 404, "text/plain; charset=UTF-8", NULL, "404 Not Found", 13);
	else http_reply(x, 404, "text/plain", NULL, "Not Found", 9);
}

void answer_not_started(struct request *rq, const struct sandbox_outcome *outcome)
{
	static const char limit_reached[] = "instance limit reached";
	char message[512];

	switch (outcome->refused) {
	case REFUSED_CAPACITY:
		(void)snprintf(
			message, sizeof message,
			"Cannot start container: %s. Delete sandboxes that are no longer needed, or %s.",
			outcome->text,
			strncmp(outcome->text, limit_reached, sizeof limit_reached - 1) == 0
				? "raise max-sandboxes"
				: "make room on the host");
		http_reply_error(rq->x, 503, "capacity_exceeded", message);
		return;
	case REFUSED_INSTANCE:
		answer_invalid(rq->x, *outcome->text ? outcome->text : "there is no such instance type");
		return;
	case REFUSED_BACKEND: break;
	}
	(void)snprintf(message, sizeof message, "pool error: %s", outcome->text);
	http_reply_error(rq->x, 502, "pool_error", message);
}

void answer_no_keeper(struct exchange *x)
{
	http_reply_error(x, 502, "pool_error",
			 "pool error: the keeper is gone, and a new one is not there yet");
}

json_t *json_of_text(const char *text, size_t len)
{
	auto_free char *clean = NULL;

	if (utf8_valid(text, len)) return json_stringn_nocheck(text, len);
	clean = mem_strndup(text, len);
	for (char *c = clean; *c; c++)
		if ((unsigned char)*c >= 0x80) *c = '?';
	return json_string_nocheck(clean);
}

#include "routes/exec_end.h"

#include <stdio.h>
#include <string.h>

#include "routes/answers.h"
#include "routes/end_reason.h"

#define WORDS_MAX 1000 /* bytes of the agent's own words */

static json_t *json_of_number(uint64_t n)
{
	return json_integer((json_int_t)(n & INT64_MAX));
}

static json_t *exit_event(const struct operation_end *end)
{
	json_t *json = json_pack("{s:i}", "exit_code", end->reason == END_TIMEOUT ? 124 : end->code);

	end_reason_add(json, end);
	json_object_set_new(json, "duration_ms", json_of_number(end->duration_ms));
	json_object_set_new(json, "cpu_ms", json_of_number(end->cpu_ms));
	json_object_set_new(json, "max_memory", json_of_number(end->max_memory));
	json_object_set_new(json, "bytes", json_of_number(end->bytes));
	json_object_set_new(json, "left_running", json_of_number(end->left_running));
	return json;
}

static json_t *error_event(const char *prefix, const char *words, const char *code, const char *reason)
{
	char message[WORDS_MAX + 64];

	(void)snprintf(message, sizeof message, "%s: %.*s", prefix, WORDS_MAX, words);
	return json_pack("{s:o, s:s, s:s}", "error", json_of_text(message, strlen(message)), "code", code,
			 "reason", reason);
}

static json_t *event_of(const struct operation_end *end, const char **ret_event)
{
	*ret_event = "exit";
	switch (end->reason) {
	case END_EXITED:
	case END_SIGNAL:
	case END_TIMEOUT:
	case END_CANCELLED:
	case END_OOM:
	case END_PIDS:
	case END_DISK: return exit_event(end);
	case END_DELETED:
	case END_LOST:
		*ret_event = "error";
		return error_event("exec failed", end->text, "exec_transport_error",
				   end_reason_name(end->reason));
	case END_FAILED:
	case END_DONE: break;
	}
	*ret_event = "error";
	return error_event("Command execution failed", end->text, "exec_error", "failed");
}

char *exec_end_json(const struct operation_end *end, const char **ret_event)
{
	json_t *json = event_of(end, ret_event);
	char *text = json_dumps(json, JSON_COMPACT | JSON_ENSURE_ASCII);

	json_decref(json);
	return text;
}

#include "routes/control_message.h"

#include <string.h>

#include <jansson.h>

#include "routes/terminal_size.h"

static void take_size(const json_t *json, bool whole_numbers, struct control_message *m)
{
	enum size_verdict (*size)(const json_t *, uint16_t *) =
		whole_numbers ? size_of_json : size_of_loose_json;
	bool fine = size(json_object_get(json, "cols"), &m->cols) == SIZE_GIVEN &&
		    size(json_object_get(json, "rows"), &m->rows) == SIZE_GIVEN;

	m->kind = fine ? CONTROL_RESIZE : CONTROL_BAD_SIZE;
}

static bool is_text(const json_t *json, const char *text)
{
	size_t len = strlen(text);

	return json_string_length(json) == len && memcmp(json_string_value(json), text, len) == 0;
}

struct control_message control_message_parse(const char *text, size_t len, bool whole_numbers)
{
	struct control_message m = {.kind = CONTROL_MALFORMED};
	json_t *json = json_loadb(text, len, JSON_ALLOW_NUL, NULL);
	const json_t *type = json_object_get(json, "type");

	if (json_is_object(json)) m.kind = CONTROL_UNKNOWN;
	if (is_text(type, "resize")) take_size(json, whole_numbers, &m);
	if (is_text(type, "interrupt")) m.kind = CONTROL_INTERRUPT;
	if (is_text(type, "terminate")) m.kind = CONTROL_TERMINATE;
	json_decref(json);
	return m;
}

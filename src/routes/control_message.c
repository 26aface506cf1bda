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

struct control_message control_message_parse(const char *text, size_t len, bool whole_numbers)
{
	struct control_message m = {.kind = CONTROL_MALFORMED};
	json_t *json = json_loadb(text, len, JSON_ALLOW_NUL, NULL);
	const char *type = json_string_value(json_object_get(json, "type"));

	if (json_is_object(json)) m.kind = CONTROL_UNKNOWN;
	if (type && strcmp(type, "resize") == 0) take_size(json, whole_numbers, &m);
	if (type && strcmp(type, "interrupt") == 0) m.kind = CONTROL_INTERRUPT;
	if (type && strcmp(type, "terminate") == 0) m.kind = CONTROL_TERMINATE;
	json_decref(json);
	return m;
}

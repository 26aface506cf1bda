#include "routes/json_body.h"

#include <string.h>

json_t *json_body_parse(const char *body, size_t len)
{
	static const char bom[] = {'\xef', '\xbb', '\xbf'};

	if (len >= sizeof bom && memcmp(body, bom, sizeof bom) == 0) {
		body += sizeof bom;
		len -= sizeof bom;
	}
	return json_loadb(body, len, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
}

bool json_has_nul(const json_t *string)
{
	return memchr(json_string_value(string), '\0', json_string_length(string)) != NULL;
}

bool json_is_filled(const json_t *value)
{
	return json_string_length(value) > 0;
}

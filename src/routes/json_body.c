#include "routes/json_body.h"

#include <string.h>

json_t *json_body_parse(const char *body, size_t len)
{
	static const char bom[] = {'\xef', '\xbb', '\xbf'};
	json_error_t error;
	json_t *json;

	if (len >= sizeof bom && memcmp(body, bom, sizeof bom) == 0) {
		body += sizeof bom;
		len -= sizeof bom;
	}
	json = json_loadb(body, len, JSON_ALLOW_NUL | JSON_DECODE_ANY, &error);
	/* An integer may be larger than the library's: then all are what they are in JavaScript. */
	if (!json && json_error_code(&error) == json_error_numeric_overflow)
		json = json_loadb(body, len, JSON_ALLOW_NUL | JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL,
				  NULL);
	return json;
}

bool json_has_nul(const json_t *string)
{
	return memchr(json_string_value(string), '\0', json_string_length(string)) != NULL;
}

bool json_is_filled(const json_t *value)
{
	return json_string_length(value) > 0;
}

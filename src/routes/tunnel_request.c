#include "routes/tunnel_request.h"

#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "http/target.h"
#include "routes/js_number.h"
#include "routes/json_body.h"

#define PORT_TEXT_MAX 256
#define PORT_RESERVED 3000 /* the contract's own */

bool tunnel_port_parse(const char *port, size_t len, uint16_t *ret)
{
	char text[PORT_TEXT_MAX];
	size_t text_len;
	long number;

	if (len >= sizeof text || target_decode(port, len, text, &text_len) < 0) return false;
	if (!js_number_within(text, text_len, 1024, UINT16_MAX, &number) || number == PORT_RESERVED)
		return false;
	*ret = (uint16_t)number;
	return true;
}

/* JavaScript counts UTF-16 units; a label of other characters than these fails all the same. */
static size_t characters(const char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		n += (c & 0xc0) != 0x80;
		n += c >= 0xf0;
	}
	return n;
}

/* ^[a-z0-9]([a-z0-9-]*[a-z0-9])?$ */
static bool is_label(const char *text, size_t len)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";

	return strspn(text, letters) == len && text[0] != '-' && text[len - 1] != '-';
}

static const char *take_name(const json_t *value, char name[TUNNEL_NAME_MAX + 1])
{
	const char *text = json_string_value(value);
	size_t len = json_string_length(value), count;

	if (!text) return "name must be a string when provided";
	count = characters(text, len);
	if (count < 1 || count > TUNNEL_NAME_MAX) return "name must be 1\u201363 characters";
	if (!is_label(text, len)) return "name must be a valid DNS label (a-z, 0-9 and inner hyphens)";
	memcpy(name, text, len + 1);
	return NULL;
}

const char *tunnel_body_parse(const char *body, size_t len, char name[TUNNEL_NAME_MAX + 1])
{
	const char *fault = NULL;
	const json_t *value;
	json_t *json;

	name[0] = '\0';
	while (len && strchr(" \t\r\n", *body) && *body)
		body++, len--;
	if (len == 0) return NULL;
	json = json_body_parse(body, len);
	if (!json) return "Invalid JSON body";
	value = json_object_get(json, "name");
	if (value) fault = take_name(value, name);
	json_decref(json);
	return fault;
}

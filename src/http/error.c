/* error.c - {"error":...,"code":...}: the one form in which this server says no. */
#include "http/internal.h"

#include <string.h>

#include "base/utf8.h"

/* The character at AT, a lead byte of well-formed UTF-8 of *RET_LEN bytes; U+FFFD for one byte otherwise. */
static unsigned long character_at(const unsigned char *at, size_t len, size_t *ret_len)
{
	size_t n = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
	unsigned long character;

	*ret_len = 1;
	if (n > len || !utf8_valid(at, n)) return 0xfffd;
	character = at[0] & (0xffu >> (n + 1));
	for (size_t i = 1; i < n; i++)
		character = character << 6 | (at[i] & 0x3f);
	*ret_len = n;
	return character;
}

static void add_escaped(struct buf *json, unsigned long character)
{
	if (character < 0x10000) {
		(void)buf_addf(json, "\\u%04lx", character);
		return;
	}
	character -= 0x10000;
	(void)buf_addf(json, "\\u%04lx\\u%04lx", 0xd800 + (character >> 10), 0xdc00 + (character & 0x3ff));
}

static void add_string(struct buf *json, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t left = strlen(text), n;

	(void)buf_add(json, "\"", 1);
	for (; left; at += n, left -= n) {
		n = 1;
		if (*at >= 0x80) add_escaped(json, character_at(at, left, &n));
		else if (*at == '"' || *at == '\\') (void)buf_add(json, (char[]){'\\', (char)*at}, 2);
		else if (*at < 0x20 || *at == 0x7f) add_escaped(json, *at);
		else (void)buf_add(json, at, 1);
	}
	(void)buf_add(json, "\"", 1);
}

void error_json(struct buf *json, const char *code, const char *message)
{
	(void)buf_add_text(json, "{\"error\":");
	add_string(json, message);
	(void)buf_add_text(json, ",\"code\":");
	add_string(json, code);
	(void)buf_add_text(json, "}");
}

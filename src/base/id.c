#include "base/id.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

void id_random(void *bytes, size_t len)
{
	if (getentropy(bytes, len) < 0) abort();
}

bool id_is_sandbox(const char *text, size_t len)
{
	if (len < 1 || len > SANDBOX_ID_MAX) return false;
	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (!((c >= 'a' && c <= 'z') || (c >= '2' && c <= '7'))) return false;
	}
	return true;
}

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
	       c == '_' || c == '-';
}

bool id_is_name(const char *text, size_t len)
{
	if (len < 1 || len > NAME_ID_MAX) return false;
	for (size_t i = 0; i < len; i++) {
		if (!is_name_char(text[i])) return false;
		if (text[i] == '.' && i + 1 < len && text[i + 1] == '.') return false;
	}
	return true;
}

void id_make_sandbox(char id[SANDBOX_ID_MADE + 1])
{
	static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
	uint8_t bytes[SANDBOX_ID_MADE * 5 / 8];
	unsigned bits = 0, held = 0;
	size_t at = 0;

	id_random(bytes, sizeof bytes);
	for (size_t i = 0; i < sizeof bytes; i++) {
		bits = (bits << 8 | bytes[i]) & 0xFFFF;
		held += 8;
		while (held >= 5) {
			held -= 5;
			id[at++] = alphabet[bits >> held & 31];
		}
	}
	id[at] = '\0';
}

void id_make_uuid(char id[UUID_LEN + 1])
{
	uint8_t b[16];

	id_random(b, sizeof b);
	b[6] = (b[6] & 0x0F) | 0x40;
	b[8] = (b[8] & 0x3F) | 0x80;
	(void)snprintf(id, UUID_LEN + 1,
		       "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
		       b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
		       b[15]);
}

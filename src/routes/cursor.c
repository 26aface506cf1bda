#include "routes/cursor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define INNER_MAX 244 /* "v1." + base64 of a store + "." + 20 digits, and a NUL */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* Base64url without padding. */
static size_t encode(const char *bytes, size_t len, char *text)
{
	const unsigned char *in = (const unsigned char *)bytes;
	unsigned bits = 0, held = 0;
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		held = held << 8 | in[i];
		for (bits += 8; bits >= 6; bits -= 6)
			text[n++] = alphabet[held >> (bits - 6) & 63];
	}
	if (bits) text[n++] = alphabet[held << (6 - bits) & 63];
	text[n] = '\0';
	return n;
}

/* The bytes and a NUL; -EINVAL for another character. Does not judge spare bits: see cursor_decode(). */
static int decode(const char *text, size_t len, char *bytes, size_t *ret_len)
{
	unsigned bits = 0, held = 0;
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		const char *at = text[i] ? strchr(alphabet, text[i]) : NULL;

		if (!at) return -EINVAL;
		held = held << 6 | (unsigned)(at - alphabet);
		bits += 6;
		if (bits < 8) continue;
		bits -= 8;
		bytes[n++] = (char)(held >> bits & 255);
	}
	bytes[n] = '\0';
	*ret_len = n;
	return 0;
}

void cursor_store(const char *id, uint32_t pid, char store[CURSOR_STORE_MAX + 1])
{
	(void)snprintf(store, CURSOR_STORE_MAX + 1, "%" PRIu32 ".%s", pid, id);
}

void cursor_encode(const char *store, uint64_t seq, char text[CURSOR_MAX])
{
	char inner[INNER_MAX] = "v1.";
	size_t n = 3;

	n += encode(store, strnlen(store, CURSOR_STORE_MAX), inner + n);
	n += (size_t)snprintf(inner + n, sizeof inner - n, ".%" PRIu64, seq);
	(void)encode(inner, n, text);
}

static int decode_number(const char *digits, uint64_t *ret)
{
	uint64_t value = 0;

	if (!*digits) return -EINVAL;
	for (; *digits; digits++) {
		if (*digits < '0' || *digits > '9') return -EINVAL;
		if (__builtin_mul_overflow(value, 10, &value)) return -EINVAL;
		if (__builtin_add_overflow(value, (uint64_t)(*digits - '0'), &value)) return -EINVAL;
	}
	*ret = value;
	return 0;
}

int cursor_decode(const char *text, size_t len, char store[CURSOR_STORE_MAX + 1], uint64_t *ret_seq)
{
	char inner[CURSOR_MAX] = "", again[CURSOR_MAX];
	size_t inner_len, store_len, n;
	uint64_t seq;

	if (len >= CURSOR_MAX || decode(text, len, inner, &inner_len) < 0) return -EINVAL;
	if (strncmp(inner, "v1.", 3) != 0 || strlen(inner) != inner_len) return -EINVAL;
	n = strcspn(inner + 3, ".");
	if (!inner[3 + n] || n > (CURSOR_STORE_MAX * 4 + 2) / 3) return -EINVAL;
	if (decode(inner + 3, n, store, &store_len) < 0 || strlen(store) != store_len) return -EINVAL;
	if (decode_number(inner + 3 + n + 1, &seq) < 0) return -EINVAL;
	/* One spelling only: leading zeros, spare bits and the like make another text. */
	cursor_encode(store, seq, again);
	if (strlen(again) != len || memcmp(again, text, len) != 0) return -EINVAL;
	*ret_seq = seq;
	return 0;
}

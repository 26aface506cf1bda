#include "base/utf8.h"

#include <stdint.h>

/* The length of the character that LEAD begins, 1 for what begins none; *LOW and *HIGH bound its second byte.
 */
static size_t char_len(uint8_t lead, uint8_t *low, uint8_t *high)
{
	*low = 0x80;
	*high = 0xBF;
	if (lead >= 0xC2 && lead <= 0xDF) return 2;
	if (lead >= 0xE0 && lead <= 0xEF) {
		if (lead == 0xE0) *low = 0xA0;
		if (lead == 0xED) *high = 0x9F;
		return 3;
	}
	if (lead >= 0xF0 && lead <= 0xF4) {
		if (lead == 0xF0) *low = 0x90;
		if (lead == 0xF4) *high = 0x8F;
		return 4;
	}
	return 1;
}

/* How many of the LEN bytes at P agree with a character of WANT bytes. */
static size_t char_prefix(const uint8_t *p, size_t len, size_t want, uint8_t low, uint8_t high)
{
	size_t n = 1;

	while (n < want && n < len) {
		if (p[n] < low || p[n] > high) break;
		low = 0x80;
		high = 0xBF;
		n++;
	}
	return n;
}

size_t utf8_unfinished(const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	for (size_t back = 1; back <= 3 && back <= len; back++) {
		const uint8_t *lead = p + len - back;
		uint8_t low, high;
		size_t want = char_len(*lead, &low, &high);

		if (*lead < 0x80) return 0;
		if (want == 1) continue;
		if (want > back && char_prefix(lead, back, want, low, high) == back) return back;
		return 0;
	}
	return 0;
}

bool utf8_valid(const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	for (size_t at = 0; at < len;) {
		uint8_t low, high;
		size_t want = char_len(p[at], &low, &high);

		if (want == 1) {
			if (p[at] >= 0x80) return false;
			at++;
			continue;
		}
		if (char_prefix(p + at, len - at, want, low, high) != want) return false;
		at += want;
	}
	return true;
}

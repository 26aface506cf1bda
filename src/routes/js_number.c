#include "routes/js_number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define NUMBER_MAX 1100 /* characters; the longest exact decimal of a double is shorter */

/* White space and line ends of ECMAScript, as UTF-8. Bytes of the one at TEXT; 0: there is none. */
static size_t blank_at(const char *text, size_t len)
{
	static const char *const wide[] = {"\u00a0", "\u1680", "\u2000", "\u2001", "\u2002",
					   "\u2003", "\u2004", "\u2005", "\u2006", "\u2007",
					   "\u2008", "\u2009", "\u200a", "\u2028", "\u2029",
					   "\u202f", "\u205f", "\u3000", "\ufeff"};

	if (len && (*text == ' ' || (*text >= '\t' && *text <= '\r'))) return 1;
	for (size_t i = 0; i < ARRAY_LEN(wide); i++) {
		size_t n = strlen(wide[i]);

		if (n <= len && memcmp(text, wide[i], n) == 0) return n;
	}
	return 0;
}

static void trim(const char **text, size_t *len)
{
	size_t n;

	while ((n = blank_at(*text, *len))) {
		*text += n;
		*len -= n;
	}
	/* From the end: a blank is one to three bytes long. */
	for (n = 1; n <= 3 && n <= *len; n++) {
		if (blank_at(*text + *len - n, n) != n) continue;
		*len -= n;
		n = 0;
	}
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9') return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

static double with_base(const char *digits, size_t len, int base)
{
	double value = 0;

	if (len == 0) return NAN;
	for (size_t i = 0; i < len; i++) {
		if (digit_of(digits[i]) >= base) return NAN;
		value = value * base + digit_of(digits[i]);
	}
	return value;
}

static size_t digits_at(const char **at)
{
	size_t n = strspn(*at, "0123456789");

	*at += n;
	return n;
}

/* [sign] digits [. digits] [e [sign] digits], with a digit on one side of the point at least. */
static bool is_decimal(const char *at)
{
	size_t digits;

	at += strspn(at, "+-") ? 1 : 0;
	digits = digits_at(&at);
	if (*at == '.') {
		at++;
		digits += digits_at(&at);
	}
	if (digits == 0) return false;
	if (*at == 'e' || *at == 'E') {
		at++;
		at += strspn(at, "+-") ? 1 : 0;
		if (digits_at(&at) == 0) return false;
	}
	return *at == '\0';
}

double js_number(const char *text, size_t len)
{
	char copy[NUMBER_MAX + 1];
	const char *unsigned_part;

	trim(&text, &len);
	if (len == 0) return 0;
	if (len > NUMBER_MAX || memchr(text, '\0', len)) return NAN;
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (copy[0] == '0' && len > 1) {
		char kind = (char)(copy[1] | 0x20);

		if (kind == 'x') return with_base(copy + 2, len - 2, 16);
		if (kind == 'o') return with_base(copy + 2, len - 2, 8);
		if (kind == 'b') return with_base(copy + 2, len - 2, 2);
	}
	unsigned_part = copy + (copy[0] == '+' || copy[0] == '-');
	if (strcmp(unsigned_part, "Infinity") == 0) return copy[0] == '-' ? -INFINITY : INFINITY;
	return is_decimal(copy) ? strtod(copy, NULL) : NAN;
}

bool js_number_within(const char *text, size_t len, long least, long most, long *ret)
{
	double value = js_number(text, len);

	if (!(value >= (double)least && value <= (double)most) || value != trunc(value)) return false;
	*ret = (long)value;
	return true;
}

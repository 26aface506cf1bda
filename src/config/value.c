#include "config/value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit sizes[] = {
	{"", 1},         {"B", 1},          {"K", 1u << 10}, {"KiB", 1u << 10},
	{"M", 1u << 20}, {"MiB", 1u << 20}, {"G", 1u << 30}, {"GiB", 1u << 30},
};

static const struct unit times[] = {
	{"", 1}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000},
};

/* Digits, then one of the units, nothing before, between or after but a space before the unit. */
static bool number_with_unit(const char *text, const struct unit *units, size_t count, uint64_t *ret)
{
	char *end;
	uint64_t n, product;

	if (text[0] < '0' || text[0] > '9') return false;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno) return false;
	if (end[0] == ' ' && end[1]) end++;
	for (size_t i = 0; i < count; i++) {
		if (strcasecmp(end, units[i].name) != 0) continue;
		if (__builtin_mul_overflow(n, units[i].factor, &product)) return false;
		*ret = product;
		return true;
	}
	return false;
}

bool value_count(const char *text, uint64_t *ret)
{
	return number_with_unit(text, sizes, 1, ret);
}

bool value_bytes(const char *text, uint64_t *ret)
{
	return number_with_unit(text, sizes, ARRAY_LEN(sizes), ret);
}

bool value_millis(const char *text, uint64_t *ret)
{
	return number_with_unit(text, times, ARRAY_LEN(times), ret);
}

bool value_seconds(const char *text, uint64_t *ret)
{
	uint64_t n;

	if (!value_count(text, &n)) return value_millis(text, ret);
	if (n > UINT64_MAX / 1000) return false;
	*ret = n * 1000;
	return true;
}

bool value_bool(const char *text, bool *ret)
{
	bool yes = value_is_word_of(text, "yes|true|on|1");

	if (!yes && !value_is_word_of(text, "no|false|off|0")) return false;
	*ret = yes;
	return true;
}

bool value_is_word_of(const char *text, const char *allowed)
{
	size_t len = strlen(text);

	for (const char *word = allowed;; word++) {
		size_t n = strcspn(word, "|");

		if (n == len && memcmp(word, text, n) == 0) return true;
		word += n;
		if (!*word) return false;
	}
}

void value_range(const char *allowed, uint64_t *ret_least, uint64_t *ret_most)
{
	char *dash;

	*ret_least = strtoull(allowed, &dash, 10);
	*ret_most = strtoull(dash + 1, NULL, 10);
}

bool value_is_within(uint64_t n, const char *allowed)
{
	uint64_t least, most;

	value_range(allowed, &least, &most);
	return n >= least && n <= most;
}

#include "routes/range.h"

#include <stdbool.h>
#include <stddef.h>
#include <strings.h>

/* Digits at *TEXT, which then stands behind them. A number too large to be a file's is as large as can be. */
static bool take_number(const char **text, uint64_t *ret)
{
	const char *at = *text;
	uint64_t n = 0;

	if (*at < '0' || *at > '9') return false;
	for (; *at >= '0' && *at <= '9'; at++) {
		unsigned digit = (unsigned)(*at - '0');

		n = n > (UINT64_MAX - digit) / 10 ? UINT64_MAX : n * 10 + digit;
	}
	*text = at;
	*ret = n;
	return true;
}

static enum range_verdict last_bytes(const char *text, uint64_t size, uint64_t *ret_first, uint64_t *ret_len)
{
	uint64_t count;

	if (!take_number(&text, &count) || *text) return RANGE_WHOLE;
	if (count == 0 || size == 0) return RANGE_UNSATISFIABLE;
	*ret_len = count < size ? count : size;
	*ret_first = size - *ret_len;
	return RANGE_PART;
}

enum range_verdict range_parse(const char *header, uint64_t size, uint64_t *ret_first, uint64_t *ret_len)
{
	uint64_t first, last = UINT64_MAX;

	if (!header || strncasecmp(header, "bytes=", 6) != 0) return RANGE_WHOLE;
	header += 6;
	if (*header == '-') return last_bytes(header + 1, size, ret_first, ret_len);
	if (!take_number(&header, &first) || *header++ != '-') return RANGE_WHOLE;
	if (*header && (!take_number(&header, &last) || *header)) return RANGE_WHOLE;
	if (last < first) return RANGE_WHOLE;
	if (first >= size) return RANGE_UNSATISFIABLE;
	if (last >= size) last = size - 1;
	*ret_first = first;
	*ret_len = last - first + 1;
	return RANGE_PART;
}

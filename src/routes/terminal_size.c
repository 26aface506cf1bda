#include "routes/terminal_size.h"

#include <errno.h>
#include <math.h>

#include "base/buf.h"
#include "http/target.h"
#include "routes/js_number.h"

#define NUMBER_MAX 4096 /* bytes; no longer text is a number of this kind */

static uint16_t clamp(double value)
{
	if (value < 1) return 1;
	return value > TERMINAL_SIDE_MAX ? TERMINAL_SIDE_MAX : (uint16_t)value;
}

static enum size_verdict whole(double value, uint16_t *ret)
{
	if (!(value >= 1) || !isfinite(value) || value != trunc(value)) return SIZE_WRONG;
	*ret = clamp(value);
	return SIZE_GIVEN;
}

enum size_verdict size_of_pty(const char *query, const char *name, uint16_t *ret)
{
	auto_buf struct buf text = buf_with_cap(NUMBER_MAX);
	int r = target_query_get(query, name, &text);
	double value;

	if (r == -ENOENT || (r == 0 && text.len == 0)) return SIZE_ABSENT;
	value = r == 0 ? js_number(text.data, text.len) : NAN;
	if (isnan(value)) return SIZE_WRONG;
	if (trunc(value) == 0) return SIZE_ABSENT;
	*ret = clamp(value);
	return SIZE_GIVEN;
}

enum size_verdict size_of_connect(const char *query, const char *name, uint16_t *ret)
{
	auto_buf struct buf text = buf_with_cap(NUMBER_MAX);
	int r = target_query_get(query, name, &text);

	if (r == -ENOENT) return SIZE_ABSENT;
	/* Nothing would be 0 here, which is wrong too. */
	return r == 0 && text.len ? whole(js_number(text.data, text.len), ret) : SIZE_WRONG;
}

enum size_verdict size_of_json(const json_t *value, uint16_t *ret)
{
	if (!value) return SIZE_ABSENT;
	return json_is_number(value) ? whole(json_number_value(value), ret) : SIZE_WRONG;
}

enum size_verdict size_of_loose_json(const json_t *value, uint16_t *ret)
{
	if (!json_is_number(value) || !(json_number_value(value) > 0)) return SIZE_WRONG;
	*ret = clamp(json_number_value(value));
	return SIZE_GIVEN;
}

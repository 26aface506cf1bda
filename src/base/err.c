#include "base/err.h"

#undef err_set /* the analyzer's: see the header */
#undef err_say

#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 4, 0))) static void format_into(struct err *e, int code, const char *tail,
							      const char *format, va_list args)
{
	size_t len;

	e->code = code;
	(void)vsnprintf(e->text, sizeof e->text, format, args);
	len = strlen(e->text);
	if (tail) (void)snprintf(e->text + len, sizeof e->text - len, ": %s", tail);
}

int err_set(struct err *e, int code, const char *format, ...)
{
	va_list args;

	if (!e) return code;
	va_start(args, format);
	format_into(e, code, strerrordesc_np(-code), format, args);
	va_end(args);
	return code;
}

int err_say(struct err *e, int code, const char *format, ...)
{
	va_list args;

	if (!e) return code;
	va_start(args, format);
	format_into(e, code, NULL, format, args);
	va_end(args);
	return code;
}

int err_add(struct err *e, const char *format, ...)
{
	char before[sizeof e->text];
	va_list args;

	if (!e) return 0;
	memcpy(before, e->text, sizeof before);
	va_start(args, format);
	format_into(e, e->code, before[0] ? before : NULL, format, args);
	va_end(args);
	return e->code;
}

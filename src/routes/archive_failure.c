#include "routes/archive_failure.h"

#include <stdio.h>

#include "sandbox/archive.h"

void archive_failure(char *message, size_t size, const char *tool, const char *what,
		     const struct operation_end *end)
{
	const char *words = *end->text ? end->text : end_reason_name(end->reason);

	if (end->reason == END_EXITED)
		(void)snprintf(message, size, "%s failed (exit %d): %.*s", tool, end->code, ARCHIVE_WORDS_MAX,
			       words);
	else (void)snprintf(message, size, "%s failed: %.*s", what, ARCHIVE_WORDS_MAX, words);
}

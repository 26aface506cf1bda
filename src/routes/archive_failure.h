/* archive_failure.h - inside the room: the sentence of a persist or hydrate that failed. */
#pragma once

#include <stddef.h>

struct operation_end;

/* "TOOL failed (exit N): words" when the archiver ran, otherwise "WHAT failed: words". */
void archive_failure(char *message, size_t size, const char *tool, const char *what,
		     const struct operation_end *end);

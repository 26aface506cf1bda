/* exec_end.h - the terminal event of an exec stream (API.md 3.5 and DESIGN 6): value in, ASCII JSON out. */
#pragma once

#include "sandbox/operations.h"

/*
 * The JSON, which the caller frees, and the event's name: `exit` with the code, the signal, the reason and
 * what the command used, or `error` for a command that never ran or was lost.
 */
char *exec_end_json(const struct operation_end *end, const char **ret_event);

/* operation_end.h - inside the room: the agent's `end` message, judged. */
#pragma once

#include "sandbox/operations.h"

/* -EPROTO for what no honest agent says. RET's text points into the frame. */
int operation_end_parse(const struct frame *f, struct operation_end *ret);

/* The end of a link that was lost. */
struct operation_end operation_end_lost(enum end_reason reason, const char *text);

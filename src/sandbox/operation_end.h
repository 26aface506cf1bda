/* operation_end.h - inside the room: the agent's `end` message, judged. */
#pragma once

#include "sandbox/operations.h"

/* -EPROTO for what no honest agent says. RET's text points into the frame. */
int operation_end_parse(const struct frame *f, struct operation_end *ret);

/* The end of a link that was lost. */
struct operation_end operation_end_lost(enum end_reason reason, const char *text);

#define WALL_MS_MAX 253402300799999u /* the last millisecond of the year 9999 */

/* A client's NAME (NULL: none) as it is sent: cut where it is longer than anything that has a name. */
struct wire_text name_sent(const char *name);

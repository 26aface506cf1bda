/* keeping.h - which of the processes that ended are kept, with their logs, and until when. */
#pragma once

#include <stddef.h>

#define PROCESSES_KEPT  64 /* ended ones; the one that ended first is forgotten first */
#define BACKGROUND_KEPT 64 /* those that were started in the background count by themselves */
#define TERMINALS_KEPT  25
#define LOGS_KEPT_BYTES ((size_t)16 << 20) /* of the ended ones' logs together, likewise */

/* At the end of the reactor's turn: forgets the oldest ended ones beyond ..._KEPT. Pointers to them end
 * here. */
void keeping_turn(void);

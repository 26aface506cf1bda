/* process_list.h - what runs in a sandbox. Signals to it: see sandbox/call.h. */
#pragma once

#include "sandbox/operations.h"

struct process_list;

struct process_list_events {
	/* One process. P is good during the call; its numbers are in range, its texts are a stranger's. */
	void (*on_process)(void *ctx, const struct msg_process *p);
	/* END_DONE: that was all, none of that name included. The last callback. */
	void (*on_end)(void *ctx, const struct operation_end *end);
};

/* All of KIND, oldest first, or the one called NAME; NULL: all. NULL as result: too many operations in this
 * sandbox. */
struct process_list *process_list_start(struct agent_link *link, enum process_kind kind, const char *name,
					const struct process_list_events *events, void *ctx);
struct process_list *process_list_drop(struct process_list *list);

/* process.h - what runs in a sandbox: who is there, and a signal to one of them. */
#pragma once

#include "sandbox/operations.h"

/* ---- a list ---- */

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

/* ---- a signal ---- */

struct process_signal;

/* The one callback. END_DONE: sent (SIGNAL_SEND) or gone (SIGNAL_TERMINATE), or had ended before. END_FAILED,
 * ESRCH: there is none. */
typedef void on_signalled(void *ctx, const struct operation_end *end);

/*
 * To the whole tree of the process or terminal called NAME. SIGNO, 1 to 64, counts for SIGNAL_SEND only.
 * NULL: too many operations in this sandbox.
 */
struct process_signal *process_signal_start(struct agent_link *link, enum process_kind kind, const char *name,
					    int signo, enum signal_how how, on_signalled *on_end, void *ctx);
struct process_signal *process_signal_drop(struct process_signal *s);

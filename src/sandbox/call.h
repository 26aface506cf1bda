/* call.h - the smallest operations: one message to the agent, and its answer. */
#pragma once

#include "sandbox/operations.h"

struct call;

/* The one callback. END_DONE, END_FAILED with an errno as named below, or the end of the link. */
typedef void on_call_end(void *ctx, const struct operation_end *end);

/* Nobody listens any more; it goes on. Returns NULL; NULL is fine. */
struct call *call_drop(struct call *c);

/*
 * A signal to the whole tree of the process or terminal called NAME. SIGNO, 1 to 64, counts for SIGNAL_SEND
 * only. Done: sent (SIGNAL_SEND) or gone (SIGNAL_TERMINATE), or it had ended before. ESRCH: there is none.
 * NULL: too many operations in this sandbox.
 */
struct call *process_signal(struct agent_link *link, enum process_kind kind, const char *name, int signo,
			    enum signal_how how, on_call_end *on_end, void *ctx);

/* What a session begins with. Commands in one are started with exec_start(). */
struct session_spec {
	const char *cwd;        /* need not be there */
	const char *const *env; /* "NAME=value" */
	uint32_t env_count;
	uint64_t timeout_ms; /* of commands that bring none; 0: none */
};

/* EEXIST: there is one of that name. NULL: too many operations in this sandbox, or a larger SPEC than a
 * message of ours. */
struct call *session_make(struct agent_link *link, const char *name, const struct session_spec *spec,
			  on_call_end *on_end, void *ctx);

/* Done when the commands that it terminates are gone. ENOENT: there is none. NULL: too many operations in
 * this sandbox. */
struct call *session_end(struct agent_link *link, const char *name, on_call_end *on_end, void *ctx);

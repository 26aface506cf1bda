/* session.h - sessions of a sandbox: made and ended by name. Commands in one are started with exec_start().
 */
#pragma once

#include "sandbox/operations.h"

struct session_operation;

struct session_spec {
	const char *cwd;        /* where it begins; need not be there */
	const char *const *env; /* "NAME=value": what it begins with */
	uint32_t env_count;
	uint64_t timeout_ms; /* of commands that bring none; 0: none */
};

/* The one callback. END_DONE, or END_FAILED: EEXIST for one that is there already, ENOENT for one that is
 * not. */
typedef void on_session_done(void *ctx, const struct operation_end *end);

/* NULL: too many operations in this sandbox, or a larger SPEC than a message of ours. */
struct session_operation *session_make(struct agent_link *link, const char *name,
				       const struct session_spec *spec, on_session_done *on_done, void *ctx);

/* Done when the commands that it terminates are gone. */
struct session_operation *session_end(struct agent_link *link, const char *name, on_session_done *on_done,
				      void *ctx);

/* Nobody listens any more; it goes on. Returns NULL; NULL is fine. */
struct session_operation *session_operation_drop(struct session_operation *op);

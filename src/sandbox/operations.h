/*
 * operations.h - what can be done in a sandbox, each as one channel on the link to its agent.
 *
 * An operation is started on a link and then lives until its last callback (named with each), after which its
 * memory is gone, or until its owner lets go of it. Callbacks run from the loop, never from inside a call
 * below. When the link is lost every operation on it ends with END_LOST, or END_DELETED when we asked for the
 * sandbox's removal.
 *
 * A start that returns NULL, or -EMFILE, met CHANNELS_OPEN_MAX operations in this sandbox.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "wire/message.h"

struct agent_link;

/* How an operation ended. TEXT is good during the call only. */
struct operation_end {
	enum end_reason reason;
	int code; /* exit status; 128 + signo after a signal */
	int signo;
	int error;        /* errno (positive) of END_FAILED */
	const char *text; /* the agent's sentence, "" for none: a stranger's words, any bytes but NUL */
	uint64_t duration_ms;
	uint64_t cpu_ms;
	uint64_t max_memory;   /* bytes; 0: unknown */
	uint64_t bytes;        /* of output, both streams */
	uint32_t left_running; /* processes of the command that live on */
	bool timed_out;        /* its deadline ended it */
	uint64_t limit; /* of END_OOM, END_PIDS, END_DISK: what was met, bytes or processes; 0: unknown */
	uint32_t oom_kills, forks_refused; /* by the kernel, while it ran */
	uint64_t seq;                      /* of a follow: see sandbox/follow.h */
	uint64_t at_ms; /* wall clock: when it ended; when it began, for the END_DONE of a start in the
			   background */
};

/* ---- commands ---- */

#define EXEC_WINDOW (256u << 10) /* bytes of output on their way to us at most */

struct exec;

struct exec_spec {
	bool direct;     /* argv is executed as it is, without bash */
	bool background; /* only start it: END_DONE comes right after on_started; see sandbox/process_list.h
			  */
	uint32_t uid;
	uint64_t timeout_ms; /* 0: none */
	uint32_t grace_ms;   /* between SIGTERM and SIGKILL */
	const char *cwd;
	const char *const *argv;
	uint32_t argc;
	const char *const *env; /* "NAME=value" */
	uint32_t env_count;
	const char *session; /* NULL: none */
	const char *input;   /* stdin; NULL: /dev/null. Copied. */
	size_t input_len;
};

struct exec_events {
	void (*on_started)(void *ctx, const char *process_id, uint32_t pid);
	/* BYTES are good during the call. What was dealt with is told with exec_consumed(), now or later. */
	void (*on_output)(void *ctx, enum wire_stream stream, const void *bytes, size_t len);
	/* The last callback. on_started may not have come before. */
	void (*on_end)(void *ctx, const struct operation_end *end);
};

/*
 * Copies SPEC; borrows EVENTS. -E2BIG: larger than WIRE_SPILL_MAX; -EMFILE: as above. Other failures come as
 * on_end.
 */
int exec_start(struct agent_link *link, const struct exec_spec *spec, const struct exec_events *events,
	       void *ctx, struct exec **ret);

/*
 * LEN bytes of output are dealt with: the agent may send as many more. A caller that never says so stops it.
 */
void exec_consumed(struct exec *x, size_t len);

/*
 * Nobody listens any more. KILL ends the whole tree, otherwise the command goes on. X is dead; returns NULL.
 */
struct exec *exec_detach(struct exec *x, bool kill);

/* ---- files ---- */

struct file_operation;

struct file_events {
	/*
	 * FD is an open regular file and the callee's to close. ST is what the kernel says of it. CONTENT is
	 * all of it (ST's size), good during the call; NULL: it is not small, or is to be written.
	 */
	void (*on_opened)(void *ctx, int fd, const struct stat *st, const char *content);
	/*
	 * A read that failed; a write that failed at any time, or that was put in place (END_DONE). The last
	 * callback.
	 */
	void (*on_end)(void *ctx, const struct operation_end *end);
};

/* Opens PATH (absolute, as the sandbox sees it) as UID. Exactly one callback, the last, comes. */
struct file_operation *file_open_read(struct agent_link *link, uint32_t uid, const char *path,
				      const struct file_events *events, void *ctx);

/*
 * Begins to replace PATH. The descriptor of on_opened is a temporary sibling; file_operation_commit() puts it
 * in its place, and until then nobody sees it. MODE is for a file that is new.
 */
struct file_operation *file_open_write(struct agent_link *link, uint32_t uid, const char *path, uint32_t mode,
				       const struct file_events *events, void *ctx);
void file_operation_commit(struct file_operation *op);

/* All of that at once, for LEN bytes of CONTENT, which are copied: no on_opened comes. */
#define FILE_WHOLE_MAX (32u << 10)
struct file_operation *file_write_whole(struct agent_link *link, uint32_t uid, const char *path,
					uint32_t mode, const void *content, size_t len,
					const struct file_events *events, void *ctx);

/* Nobody listens any more; what was written is dropped. Returns NULL; NULL is fine. */
struct file_operation *file_operation_drop(struct file_operation *op);

/*
 * follow.h - reading the log of a process or a terminal: what is retained, and what comes.
 *
 * Theory of operation: the log is the agent's. A *follow* gets its events in order, from where its spec says:
 * on_opened, on_log for each event, on_now once when all that was retained has been told, on_log again for
 * what comes, on_end. In between, on_gap says that events are missing. Events are paid for with credit: a
 * caller that does not say follow_consumed() gets no more of them; the agent's log is its buffer, and what
 * falls out of it becomes a gap. Nothing here grows with a slow reader.
 *
 * How it ends: with the end of what is followed (reasons up to END_DISK; operation_end.seq is one more than
 * the last event's, at_ms the time of the end), or with END_DONE when it was not to be live and the process
 * goes on (seq is the newest event's, 0 when there is none). END_FAILED: error ESRCH, there is no such
 * process or terminal; EINVAL, SINCE is beyond the newest event. END_DELETED, END_LOST as for every
 * operation.
 *
 * A follow of a terminal may carry input too: sandbox/terminal.h.
 */
#pragma once

#include "sandbox/operations.h"

#define FOLLOW_WINDOW (256u << 10) /* bytes of output on their way to us at most */

struct follow;

struct follow_spec {
	enum process_kind kind;
	const char *name;    /* process or terminal id, as a client wrote it: at most FOLLOW_NAME_MAX bytes */
	unsigned flags;      /* enum follow_flag */
	uint64_t since;      /* with FOLLOW_SINCE */
	uint16_t cols, rows; /* 1 to 1000: the terminal gets this size; both 0: it keeps its own */
};

#define FOLLOW_NAME_MAX 4096 /* a longer one names nothing: END_FAILED, ESRCH */

struct follow_event {
	uint64_t seq;            /* from 1 */
	uint64_t at_ms;          /* wall clock, at most the year 9999 */
	enum wire_stream stream; /* STREAM_OUT or STREAM_ERR */
	const void *bytes;       /* good during the call */
	size_t len;              /* 1 to WIRE_DATA_MAX */
};

struct follow_events {
	/* It exists. ID is a stranger's text, good during the call. */
	void (*on_opened)(void *ctx, const char *id, uint32_t pid);
	void (*on_log)(void *ctx, const struct follow_event *event);
	/* Events before SEQ that would have been told are no longer there. */
	void (*on_gap)(void *ctx, uint64_t seq);
	/* Once: all that was retained has been told. */
	void (*on_now)(void *ctx);
	/* NULL when there is no input. More of it may be sent: see terminal_room(). */
	void (*on_room)(void *ctx);
	/* The last callback. on_opened may not have come before. */
	void (*on_end)(void *ctx, const struct operation_end *end);
};

/* Copies SPEC; borrows EVENTS. NULL: too many operations in this sandbox. Other failures come as on_end. */
struct follow *follow_start(struct agent_link *link, const struct follow_spec *spec,
			    const struct follow_events *events, void *ctx);

/* LEN bytes of output are dealt with, now or later than their on_log. */
void follow_consumed(struct follow *f, size_t len);

/* Nobody listens any more; what was followed goes on, except for a private terminal: that is hung up. Returns
 * NULL; NULL is fine. */
struct follow *follow_drop(struct follow *f);

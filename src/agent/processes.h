/*
 * processes.h - all processes of the sandbox: what is known of each, who wants to know, and their list.
 * Nothing happens to them here: process.h lets them live, keeping.h lets them go.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "agent/cause.h"
#include "agent/log.h"
#include "base/id.h"
#include "wire/message.h"

struct process;

/* Who watches a process. Embedded in the watcher; the calls come from the reactor, or as the last deed of
 * process_resume() and process_signal(). */
struct process_client {
	/* Bytes of output it takes now; 0: it says process_resume() when it takes more. */
	size_t (*room)(struct process_client *c);
	void (*on_output)(struct process_client *c, uint8_t stream, const struct iovec parts[2]);
	/* Last call: the client is detached. */
	void (*on_end)(struct process_client *c, const struct process *p);
};

/* Who reads its log. Embedded in the reader. */
struct process_follower {
	struct process_follower *next; /* private */
	/* NULL: it is never waited for. Otherwise bytes of output it takes now, as above. */
	size_t (*room)(struct process_follower *f);
	/* The log grew, or the process ended. May unfollow itself, nobody else. */
	void (*on_news)(struct process_follower *f);
};

#define PROCESS_ARGV_MAX 8192

/* What may be told about a process; read-only for others. */
struct process_facts {
	char id[NAME_ID_MAX + 1];
	enum process_kind kind;
	pid_t pid;
	bool ended, timed_out, cancelled;
	bool bytes_lost;               /* of its input or output: they could not be written or read */
	int code, signo;               /* code = 128 + signo for a death by signal */
	uint64_t started_ms, ended_ms; /* wall clock */
	uint64_t duration_ms, cpu_ms, max_memory, bytes;
	unsigned left_running; /* of the tree when it ended */
	struct cause cause;    /* whether a limit ended it */
	const char *cwd, *session;
	const char *const *argv; /* cut at PROCESS_ARGV_MAX bytes in all */
	uint32_t argc;
};

const struct process_facts *process_facts(const struct process *p);
unsigned process_live(const struct process *p); /* processes of its tree now */

bool process_is_watched(const struct process *p); /* by a client */
const struct log *process_log(const struct process *p);

void process_follow(struct process *p, struct process_follower *f);
void process_unfollow(struct process *p, struct process_follower *f);

/* The newest one of that name; NULL: none. */
struct process *process_find(enum process_kind kind, const char *name);

/* It has ended, and is not found any more. */
void process_retire(struct process *p);

/* Oldest first; NULL at the end. Those that ended and are not found are left out. */
struct process *process_first(void);
struct process *process_next(struct process *p);

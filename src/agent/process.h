/*
 * process.h - a command that was started: its pipes, its log, its tree, its end. Independent of who asked for
 * it.
 *
 * Theory of operation. A process has a *leader* (what we spawned) and a *tree* (everything below it). It
 * passes through:
 *
 *     running ── leader reaped ──> draining ── pipes drained ──> ended ── pipes closed, tree empty ──>
 * forgettable
 *
 * draining: at the leader's death we note how many bytes lie in the pipes; those are always delivered. Beyond
 * that we wait for the end of the pipes, or 150 ms without output, or 1 s, whichever comes first: somebody in
 * the background may hold a pipe for ever. Time during which the client has no credit does not count. A
 * leftover's later output is read into the log, so it never blocks and never gets SIGPIPE.
 *
 * A client may watch (exec.c). While it does, its credit decides how much is read; without one, pipes drain
 * freely.
 *
 * Ending by force (deadline or kill): SIGTERM to the tree, a grace, then SIGKILL again and again until the
 * tree is empty; the process ends when it is, or a second later.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "agent/log.h"
#include "agent/spawn.h"
#include "agent/tree.h"
#include "base/id.h"

struct err;
struct process;
struct wire_list;

/* Who watches a process. Embedded in the watcher; the calls come from the reactor, never from within
 * process_…() calls. */
struct process_client {
	/* Bytes of output it takes now; 0: it says process_resume() when it takes more. */
	size_t (*room)(struct process_client *c);
	void (*on_output)(struct process_client *c, uint8_t stream, const struct iovec parts[2]);
	/* BYTES of stdin were passed on (or dropped, when nobody reads them any more). */
	void (*on_input_taken)(struct process_client *c, size_t bytes);
	/* Last call: the client is detached. */
	void (*on_end)(struct process_client *c, const struct process *p);
};

struct process_spec {
	const struct command *command;
	struct environment *env;
	const char *cwd;
	uint32_t uid;
	bool with_stdin;
	uint64_t timeout_ms; /* 0: none */
	uint32_t grace_ms;
	const struct wire_list *argv; /* for the record */
	struct process_client *client;
};

/* What may be told about a process; read-only for others. */
struct process_facts {
	char id[UUID_LEN + 1];
	pid_t pid;
	bool ended, timed_out, cancelled;
	int code, signo;               /* code = 128 + signo for a death by signal */
	uint64_t started_ms, ended_ms; /* wall clock */
	uint64_t duration_ms, cpu_ms, max_memory, bytes;
	unsigned left_running; /* of the tree when it ended */
	const char *cwd;
	const char *const *argv; /* cut at PROCESS_ARGV_MAX bytes in all */
	uint32_t argc;
};

#define PROCESS_ARGV_MAX 8192
#define PROCESSES_KEPT   64                  /* ended ones; the one that ended first is forgotten first */
#define LOGS_KEPT_BYTES  ((size_t)16 << 20)  /* of the ended ones' logs together, likewise */
#define STDIN_WINDOW     ((size_t)128 << 10) /* bytes of stdin we hold at most */

/* limits_held() must be true. STEP as spawn(). */
int process_start(const struct process_spec *spec, struct process **ret, enum spawn_step *ret_step,
		  struct err *e);

/* The client is gone; the process goes on and drains into its log. */
void process_detach(struct process *p);

/* The client has room again. */
void process_resume(struct process *p);

/* -EPROTO: more than the window. Bytes after the end of stdin are dropped. */
int process_input(struct process *p, const void *bytes, size_t len);
void process_input_end(struct process *p);

/* To the whole tree. SIGKILL is repeated until the tree is empty. */
void process_signal(struct process *p, int signo);

const struct process_facts *process_facts(const struct process *p);
unsigned process_live(const struct process *p); /* processes of its tree now */

/* Oldest first; NULL at the end. */
struct process *process_first(void);
struct process *process_next(struct process *p);

/* For the reactor: children may have died. */
void processes_reap(void);

/* At the end of the reactor's turn: forgets the oldest ended ones beyond PROCESSES_KEPT. Pointers to them end
 * here. */
void processes_turn(void);

/*
 * process.h - a command that was started: its pipes or its terminal, its log, its tree, its end. Independent
 * of who asked for it.
 *
 * Theory of operation. A process has a *leader* (what we spawned) and a *tree* (everything below it). It
 * passes through:
 *
 *	running ── leader reaped ──▶ draining ── pipes drained ──▶ ended
 *	                             ended ── pipes closed, tree empty ──▶ forgettable
 *
 * draining: at the leader's death we note how many bytes lie in the pipes; those are always delivered. Beyond
 * that we wait for the end of the pipes, or 150 ms without output, or 1 s, whichever comes first: somebody in
 * the background may hold a pipe for ever. Time during which the client has no credit does not count. A
 * leftover's later output is read into the log, so it never blocks and never gets SIGPIPE.
 *
 * In the *background* (API.md 3.18) is a process that nobody waits for: it ends when its whole process group
 * is gone and both pipes are at their end, however long that takes.
 *
 * A *terminal* is a process whose stdio is a pty. Its leader's death hangs it up (the kernel does that), so
 * it is drained in no time; whatever else holds it is not waited for longer than 200 ms of silence, and it is
 * closed.
 *
 * A client may watch (exec.c). While it does, its credit decides how much is read; without one, pipes drain
 * freely. *Followers* (follow.c) read the log at their own pace, each for itself, and slow nobody down,
 * except those that have a room(): while there are such, output is read only as long as one of them has some.
 *
 * Ending by force (deadline or kill): SIGTERM to the tree, a grace, then SIGKILL again and again until the
 * tree is empty; the process ends when it is, or a second later.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/input.h"
#include "agent/processes.h"
#include "agent/spawn.h"
#include "wire/message.h"

struct command;
struct environment;
struct err;
struct session_run;

struct process_spec {
	enum process_kind kind;
	const char *name;                /* NULL: a UUID is made */
	const char *session;             /* NULL: none */
	struct session_run *session_run; /* taken, also when the start fails; NULL: none */
	bool background;
	bool forgotten;      /* once it ended: nobody may ask for it */
	uint16_t cols, rows; /* of a terminal */
	const struct command *command;
	struct environment *env;
	const char *cwd;
	uint32_t uid;
	bool with_stdin;
	/* NULL, or three: what it gets instead of our pipes, -1 for none. Taken, also when the start fails.
	 */
	const int *given_stdio;
	uint64_t timeout_ms; /* 0: none */
	uint32_t grace_ms;
	const struct wire_list *argv;  /* for the record */
	struct process_client *client; /* NULL: none */
};

#define STDIN_WINDOW ((size_t)128 << 10) /* bytes of stdin we hold at most */
#define KEYS_WINDOW  ((size_t)64 << 10)  /* bytes of a terminal's input that one client may send ahead */
#define KEYS_HELD    ((size_t)1 << 20)   /* of all of them together; what comes beyond that is dropped */
#define TERMINATE_MS 500                 /* between SIGTERM and SIGKILL for whoever asks for an end */
#define HANG_UP_MS   5000                /* between SIGHUP and SIGKILL of process_hang_up() */

/* limits_held() must be true. STEP as spawn(). */
int process_start(const struct process_spec *spec, struct process **ret, enum spawn_step *ret_step,
		  struct err *e);

/* The client is gone; the process goes on and drains into its log. */
void process_detach(struct process *p);

/* The client has room again. */
void process_resume(struct process *p);

/* -EPROTO: more than the window. Bytes after the end of stdin are dropped. */
int process_input(struct process *p, struct input_source *s, const void *bytes, size_t len);
void process_input_end(struct process *p);
void process_input_forget(struct process *p, const struct input_source *s);

/* Nothing happens to what is no terminal (any more). */
void process_resize(struct process *p, uint16_t cols, uint16_t rows);

/* To the whole tree. SIGKILL is repeated until the tree is empty. */
void process_signal(struct process *p, int signo);

/* SIGTERM, GRACE_MS, SIGKILL until the tree is empty; then it ends. */
void process_terminate(struct process *p, uint64_t grace_ms);

/* Closes the terminal, which sends SIGHUP to its foreground; the tree gets one too and HANG_UP_MS, then
 * SIGKILL. */
void process_hang_up(struct process *p);

/* For the reactor: children have died, among them (if it was not reaped before) NAMED. */
void processes_reap(pid_t named);

/* It ended, and all that is known of it goes: pointers to it end here. keeping.c says when. */
void process_forget(struct process *p);

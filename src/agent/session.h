/*
 * session.h - sessions: what one bash leaves behind for the next that comes under the same name.
 *
 * Theory of operation. Every command of a session gets a new bash. It runs our fixed scripts (session.bash),
 * which restore the state of the session, evaluate the command line, and write the new state. All of that
 * travels in memory files, so that nothing a client typed ever becomes part of a program:
 *
 *     60  the scripts      and 61; sealed, the same for all
 *     62  the state        written by an earlier bash, sealed since; absent at first, or one that we wrote
 *     63  the command line, and what was given with it
 *     64  the new state    empty; read by nobody here: at most passed on to the next bash
 *
 * A *run* is one such bash, from its start to the death of its leader. When it ended by itself and what it
 * wrote is whole, that is the session's state from then on; runs overlap, the last to end wins. A bash that
 * was killed, that executed another program in its place, or whose session was ended meanwhile leaves
 * nothing. The state is memory of the sandbox, which wrote it; we hold its descriptor only, and never look
 * inside but for the marks at its ends.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/command.h"
#include "wire/message.h"

struct err;
struct session_run;

#define SESSIONS_MAX      1000              /* beyond that the one that was used longest ago is forgotten */
#define SESSION_ENV_MAX   ((size_t)1 << 20) /* bytes of the variables that a session begins with */
#define SESSION_STATE_MAX ((uint64_t)32 << 20)

/* How to start a run. The texts live as long as it. */
struct session_start {
	struct command command;
	struct wire_list env; /* to overlay the sandbox's with */
	const char *cwd;
	uint64_t timeout_ms; /* of the session, 0: none */
	struct session_run *run;
	void *memory; /* private */
};

/*
 * A run of ARGV in the session NAME, which is made if there is none. ENV and CWD ("" for the session's) are
 * for this command only. ON_TERMINAL: the shell, or whatever ARGV is, takes the place of the bash that
 * restored the state.
 */
int session_start(const char *name, const struct wire_list *argv, const struct wire_list *env,
		  const char *cwd, bool on_terminal, struct session_start *ret, struct err *e);
void session_start_done(struct session_start *s); /* all but the run, which is taken */

/* The leader of the run is dead. KEEPS: by itself, so that its state counts. NULL is fine; returns NULL. */
struct session_run *session_run_end(struct session_run *run, bool keeps);

/* -EEXIST; -E2BIG: more variables than SESSION_ENV_MAX; an error of memfd_create(). */
int session_make(const struct msg_open_session *m);

/* -ENOENT. What runs in it goes on. */
int session_forget(const char *name);

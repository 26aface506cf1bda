/*
 * terminal.h - a program on a terminal: its start, and what somebody at its keyboard does.
 *
 * A terminal one is attached to is a *follow* (sandbox/follow.h) that takes input as well. terminal_start()
 * makes one and attaches; follow_start() with FOLLOW_INPUT attaches to one that is there. Output comes as
 * on_log: first what is retained, then on_now, then what comes.
 *
 * Who is waited for: the program stops while every terminal_start() that is attached is out of credit. A
 * follow_start() with FOLLOW_LIVE and FOLLOW_INPUT stops it too, but for a second at most; if it is too slow,
 * on_gap comes after on_now.
 *
 * Input is limited by the agent's credit: send what terminal_room() allows, and stop reading from the client
 * until on_room.
 */
#pragma once

#include "sandbox/follow.h"

struct terminal_spec {
	unsigned flags;   /* enum terminal_flag */
	const char *name; /* as id_is_name(); "": the agent makes a UUID */
	uint32_t uid;
	/* 1 to 1000; 0 is 80 or 24 for a new one. One that is there is resized when both are given. */
	uint16_t cols, rows;
	const char *cwd;
	const char *const *argv; /* none: the shell. Executed as it is, argv[0] searched in PATH */
	uint32_t argc;
	const char *const *env; /* "NAME=value"; TERM is always xterm-256color */
	uint32_t env_count;
	const char *session; /* "" for none */
};

/*
 * Copies SPEC; borrows EVENTS. on_opened tells the terminal's id. With TERMINAL_DETACHED, END_DONE follows it
 * at once. END_FAILED before on_opened: it could not be started (errno and a sentence); EEXIST: NAME is taken
 * and TERMINAL_SHARED was not asked for. -E2BIG: larger than WIRE_SPILL_MAX; -EMFILE: too many operations in
 * this sandbox.
 */
int terminal_start(struct agent_link *link, const struct terminal_spec *spec,
		   const struct follow_events *events, void *ctx, struct follow **ret);

/* How many bytes of input may be sent now. */
size_t terminal_room(const struct follow *f);

/* Sends as much of BYTES as there is room for; returns how much that was. on_room comes when there is room
 * again. */
size_t terminal_input(struct follow *f, const void *bytes, size_t len);

/* 1 to 1000 each. */
void terminal_resize(struct follow *f, uint16_t cols, uint16_t rows);

/* To the whole tree of the terminal's program. */
void terminal_signal(struct follow *f, int signo);

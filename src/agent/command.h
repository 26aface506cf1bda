/*
 * command.h - what a request's argv means (API.md 3.5): a line for bash, and, where bash would do nothing but
 * find a program and execute it, how to do that without bash.
 *
 * Starting bash costs as much as most commands themselves. So a plain program name is searched in PATH by
 * ourselves, and executed with the environment that bash would have given it. Whatever does not work that way
 * (no such program, no permission, a script without an interpreter line) is left to bash after all, so that
 * status and message are its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct environment;
struct err;
struct wire_list;

/* The kernel takes no single argument of this size (MAX_ARG_STRLEN, with its NUL). */
#define COMMAND_ARGUMENT_MAX ((size_t)128 << 10)
#define COMMAND_CANDIDATES   32
/* Of a line: four bytes for each of a spilled message's, and some. */
#define COMMAND_LINE_CAP     ((size_t)192 << 20)
#define COMMAND_SCRIPT_FD    3 /* where a long line is found by the bash that reads it */
#define COMMAND_SESSION_FD   60
#define COMMAND_SESSION_FDS  5 /* see session.bash */

struct command {
	char **argv; /* as given, NULL-terminated; points into the packet */
	/* "_=/usr/bin/ls": the path begins at [2]. NULL-terminated. */
	char *candidates[COMMAND_CANDIDATES + 1];
	char *candidate_memory; /* private */
	/* "bash", "-c", line; NULL when argv is to be executed directly or not at all. */
	const char **bash_argv;
	struct buf line;
	int script_fd;  /* memory file with the line when it is too long for an argument, else -1 */
	int program_fd; /* execute this instead of searching, with ARGV as it is; else -1 */
	/* For the bash of a session, from COMMAND_SESSION_FD on; all -1 otherwise. Each is above the last of
	 * those. */
	int session_fds[COMMAND_SESSION_FDS];
};

#define COMMAND_NONE \
	((struct command){.script_fd = -1, .program_fd = -1, .session_fds = {-1, -1, -1, -1, -1}})

/*
 * DIRECT: EXEC_DIRECT was asked for. ENV is the command's environment, OVERLAY the request's part of it.
 * -EINVAL for an empty argv. The result points into the packet of ARGV.
 */
int command_plan(const struct wire_list *argv, bool direct, const struct environment *env,
		 const struct wire_list *overlay, struct command *ret, struct err *e);
void command_done(struct command *c);

/* Appends to C's line the words of ARGV, each quoted as below, with spaces between. -E2BIG. */
int command_line(struct command *c, const struct wire_list *argv, struct err *e);

/* Appends WORD to LINE, quoted as API.md 3.5 says. */
int command_quote(struct buf *line, const char *word, size_t len);

/* Whether bash, given NAME as the first word, would just search and execute a program of that name. */
bool command_is_program(const char *name);

/* program.h - starts another one of our programs, with exactly the descriptors it is meant to have. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct err;

struct program {
	const char *name;        /* "tombolo-keeper": looked for next to the running program */
	const char *const *args; /* its arguments after the name, ended by NULL; NULL for none */
	const int *fds;          /* these become its descriptors 3, 4, ... */
	size_t fd_count;         /* at most PROGRAM_FDS_MAX */
	bool keep_signal_mask;   /* otherwise no signal is blocked in it */
	bool drop;               /* become UID and GID, without other groups, before the program runs */
	uid_t uid;
	gid_t gid;
};

#define PROGRAM_FDS_MAX 16

/*
 * Empty environment, working directory "/", a session of its own; standard input and output are /dev/null,
 * standard error is ours, and so is the priority. 0 once the program really runs; -ENOENT when there is none
 * of that name.
 */
int program_start(const struct program *p, pid_t *ret_pid, struct err *e);

/* The program NAME, found as above, opened for others to execute (O_PATH, close-on-exec). The descriptor or
 * -errno. */
int program_open(const char *name, struct err *e);

/* Sends SIGNO, again when that fails for no reason: who waits for a death must not wait for ever. 0 or
 * -errno. */
int program_signal(pid_t pid, int signo);

/* SIGKILL; returns when our child PID is dead and reaped. */
void program_end(pid_t pid);

/*
 * Every signal's default action; also of the two that the C library keeps for itself: its posix_spawn()
 * leaves them ignored in what it starts, signal(2) refuses to change that, and each descendant would inherit
 * it.
 */
void program_default_signals(void);

/*
 * As setpriority(2), for this process and for its session: where the kernel schedules by sessions
 * (autogroup), nice values say only who goes first within one, and a new session weighs as much as any other.
 * What we may not have we do without.
 */
void program_set_priority(int nice);

/* Raises the soft limit of descriptors to the hard one: each sandbox costs some. */
void program_raise_fd_limit(void);

/*
 * spawn.h - starts one process: a vfork-style clone, no copy of our memory.
 *
 * Theory of operation: the child runs on a stack of its own in *our* memory while we stand still, until it
 * executes a program or gives up. So it reports its errno by writing it where we read it, and it may touch
 * nothing that it does not put back. It calls the kernel only, never libc functions that keep state.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/limits.h"

struct command;
struct environment;

enum spawn_step { SPAWN_CLONE, SPAWN_CGROUP, SPAWN_USER, SPAWN_CWD, SPAWN_TERMINAL, SPAWN_EXEC, SPAWN_BASH };

struct spawn_spec {
	const struct command *command;
	struct environment *env; /* its spare slots are written */
	const char *cwd;
	uint32_t uid; /* and gid */
	int stdio[3];
	bool terminal;                     /* stdio is one: it becomes the controlling terminal */
	int attach_fds[LIMITS_ATTACH_MAX]; /* files of cgroups to enter, in this order */
	size_t attach_count;
};

/* Once, before the first process of the sandbox. 0 or -errno. */
int spawn_init(void);

/* The pid (> 0), or the negative errno; *RET_STEP then tells which step failed. */
pid_t spawn(const struct spawn_spec *spec, enum spawn_step *ret_step);

/*
 * tree.h - all processes that one command started, however often they forked or changed sessions: a leaf cgroup.
 *
 * limits.h holds the directory that the keeper delegated; each running command has a directory of its own in it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/spawn.h"

struct err;

struct tree {
	uint32_t seq;           /* names the leaf; 0: there is none (any more) */
	pid_t leader;           /* of the process group, for when the leaf cannot be read */
};

/*
 * Makes the leaf; limits_held() must be true. Fills the files that the child enters, in order; the caller closes *RET_OWN
 * (one of them) after the spawn.
 */
int tree_open(struct tree *t, int attach_fds[SPAWN_ATTACH_MAX], size_t *ret_count, int *ret_own, struct err *e);

/* Removes the leaf when it is empty. Whether it is gone now. */
bool tree_remove(struct tree *t);

unsigned tree_count(const struct tree *t);              /* live processes in it */
void tree_signal(const struct tree *t, int signo);      /* to each of them, once */

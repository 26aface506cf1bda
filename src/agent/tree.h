/*
 * tree.h - all processes that one command started, however often they forked or changed sessions: a leaf
 * cgroup.
 *
 * limits.h holds the directory that the keeper delegated; each running command has a directory of its own in
 * it. An empty one is kept for the next command where emptiness is cheap to see: making and removing it costs
 * more than entering it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/limits.h"

struct err;

struct tree {
	uint32_t seq;  /* names the leaf; 0: there is none (any more) */
	int procs_fd;  /* its limits_entry(), for the child to enter */
	int count_fd;  /* its pids.current; -1 where leaves have none (v2) */
	int events_fd; /* its pids.events, likewise */
	pid_t leader;  /* of the process group, for when the leaf cannot be read */
};

/* ON_USE(true) is called when the first tree is opened, ON_USE(false) when the last one is removed. */
void trees_init(void (*on_use)(bool in_use));

/* Takes a leaf; limits_held() must be true. Fills the files that the child enters, in order; they stay ours.
 */
int tree_open(struct tree *t, int attach_fds[LIMITS_ATTACH_MAX], size_t *ret_count, struct err *e);

/* Gives the leaf back when nobody is in it. Whether there is none now. */
bool tree_remove(struct tree *t);

/* The cgroups are about to be closed: removes the leaves that wait for their next use. */
void trees_forget(void);

/* Whether nobody of the leader's process group lives; the dead that nobody reaps do not count. */
bool tree_group_is_gone(const struct tree *t);

/* Forks that were refused because of the limit, since the leaf was made; on v2 in the whole sandbox. */
uint64_t tree_forks_refused(const struct tree *t);

/* Processor time of all that ever were in it; 0: not known (v1). */
uint64_t tree_cpu_us(const struct tree *t);

unsigned tree_count(const struct tree *t);         /* live processes in it */
void tree_signal(const struct tree *t, int signo); /* to each of them, once */

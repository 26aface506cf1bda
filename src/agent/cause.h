/*
 * cause.h - whether a limit of the sandbox ended a command: its memory, its number of processes, its disk.
 *
 * Theory of operation: the kernel counts what it refused. We note the counters when a command starts and look
 * again when its leader has died. What rose meanwhile is told as it is; it becomes the *reason* of the end
 * only when it explains it:
 *
 *     oom     the kernel killed for want of memory, and the leader died of a SIGKILL that was not ours (or
 *             is a shell that passes on its child's 137)
 *     pids    a fork within the command's own tree was refused, and it failed
 *     disk    it failed, and no block or no inode is free at its end
 *
 * Memory is counted for the whole sandbox: when two commands of one sandbox die of SIGKILL in the same
 * moment, one by the kernel and one by somebody's `kill -9`, the larger one is told as oom. Forks are counted
 * for each command on v1, for the whole sandbox on v2.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/message.h"

struct tree;

struct cause {
	uint64_t oom_before, refused_before;
	/* Once it ended. */
	enum end_reason reason;            /* END_OOM, END_PIDS, END_DISK; END_EXITED: none of them */
	uint64_t limit;                    /* that was met: bytes or processes; 0: not known */
	uint32_t oom_kills, forks_refused; /* while it ran */
};

void cause_begin(struct cause *c, const struct tree *t);

/* CODE as in the end of a process, MAX_MEMORY its largest resident size in bytes. KILLED_BY_US: a SIGKILL of
 * ours went to it. */
void cause_find(struct cause *c, const struct tree *t, int code, uint64_t max_memory, bool killed_by_us);

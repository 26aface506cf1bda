/*
 * cgroup.h - memory, pids and cpu of a sandbox, over cgroup v1 or v2; one of both is chosen by probe at
 * start.
 *
 * Shape: v1: one directory a sandbox in each of the memory, pids and cpu hierarchies, below tombolo-NAME/.
 * The pids directory is delegated to the sandbox's agent, which makes a child a running exec in it (leaf
 * groups). v2: one directory a sandbox, delegated, with the limits on it and leaf groups below. The agent
 * itself stays outside, so that it is never the victim; it attaches the processes it starts (agent/limits.h).
 *
 * To attach itself, a process that is still uid 0 of the sandbox and has one thread writes "0" to each
 * descriptor it was given (v1: of a `tasks` file, v2: of cgroup.procs; they were opened by the host's root,
 * which is what the kernel checks), and to the same file of its leaf.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "isolation/limits.h"

struct cgroups;
struct err;

struct usage {
	uint64_t memory_bytes;
	uint32_t pids;
	uint64_t oom_kills;    /* since the cgroup was made */
	uint64_t pids_refused; /* forks refused by the limit; v1 counts them in the leaf group, and forgets
				  them with it */
};

/*
 * Finds the hierarchies and makes our parent directory NAME ([a-z0-9-]) in each; fails with the controller
 * that is missing or not writable. Removes nothing. One server a NAME.
 */
int cgroups_open(const char *name, struct cgroups **ret, struct err *e);

/* Removes the parent directories when they are empty. */
struct cgroups *cgroups_free(struct cgroups *c);
unsigned cgroups_version(const struct cgroups *c); /* 1 or 2 */

/*
 * Whether a sandbox can have a cgroup namespace. It is rooted where its agent lives, beside the sandbox's own
 * cgroup, and a v2 mounted with nsdelegate (systemd does) lets nobody move processes that lie outside of the
 * mover's root. Without one, /proc/self/cgroup inside shows the path on the host; nothing more is lost, since
 * no cgroup is mounted inside.
 */
bool cgroups_namespace_fits(const struct cgroups *c);

/*
 * Moves the process PID (the zygote, before its first clone) into a group of its own beside those of the
 * sandboxes: its clones are born there, so that what agents use is counted with us and at no cost per
 * sandbox.
 */
int cgroups_take_agents(struct cgroups *c, pid_t pid, struct err *e);

/*
 * A file (the caller closes it) to which each clone writes "0" once it has its cgroup namespace: v1's agents
 * then leave the cpu group of their birth, where all of them would share one weight. /dev/null where they
 * stay.
 */
int cgroups_agents_home(const struct cgroups *c, struct err *e);

/*
 * Makes the sandbox's cgroups with LIMITS, delegated to the host uid OWNER, and opens what the agent needs in
 * the order of enum limits_fd (wire/message.h): the directory for leaf groups, then one file to
 * enter by (v2) or two (v1); unused ones are -1. The caller closes them. What an earlier life of ID left is
 * taken over.
 */
int cgroup_make(struct cgroups *c, const char *id, const struct limits *limits, uint32_t owner,
		int ret_fds[3], struct err *e);

/*
 * Files that only count, for who may read them and nothing else: in the order of enum limits_fd from
 * LIMITS_MEMORY_EVENTS on. -1: this host has no such file. The caller closes them.
 */
#define CGROUP_COUNTERS 4
void cgroup_counters_open(struct cgroups *c, const char *id, int ret_fds[CGROUP_COUNTERS]);

/* 0, -ENOENT when there is none. */
int cgroup_usage(struct cgroups *c, const char *id, struct usage *ret);

/*
 * The sandbox was killed: lifts its quota of processor time and lets it go before the others. Hundreds of
 * processes that die on a sixteenth of a processor take seconds, and whoever deletes a sandbox waits for
 * them. May block; any thread.
 */
void cgroup_hurry(struct cgroups *c, const char *id);

/*
 * Kills what still is inside (children first) and removes it. 0 when it is gone (or never was); -EBUSY when
 * processes take their time: call again. Thaws first: on v1 a frozen process does not die.
 */
int cgroup_remove(struct cgroups *c, const char *id);

/* Calls EACH(id, ctx) for every sandbox that has a cgroup: what a sweep at start compares with the records.
 */
int cgroups_each(struct cgroups *c, void (*each)(const char *id, void *ctx), void *ctx);

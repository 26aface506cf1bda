/*
 * limits.h - the sandbox's cgroups, while we hold them (grant.h), and its limits: what they are, and what the
 * kernel counts by them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct msg_limits;

#define LIMITS_ATTACH_MAX 3 /* files that a process writes to on its way in */

/* The numbers of M, from the keeper. */
void limits_set(const struct msg_limits *m);

/* Holds the cgroups: takes the descriptors of M from FDS. */
void limits_hold(const struct msg_limits *m, int *fds, size_t fd_count);

/* Closes them; fine when they are not held. The numbers stay. */
void limits_let_go(void);

bool limits_held(void);

/* The directory that the keeper delegated, for leaves; -1: not held. It stays ours. */
int limits_dir(void);

/* The file of a cgroup that a new process writes "0" to in order to enter: see isolation/cgroup_v1.c. */
const char *limits_entry(void);

/* Fills in the files to write "0" to, in that order, OWN being the leaf's, and says how many; they stay whose
 * they are. */
size_t limits_attach_order(int own, int attach_fds[LIMITS_ATTACH_MAX]);

/* The limits; 0: none. */
uint64_t limits_memory(void);    /* bytes */
uint32_t limits_pids(void);      /* processes */
uint32_t limits_cpu_milli(void); /* thousandths of a core */

/* Processes that the kernel killed for want of memory, forks it refused in the whole sandbox (v2): since the
 * cgroups were made. 0: not known. */
uint64_t limits_oom_kills(void);
uint64_t limits_forks_refused(void);

/* Processes there are in the sandbox; 0: not known. */
uint64_t limits_processes(void);

/* The number in one of the counters (enum limits_fd), or the one behind KEY at the start of a line; 0 when
 * there is none. */
uint64_t limits_count(unsigned which, const char *key);

/* The number behind KEY in a text of such lines; KEY NULL: the first one. */
uint64_t limits_number(const char *text, const char *key);

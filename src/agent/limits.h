/*
 * limits.h - the sandbox's cgroups, held only while somebody runs.
 *
 * Theory of operation: an idle sandbox has no cgroups (KERNEL.md section 4: memory cgroups cost everyone).
 * Before the first command we ask the keeper over the bond; commands wait meanwhile (exec.c). When nothing
 * has lived for LIMITS_LINGER_MS we close the descriptors and tell the keeper, who then removes the cgroups.
 * A sandbox that is made ahead of need gets them unasked, so that its first command finds them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/spawn.h"

struct msg_limits;

#define LIMITS_LINGER_MS 10000
#define LIMITS_WAIT_MS   5000

/* ON_DECIDED(error, text) is called once after each -EAGAIN of limits_want(): 0, or why there are none. */
void limits_init(void (*on_decided)(int error, const char *text));

/* 0: held. -EAGAIN: asked for. */
int limits_want(void);

/* The keeper's answer. Takes the descriptors it wants from FDS. */
void limits_received(const struct msg_limits *m, int *fds, size_t fd_count);

/* A new bond: what was asked over the old one is asked again. */
void limits_bond_renewed(void);

bool limits_held(void);
int limits_dir(void);

/* The file of a cgroup that a new process writes "0" to in order to enter: see isolation/cgroup_v1.c. */
const char *limits_entry(void);

/* Files to write "0" to, OWN being the leaf's. */
size_t limits_attach_order(int own, int attach_fds[SPAWN_ATTACH_MAX]);

/* The limits; 0: none. */
uint64_t limits_memory(void);
uint32_t limits_pids(void);
uint32_t limits_cpu_milli(void);

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

/* Counts the trees that need the cgroups. */
void limits_use(void);
void limits_unuse(void);

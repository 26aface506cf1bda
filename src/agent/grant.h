/*
 * grant.h - the keeper grants the sandbox's cgroups (limits.h), and they go back when nobody runs.
 *
 * Theory of operation: an idle sandbox has no cgroups (memory cgroups cost everyone). Before the first
 * command we ask the keeper over the bond; commands wait meanwhile (starting.h). When no tree (tree.h) has
 * lived for GRANT_LINGER_MS we close the descriptors and tell the keeper, who then removes the cgroups. A
 * sandbox that is made ahead of need gets them unasked, so that its first command finds them.
 */
#pragma once

#include <stddef.h>

struct msg_limits;

#define GRANT_LINGER_MS 10000
#define GRANT_WAIT_MS   5000

/* ON_DECIDED(error, text) is called once after each -EAGAIN of grant_want(): 0, or why there are none. */
void grant_init(void (*on_decided)(int error, const char *text));

/* 0: the cgroups are held. -EAGAIN: asked for. */
int grant_want(void);

/* ---- struct bond_events ---- */

/* The keeper's answer. Takes the descriptors it wants from FDS. */
void grant_received(const struct msg_limits *m, int *fds, size_t fd_count);

/* A new bond: what was asked over the old one is asked again. */
void grant_bond_renewed(void);

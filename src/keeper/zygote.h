/*
 * zygote.h - the keeper's end of the zygote: tombolo-agent, started once, of which every parked agent is a
 * clone.
 *
 * A zygote that dies is started again (base/backoff.h); what was asked of the dead one fails.
 */
#pragma once

#include <sys/types.h>

struct cgroups;
struct err;
struct loop;
struct zygote;

/* PID and our end of its bond (the callee's to close), or E. In the order of the calls. */
typedef void on_spawned(void *ctx, pid_t pid, int bond_fd, const struct err *e);

/* Starts it, in the cgroup for agents. Borrows CGROUPS. */
int zygote_new(struct loop *loop, struct cgroups *cgroups, on_spawned *on_done, void *ctx,
	       struct zygote **ret, struct err *e);

/* Ends it. No callback comes any more. */
struct zygote *zygote_free(struct zygote *z);

/* Asks for a parked agent. Negative when there is no zygote at the moment: no callback will come. */
int zygote_spawn(struct zygote *z);

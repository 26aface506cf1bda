/*
 * sweep.h - at start: takes over what an earlier keeper left alive, and removes every trace of the rest.
 *
 * Theory of operation: a sandbox can live on when its record is whole, of this boot, in ids that are ours,
 * and its agent's pid still names the process that was recorded. Then we connect to its socket; the kernel
 * says who listens there, and that must be this pid with the sandbox's own uid. The agent's answer to our
 * cookie comes later, from the loop. Everything else found in the state directory, and every cgroup of ours
 * without a sandbox, is a left-over.
 */
#pragma once

struct err;
struct keeper;

/* Before the loop runs: may block. */
int sweep(struct keeper *k, struct err *e);

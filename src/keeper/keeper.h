/*
 * keeper.h - the keeper's parts, put together.
 *
 * Theory of operation: everything runs on one loop; what may block runs on its work threads and comes back. A
 * sandbox (sandbox.h) needs a parked agent (parking.h) and a prepared slot (slots.h); creations wait in a
 * line for both, and on each change keeper.c hands out what there is, oldest first. The front (front.h) asks
 * and is told; it may come and go. At start, sweep.h takes over what an earlier keeper left alive and removes
 * the rest; only then does the front start. As many sandboxes as the front wishes are made before anybody
 * needs them (ahead.h); a creation takes one of those first.
 *
 * The room's inner order, which tests/unit/floors.py and calls.py check: each file includes and calls only
 * what stands on lines below its own.
 *
 *   main
 *   keeper                      the loop; serves the line; a server's beginning and end
 *   requests, sweep             what the front asks; what an earlier keeper left
 *   wishes                      an id is to be there, to be gone, to sleep
 *   ahead                       sandboxes before anybody asks for one
 *   placing                     the way up of one
 *   bond                        it and its agent
 *   limits                      its cgroups
 *   ending                      the way down, and sleep
 *   front, line, population     what the front is told; who waits; which sandboxes there are
 *   sandbox                     what one holds
 *   parts                       what all of the above share
 *   parking, slots, syncing, issued, du
 *   zygote, process, blocks, record, state, trash, lost, admission
 *
 * The last two lines are supplies and stores that know of no sandbox. What has to go up is an event that the
 * upper file armed: keeper_changed() of parts.h, the events of front.h, `then` of limits.h, `again` of
 * sandbox.h.
 */
#pragma once

#include "keeper/parts.h"

struct err;

int keeper_new(const struct keeper_settings *settings, struct keeper **ret, struct err *e);

/* Serves until it is told to stop. Negative: it could not even begin (the log says why). */
int keeper_run(struct keeper *k);

/* After keeper_run(): lets the trash empty itself for a while and gives back what outlives a process. */
void keeper_end(struct keeper *k);

/* Ends the server's work: first the front, then, unless KEEP, all sandboxes. */
void keeper_stop(struct keeper *k, bool keep);

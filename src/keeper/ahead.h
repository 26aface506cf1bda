/*
 * ahead.h - sandboxes made ahead: whole, contained and listening before anybody asks for one, and nobody's
 * until then.
 *
 * Theory of operation: a sandbox is called by its run everywhere on the host (directory, cgroups, domain
 * name), so one without an id is made like any other and stops at PARKED, with its cgroups, so that the first
 * command waits for nothing. A claim gives it an id: the record is written again on a work thread (without
 * fsync: see record.h), and then the front has its link. The record comes before the answer, because a
 * sandbox that somebody used must never be taken for a fresh one after a restart. That is also why a keeper
 * may take over parked ones: what has no id in its record was never handed out.
 *
 * Who wants an id comes first: successors are not made in the moment of a first command, unless none is left;
 * in the line; and when the host is full (the one that is being made ahead then makes room). When one could
 * not be made, no more are tried until the front says `park` again.
 */
#pragma once

#include <stdbool.h>

struct ahead;
struct keeper;
struct wish;

struct ahead *ahead_new(struct keeper *k);
struct ahead *ahead_free(struct ahead *a);

/* `park` of the front. */
void ahead_wish(struct keeper *k, unsigned want);

/* Has more made, or ends those that are too many, the oldest first. Part of what follows a change. */
void ahead_refill(struct keeper *k);

/* Tells the front how many there are, if it has not been told. Part of what follows a change. */
void ahead_tell(struct keeper *k);

/* Gives the oldest that can become what WISH says to ID; `attached` follows. False: there is none. */
bool ahead_claim(struct keeper *k, const char *id, const struct wish *wish);

/* The host is full: gives up one, best one that is still being made. False: there is none. */
bool ahead_make_room(struct keeper *k);

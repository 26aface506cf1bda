/*
 * placing.h - the way up of a sandbox: it waits in line; its files are put into place (PLACING, on a work
 * thread); and then a parked agent contains itself around them (BINDING). The agent's `bound` comes to
 * bond.h.
 */
#pragma once

struct keeper;
struct sandbox;
struct wish;

/* A new one, ID "" for one that is made ahead, gets in line; the caller tells keeper_changed(). */
void placing_line_up(struct keeper *k, const char *id, const struct wish *wish);

/* S, which is ASLEEP, gets in line. */
void placing_wake(struct sandbox *s);

/* Out of the line: an agent and a slot are ready. */
void placing_begin(struct sandbox *s);

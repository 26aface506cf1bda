/*
 * ending.h - the way down of a sandbox: kill the agent, wait for its death, then remove cgroups, tree and
 * socket, then tell the front.
 *
 * DYING ends when the agent is dead and no work of ours runs any more; CLEARING is one work, repeated while
 * any part of it fails: mostly the kernel is still taking the processes out of their cgroups. What cannot be
 * cleared in CLEAR_TRIES is told, and left to the next start's sweep. Only after it are the ids free for
 * another sandbox.
 *
 * Falling asleep is the way down that leaves the tree: a sandbox without processes is a tree on disk and a
 * record that says so. A sleeper holds no ids, no descriptors and no place among max-sandboxes. Waking up is
 * the way up (placing.h) with that tree in place of a new one; whatever goes wrong there leads back here.
 */
#pragma once

#include "wire/message.h"

struct err;
struct sandbox;

/* Ends it: kill, then clear. Again and again is once. */
void ending_begin(struct sandbox *s, enum gone_why why, const char *text);

/* It cannot be made: the front is told why, and it ends. */
void ending_refuse(struct sandbox *s, const struct err *e);

/* As ending_refuse(), and nobody is told. */
void ending_give_up(struct sandbox *s);

/* Its agent died, or a work that ran on a thread is over: if it waits for that to be cleared, go on. */
void ending_advance(struct sandbox *s);

/* Cleared, or never woken: ASLEEP, and the front is told. */
void ending_rest(struct sandbox *s);

/*
 * starting.h - what starts a process waits here for the sandbox's cgroups (grant.h): the opening message is
 * copied and kept until they are there.
 */
#pragma once

#include "wire/frame.h"

/* Embedded in what waits. Set both callbacks; exactly one of them is called unless it is cancelled. */
struct start_wait {
	struct start_wait *next; /* private, as is the opening */
	struct frame opening;    /* its payload is ours */
	/* The cgroups are held. F is good during the call. May free the waiter. */
	void (*on_ready)(struct start_wait *w, const struct frame *f);
	void (*on_refused)(struct start_wait *w, int error, const char *text);
};

void starting_init(void);

/* Calls on_ready now, or one of the two later. */
void start_wait(struct start_wait *w, const struct frame *f);
void start_cancel(struct start_wait *w); /* fine when it does not wait */

/* ending.h - the way down of a sandbox; inside the room, see sandbox.h. */
#pragma once

struct sandbox;

/* The agent's pidfd is readable: it is dead, and with it every process of its pid namespace. */
void ending_on_death(void *sandbox, unsigned events);

/* A work that ran on a thread is over: if the sandbox waits for that to be cleared, go on. */
void ending_advance(struct sandbox *s);

/* Lets go of all that it holds; the record stays. */
void ending_release(struct sandbox *s);

/* Drops and frees it; nothing of it may be left anywhere. */
void ending_forget(struct sandbox *s);

/*
 * limits.h - a sandbox's cgroups: made when its first process starts, removed when its last one ended,
 * because each memory cgroup makes every other a little dearer (docs: idle memory). All on work threads, one
 * step at a time.
 */
#pragma once

#include <stdbool.h>

#include "wire/message.h"

struct limits;
struct record;
struct err;
struct sandbox;

enum limits_phase {
	LIMITS_NONE,
	LIMITS_MAKING,
	LIMITS_MADE,
	LIMITS_REMOVING,
};

struct limits_of {
	enum limits_phase phase;
	bool stale;  /* made for another instance type than was asked for */
	bool wanted; /* asked for while the old ones are being removed */
	int fds[LIMITS_FDS]; /* between a work thread and the message */
};

/* The agent is about to start a first process; it is answered with `limits`. */
void limits_want(struct sandbox *s);

/* On a work thread: those that are made get the limits of the instance type in the record. */
int limits_adapt(struct sandbox *s, struct err *e);

/* The agent of what was made ahead learns the numbers of who claimed it. */
void limits_tell_numbers(struct sandbox *s);

/* The agent has no process any more. */
void limits_idle(struct sandbox *s);

/* What its instance type says, and what it was given of its own. -EINVAL: there is no such type (any more). */
int limits_of_record(const struct record *rec, struct limits *ret);

/* Answers the front's `inspect`. */
void limits_tell_usage(struct sandbox *s);

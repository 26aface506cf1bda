/*
 * limits.h - a sandbox's cgroups: made when its first process starts, removed when its last one ended,
 * because each memory cgroup makes every other a little dearer (docs/limits.md). All on work threads, one
 * step at a time.
 */
#pragma once

struct limits;
struct record;
struct err;
struct sandbox;

/*
 * The agent is about to start a first process: it is answered with `limits`. Or S is being made ahead: then
 * THEN(S) follows, also when they could not be made, unless S ended.
 */
void limits_want(struct sandbox *s, void (*then)(struct sandbox *s));

/* On a work thread: those that are made get the limits of the instance type in the record. */
int limits_adapt(struct sandbox *s, struct err *e);

/* The agent of what was made ahead learns the numbers of who claimed it. */
void limits_tell_numbers(struct sandbox *s);

/* The agent has no process any more. */
void limits_idle(struct sandbox *s);

/* What its instance type says, and what it was given of its own. -EINVAL: there is no such type (any more).
 */
int limits_of_record(const struct record *rec, struct limits *ret);

/* Answers the front's `inspect`. */
void limits_tell_usage(struct sandbox *s);

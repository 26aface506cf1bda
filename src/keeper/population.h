/* population.h - the sandboxes there are: found by id, counted by state. */
#pragma once

struct keeper;
struct sandbox;

/* Those that are nobody's yet have the id "" and are several: the newest, then the one before S. */
struct sandbox *population_find(const struct keeper *k, const char *id);
struct sandbox *population_find_next(const struct sandbox *s);

/* By the id in its record, which does not change in between. */
void population_add(struct keeper *k, struct sandbox *s);
void population_drop(struct keeper *k, struct sandbox *s);

/* How many there are in whatever state but asleep, and how many that are not on their way out. */
unsigned population_count(const struct keeper *k);
unsigned population_count_staying(const struct keeper *k);

/* EACH may end sandboxes, but free none. */
void population_each(struct keeper *k, void (*each)(struct sandbox *s, void *ctx), void *ctx);

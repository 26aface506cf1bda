/*
 * lost.h - which sandboxes ended by themselves, and why: told to each new front, so that a person who asks
 * for one is told more than that there is none. The last LOST_MAX of them.
 */
#pragma once

struct lost;

#define LOST_MAX 256

struct lost *lost_new(void);
struct lost *lost_free(struct lost *l);

/* Replaces what was known of ID. */
void lost_add(struct lost *l, const char *id, const char *why);

/* Somebody uses the id again, or removed it. */
void lost_forget(struct lost *l, const char *id);

/* The oldest first. */
void lost_each(const struct lost *l, void (*each)(const char *id, const char *why, void *ctx), void *ctx);

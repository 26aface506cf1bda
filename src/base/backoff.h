/* backoff.h - how long to wait before starting again what died: not at all at first, then ever longer. */
#pragma once

#include <stdint.h>

struct backoff {
	unsigned deaths;   /* in a row */
	uint64_t begin_ms; /* when the life after the last one began */
};

/* A life of this length forgives what came before: it did not die of its start. */
#define BACKOFF_CALM_MS  2000
#define BACKOFF_FREE     3 /* deaths in a row that cost no wait */
#define BACKOFF_FIRST_MS 100
#define BACKOFF_MOST_MS  5000

/* Counts a death at NOW_MS and returns the milliseconds to wait. */
static inline unsigned backoff_next(struct backoff *b, uint64_t now_ms)
{
	unsigned wait_ms = 0, doublings;

	/* A life that has not begun yet is none: its start failed. */
	if (now_ms > b->begin_ms + BACKOFF_CALM_MS) b->deaths = 0;
	b->deaths++;
	if (b->deaths > BACKOFF_FREE) {
		doublings = b->deaths - BACKOFF_FREE - 1;
		wait_ms = doublings > 5 ? BACKOFF_MOST_MS : BACKOFF_FIRST_MS << doublings;
	}
	b->begin_ms = now_ms + wait_ms;
	return wait_ms;
}

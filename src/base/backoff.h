/* backoff.h - how long to wait before starting again what died: not at all at first, then ever longer. */
#pragma once

#include <stdint.h>

struct backoff {
	unsigned deaths;  /* in a row */
	uint64_t last_ms; /* when the last one was */
};

#define BACKOFF_CALM_MS  60000 /* a life of this length forgives what came before */
#define BACKOFF_FREE     3     /* deaths in a row that cost no wait */
#define BACKOFF_FIRST_MS 100
#define BACKOFF_MOST_MS  5000

/* Counts a death at NOW_MS and returns the milliseconds to wait. */
static inline unsigned backoff_next(struct backoff *b, uint64_t now_ms)
{
	if (now_ms - b->last_ms > BACKOFF_CALM_MS) b->deaths = 0;
	b->last_ms = now_ms;
	b->deaths++;
	if (b->deaths <= BACKOFF_FREE) return 0;
	unsigned doublings = b->deaths - BACKOFF_FREE - 1;
	if (doublings > 5) return BACKOFF_MOST_MS;
	return BACKOFF_FIRST_MS << doublings;
}

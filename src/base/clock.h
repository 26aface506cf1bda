/* clock.h - the two times we use. */
#pragma once

#include <stdint.h>
#include <time.h>

/* Milliseconds of CLOCK_MONOTONIC: for deadlines and durations. */
static inline uint64_t clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Milliseconds since 1970: for what a person or a client reads. */
static inline uint64_t clock_wall_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* "2026-01-01T00:00:00.000Z" and a NUL. */
#define CLOCK_ISO_SIZE 25
void clock_iso(uint64_t wall_ms, char text[CLOCK_ISO_SIZE]);

/*
 * bench.h - what all measurements share: where the server is, where the numbers go.
 *
 * Theory of operation: a run is a number of rounds. In each round every measurement takes a few samples of
 * ours and a few of its floor, one after the other, so that whatever else the machine is doing falls on both
 * alike. Samples go to rows (rows.def); the report compares the medians, and the spread of the rounds says
 * how far to trust them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client.h"
#include "series.h"

struct err;
struct namespace_floor;
struct server;

enum unit { MICROSECONDS, PER_SECOND, MB_PER_SECOND, KIBIBYTES };

enum row {
#define ROW(id, what, floor, unit, bar, foundation_bar) ROW_##id,
#include "rows.def"
	ROW_COUNT
};

struct bench {
	struct endpoint server_at;
	struct server *server; /* NULL when somebody else's server is measured (--url) */
	struct namespace_floor *namespaces;
	struct client client; /* one kept-alive connection for all that is sequential */
	char sandbox[129];    /* the one sandbox that all but create and memory work in */
	char *dir;            /* for files of floors; removed at the end */
	char *static_path;    /* true_static on the host */
	unsigned round;
	bool quick; /* smaller amounts where the full ones take many seconds */
	struct series ours[ROW_COUNT], floor[ROW_COUNT];
	const char *missing[ROW_COUNT]; /* why a row, or its floor, has no numbers: a constant sentence */
};

/* One line of measurements.def. STATE is the measurement's own; begin may be NULL, end must take a NULL
 * state. */
struct measurement {
	int (*begin)(struct bench *b, void **ret_state, struct err *e);
	int (*round)(struct bench *b, void *state, struct err *e);
	void (*end)(void *state);
};

#define MEASUREMENT(name, every) extern const struct measurement measure_##name;
#include "measurements.def"

/* Microseconds of CLOCK_MONOTONIC. */
double now_us(void);

static inline void sample_ours(struct bench *b, enum row row, double value)
{
	series_add(&b->ours[row], b->round, value);
}

static inline void sample_floor(struct bench *b, enum row row, double value)
{
	series_add(&b->floor[row], b->round, value);
}

/* series.h - the samples of one quantity, and what a reader wants to know of them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct sample {
	double value;
	unsigned round;
};

struct series {
	struct sample *samples; /* in the order they were taken */
	size_t count, room;
};

struct spread {
	double low, middle, high; /* quartiles */
	size_t count;
};

void series_add(struct series *s, unsigned round, double value);
void series_done(struct series *s);

/* The value below which PERCENT of the samples lie, between two neighbours if need be; 0 when there are none.
 */
double series_percentile(const struct series *s, double percent);

/* Of the ratios, round by round, of the medians of OURS to those of FLOOR: how steady the ratio is. */
struct spread series_ratio_spread(const struct series *ours, const struct series *floor);

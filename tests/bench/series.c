#include "series.h"

#include "base/mem.h"

void series_add(struct series *s, unsigned round, double value)
{
	if (s->count == s->room) {
		s->room = s->room ? s->room * 2 : 64;
		s->samples = mem_grow(s->samples, s->room, sizeof *s->samples);
	}
	s->samples[s->count++] = (struct sample){.value = value, .round = round};
}

void series_done(struct series *s)
{
	free(s->samples);
	*s = (struct series){0};
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts VALUES in place. */
static double percentile_of(double *values, size_t count, double percent)
{
	if (count == 0) return 0;
	qsort(values, count, sizeof *values, by_value);
	double rank = percent / 100 * (double)(count - 1);
	size_t below = (size_t)rank, above = MIN(below + 1, count - 1);
	return values[below] + (values[above] - values[below]) * (rank - (double)below);
}

double series_percentile(const struct series *s, double percent)
{
	auto_free double *values = mem_new_array(s->count + 1, sizeof *values);

	for (size_t i = 0; i < s->count; i++)
		values[i] = s->samples[i].value;
	return percentile_of(values, s->count, percent);
}

/* The median of ROUND's samples, which begin at *AT; moves *AT behind them. False when the round has none. */
static bool round_median(const struct series *s, unsigned round, size_t *at, double *ret)
{
	size_t first, count = 0;

	while (*at < s->count && s->samples[*at].round < round)
		(*at)++;
	for (first = *at; *at < s->count && s->samples[*at].round == round; (*at)++)
		count++;
	if (count == 0) return false;

	auto_free double *values = mem_new_array(count, sizeof *values);
	for (size_t i = 0; i < count; i++)
		values[i] = s->samples[first + i].value;
	*ret = percentile_of(values, count, 50);
	return true;
}

struct spread series_ratio_spread(const struct series *ours, const struct series *floor)
{
	struct spread spread = {0};

	if (ours->count == 0 || floor->count == 0) return spread;
	unsigned last = ours->samples[ours->count - 1].round;
	auto_free double *ratios = mem_new_array(last + 1, sizeof *ratios);
	size_t at_ours = 0, at_floor = 0;
	for (unsigned round = 0; round <= last; round++) {
		double mine, theirs;
		bool have_mine = round_median(ours, round, &at_ours, &mine);
		bool have_theirs = round_median(floor, round, &at_floor, &theirs);
		if (have_mine && have_theirs && theirs > 0) ratios[spread.count++] = mine / theirs;
	}
	spread.low = percentile_of(ratios, spread.count, 25);
	spread.middle = percentile_of(ratios, spread.count, 50);
	spread.high = percentile_of(ratios, spread.count, 75);
	return spread;
}

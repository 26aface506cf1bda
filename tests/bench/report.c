#include "report.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include "base/err.h"
#include "base/mem.h"
#include "bench.h"

struct bar {
	enum bar_kind { BAR_NONE, BAR_RATIO_MOST, BAR_RATIO_LEAST, BAR_MOST, BAR_LEAST } kind;
	double value;
};

#define NO_BAR \
	{ \
		BAR_NONE, 0 \
	}
#define RATIO_AT_MOST(x) \
	{ \
		BAR_RATIO_MOST, x \
	}
#define RATIO_AT_LEAST(x) \
	{ \
		BAR_RATIO_LEAST, x \
	}
#define AT_MOST(x) \
	{ \
		BAR_MOST, x \
	}
#define AT_LEAST(x) \
	{ \
		BAR_LEAST, x \
	}

static const struct row_text {
	const char *id, *what, *floor;
	enum unit unit;
	struct bar bar, foundation;
} rows[] = {
#define ROW(id, what, floor, unit, bar, foundation) [ROW_##id] = {#id, what, floor, unit, bar, foundation},
#include "rows.def"
};

static const char *const unit_names[] = {
	[MICROSECONDS] = "us", [PER_SECOND] = "1/s", [MB_PER_SECOND] = "MB/s", [KIBIBYTES] = "KiB"};

static void value_text(double value, enum unit unit, char text[24])
{
	const char *name = unit_names[unit];

	if (unit == MICROSECONDS && value >= 1000) value /= 1000, name = "ms";
	if (unit == KIBIBYTES && value >= 4096) value /= 1024, name = "MiB";
	snprintf(text, 24, value < 10 ? "%.2f %s" : value < 100 ? "%.1f %s" : "%.0f %s", value, name);
}

static double ratio_of(const struct bench *b, enum row row)
{
	double floor = series_percentile(&b->floor[row], 50);

	return floor > 0 ? series_percentile(&b->ours[row], 50) / floor : 0;
}

/* "met", "missed", or NULL when there is no bar or nothing to hold against it. */
static const char *verdict(const struct bench *b, enum row row, const struct bar *bar)
{
	double ratio = ratio_of(b, row), value = series_percentile(&b->ours[row], 50);
	bool met = true;

	if (b->ours[row].count == 0) return NULL;
	switch (bar->kind) {
	case BAR_NONE: return NULL;
	case BAR_RATIO_MOST:
	case BAR_RATIO_LEAST:
		if (ratio <= 0) return NULL;
		met = bar->kind == BAR_RATIO_MOST ? ratio <= bar->value : ratio >= bar->value;
		break;
	case BAR_MOST: met = value <= bar->value; break;
	case BAR_LEAST: met = value >= bar->value; break;
	}
	return met ? "met" : "missed";
}

static void bar_text(const struct bench *b, enum row row, const struct bar *bar, char text[48])
{
	bool ratio = bar->kind == BAR_RATIO_MOST || bar->kind == BAR_RATIO_LEAST;
	const char *said = verdict(b, row, bar);
	char value[24];

	*text = '\0';
	if (!said) return;
	if (ratio) snprintf(value, sizeof value, "%.2fx", bar->value);
	else value_text(bar->value, rows[row].unit, value);
	const char *sign = bar->kind == BAR_RATIO_MOST || bar->kind == BAR_MOST ? "<=" : ">=";
	snprintf(text, 48, "%s %s %s", sign, value, said);
}

static void print_row(const struct bench *b, enum row row)
{
	const struct series *ours = &b->ours[row], *floor = &b->floor[row];
	char p50[24] = "-", p99[24] = "-", floor50[24] = "", floor99[24] = "", ratio[48] = "", bar[48],
	     foundation[48];

	if (ours->count == 0 && !b->missing[row]) return;
	if (ours->count) value_text(series_percentile(ours, 50), rows[row].unit, p50);
	if (ours->count) value_text(series_percentile(ours, 99), rows[row].unit, p99);
	if (floor->count && ours->count) {
		struct spread s = series_ratio_spread(ours, floor);
		value_text(series_percentile(floor, 50), rows[row].unit, floor50);
		value_text(series_percentile(floor, 99), rows[row].unit, floor99);
		snprintf(ratio, sizeof ratio, "%.2f (%.2f-%.2f)", ratio_of(b, row), s.low, s.high);
	}
	bar_text(b, row, &rows[row].bar, bar);
	bar_text(b, row, &rows[row].foundation, foundation);
	printf("%-40s %10s %10s %10s %10s  %-17s %-18s %s\n", rows[row].what, p50, p99, floor50, floor99,
	       ratio, bar, foundation);
}

void report_print(const struct bench *b)
{
	struct utsname host;

	uname(&host);
	printf("\ntombolo %s, Linux %s, %d cores, %u rounds\n\n", TOMBOLO_VERSION, host.release, get_nprocs(),
	       b->round);
	printf("%-40s %10s %10s %10s %10s  %-17s %-18s %s\n", "", "p50", "p99", "floor p50", "floor p99",
	       "ratio (rounds)", "bar", "foundation");
	for (enum row row = 0; row < ROW_COUNT; row++)
		print_row(b, row);
	printf("\n");
	for (enum row row = 0; row < ROW_COUNT; row++)
		if (b->missing[row]) printf("%s: %s\n", rows[row].what, b->missing[row]);
}

static json_t *series_json(const struct series *s)
{
	return json_pack("{s:i, s:f, s:f, s:f}", "samples", (int)s->count, "p10", series_percentile(s, 10),
			 "p50", series_percentile(s, 50), "p99", series_percentile(s, 99));
}

static json_t *bar_json(const struct bench *b, enum row row, const struct bar *bar)
{
	static const char *const kinds[] = {"", "ratio_at_most", "ratio_at_least", "at_most", "at_least"};
	const char *said = verdict(b, row, bar);

	if (!said) return json_null();
	return json_pack("{s:s, s:f, s:b}", "kind", kinds[bar->kind], "value", bar->value, "met",
			 strcmp(said, "met") == 0);
}

static json_t *row_json(const struct bench *b, enum row row)
{
	struct spread s = series_ratio_spread(&b->ours[row], &b->floor[row]);
	json_t *o = json_pack("{s:s, s:s, s:s, s:o, s:o, s:o}", "id", rows[row].id, "what", rows[row].what,
			      "unit", unit_names[rows[row].unit], "ours", series_json(&b->ours[row]), "bar",
			      bar_json(b, row, &rows[row].bar), "foundation_bar",
			      bar_json(b, row, &rows[row].foundation));

	if (b->floor[row].count) {
		json_object_set_new(o, "floor", series_json(&b->floor[row]));
		json_object_set_new(o, "floor_is", json_string(rows[row].floor));
		json_object_set_new(o, "ratio", json_real(ratio_of(b, row)));
		json_object_set_new(o, "ratio_of_rounds", json_pack("[f, f, f]", s.low, s.middle, s.high));
	}
	if (b->missing[row]) json_object_set_new(o, "missing", json_string(b->missing[row]));
	return o;
}

int report_write_json(const struct bench *b, const char *path, struct err *e)
{
	struct utsname host;
	json_t *list = json_array();

	uname(&host);
	for (enum row row = 0; row < ROW_COUNT; row++)
		json_array_append_new(list, row_json(b, row));
	json_t *all = json_pack("{s:s, s:s, s:i, s:i, s:o}", "version", TOMBOLO_VERSION, "kernel",
				host.release, "cores", get_nprocs(), "rounds", (int)b->round, "rows", list);
	int r = json_dump_file(all, path, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
	json_decref(all);
	return r < 0 ? err_say(e, -EIO, "cannot write '%s'", path) : 0;
}

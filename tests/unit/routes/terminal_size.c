#include "routes/terminal_size.h"

#include "unit.h"

struct expected {
	const char *query;
	enum size_verdict verdict;
	uint16_t size;
};

#define HOLDS(function, cases) \
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) { \
		uint16_t size = 0; \
		enum size_verdict verdict = function(cases[i].query, "cols", &size); \
		if (verdict != cases[i].verdict || size != cases[i].size) \
			fail_msg("'%s' is %d, %u", cases[i].query, verdict, size); \
	}

TEST(a_pty_takes_any_number_and_brings_it_into_its_bounds)
{
	static const struct expected cases[] = {
		{NULL, SIZE_ABSENT, 0},
		{"rows=5", SIZE_ABSENT, 0},
		{"cols=", SIZE_ABSENT, 0},
		{"cols=0", SIZE_ABSENT, 0},
		{"cols=0.5", SIZE_ABSENT, 0},
		{"cols=-3", SIZE_GIVEN, 1},
		{"cols=120", SIZE_GIVEN, 120},
		{"cols=99.9", SIZE_GIVEN, 99},
		{"cols=1e2", SIZE_GIVEN, 100},
		{"cols=0x10", SIZE_GIVEN, 16},
		{"cols=+80+", SIZE_GIVEN, 80},
		{"cols=70000", SIZE_GIVEN, 1000},
		{"cols=Infinity", SIZE_GIVEN, 1000},
		{"cols=abc", SIZE_WRONG, 0},
		{"cols=80px", SIZE_WRONG, 0},
		{"cols=%00", SIZE_WRONG, 0},
	};

	HOLDS(size_of_pty, cases);
}

TEST(a_connect_takes_positive_whole_numbers_only)
{
	static const struct expected cases[] = {
		{NULL, SIZE_ABSENT, 0},           {"cols=80", SIZE_GIVEN, 80},
		{"cols=80.0", SIZE_GIVEN, 80},    {"cols=5000", SIZE_GIVEN, 1000},
		{"cols=", SIZE_WRONG, 0},         {"cols=0", SIZE_WRONG, 0},
		{"cols=-1", SIZE_WRONG, 0},       {"cols=1.5", SIZE_WRONG, 0},
		{"cols=Infinity", SIZE_WRONG, 0}, {"cols=x", SIZE_WRONG, 0},
		{"cols=%20", SIZE_WRONG, 0},
	};

	HOLDS(size_of_connect, cases);
}

static enum size_verdict json_size(enum size_verdict (*function)(const json_t *, uint16_t *),
				   const char *text, uint16_t *size)
{
	json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);
	enum size_verdict verdict;

	*size = 0;
	assert_non_null(json);
	verdict = function(json, size);
	json_decref(json);
	return verdict;
}

TEST(json_has_a_strict_reading_and_a_loose_one)
{
	uint16_t size;

	ASSERT_EQ(size_of_json(NULL, &size), SIZE_ABSENT);
	ASSERT_EQ(json_size(size_of_json, "80", &size), SIZE_GIVEN);
	ASSERT_EQ(size, 80);
	ASSERT_EQ(json_size(size_of_json, "80.0", &size), SIZE_GIVEN);
	ASSERT_EQ(json_size(size_of_json, "80.5", &size), SIZE_WRONG);
	ASSERT_EQ(json_size(size_of_json, "\"80\"", &size), SIZE_WRONG);
	ASSERT_EQ(json_size(size_of_json, "null", &size), SIZE_WRONG);
	ASSERT_EQ(json_size(size_of_json, "0", &size), SIZE_WRONG);
	ASSERT_EQ(json_size(size_of_json, "1e300", &size), SIZE_GIVEN);
	ASSERT_EQ(size, 1000);
	ASSERT_EQ(json_size(size_of_loose_json, "80.5", &size), SIZE_GIVEN);
	ASSERT_EQ(size, 80);
	ASSERT_EQ(json_size(size_of_loose_json, "-1", &size), SIZE_WRONG);
	ASSERT_EQ(size_of_loose_json(NULL, &size), SIZE_WRONG);
}

TESTS(RUN(a_pty_takes_any_number_and_brings_it_into_its_bounds),
      RUN(a_connect_takes_positive_whole_numbers_only), RUN(json_has_a_strict_reading_and_a_loose_one))

#include "routes/js_number.h"

#include "unit.h"

#include <math.h>

static double number(const char *text)
{
	return js_number(text, strlen(text));
}

TEST(numbers_are_read_as_javascript_reads_them)
{
	static const struct {
		const char *text;
		double value;
	} cases[] = {
		{"80", 80},
		{" 80 ", 80},
		{"\t80\n", 80},
		{"", 0},
		{"   ", 0},
		{"0x50", 80},
		{"0X5a", 90},
		{"0o17", 15},
		{"0b101", 5},
		{"1e2", 100},
		{"1.5E+1", 15},
		{".5", 0.5},
		{"5.", 5},
		{"-3", -3},
		{"+7", 7},
		{"007", 7},
		{"Infinity", INFINITY},
		{"-Infinity", -INFINITY},
		{"1e999", INFINITY},
		{"\u00a080\ufeff", 80},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (number(cases[i].text) != cases[i].value)
			fail_msg("'%s' is %g", cases[i].text, number(cases[i].text));
}

TEST(what_javascript_does_not_read_is_no_number)
{
	static const char *const wrong[] = {"abc", "8 0",      "80px",  "0x",    "0xg", "-0x10", "1e",  "e5",
					    ".",   "+",        "-",     "--1",   "1,5", "1_000", "inf", "nan",
					    "NaN", "infinity", "0x1p3", "1.2.3", "0b2", "80;",   "\xff"};

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		if (!isnan(number(wrong[i]))) fail_msg("'%s' is %g", wrong[i], number(wrong[i]));
	ASSERT_TRUE(isnan(js_number("8\0", 2)));
}

TEST(a_range_takes_whole_numbers_only)
{
	long value = 7;

	ASSERT_TRUE(js_number_within("8e3", 3, 1, 65535, &value));
	ASSERT_EQ(value, 8000);
	ASSERT_FALSE(js_number_within("1.5", 3, 1, 65535, &value));
	ASSERT_FALSE(js_number_within("0", 1, 1, 65535, &value));
	ASSERT_FALSE(js_number_within("65536", 5, 1, 65535, &value));
	ASSERT_FALSE(js_number_within("x", 1, 1, 65535, &value));
	ASSERT_EQ(value, 8000);
}

TESTS(RUN(numbers_are_read_as_javascript_reads_them), RUN(what_javascript_does_not_read_is_no_number),
      RUN(a_range_takes_whole_numbers_only))

#include "routes/range.h"

#include "unit.h"

static enum range_verdict verdict;
static uint64_t first, len;

static void parse(const char *header, uint64_t size)
{
	first = len = 12345;
	verdict = range_parse(header, size, &first, &len);
}

TEST(a_range_is_the_part_it_names)
{
	parse("bytes=0-4", 10);
	ASSERT_EQ(verdict, RANGE_PART);
	ASSERT_EQ(first, 0);
	ASSERT_EQ(len, 5);
	parse("bytes=9-9", 10);
	ASSERT_EQ(verdict, RANGE_PART);
	ASSERT_EQ(first, 9);
	ASSERT_EQ(len, 1);
	parse("Bytes=3-", 10);
	ASSERT_EQ(verdict, RANGE_PART);
	ASSERT_EQ(first, 3);
	ASSERT_EQ(len, 7);
	parse("bytes=-4", 10);
	ASSERT_EQ(verdict, RANGE_PART);
	ASSERT_EQ(first, 6);
	ASSERT_EQ(len, 4);
}

TEST(what_reaches_beyond_the_end_is_cut_to_it)
{
	parse("bytes=5-100", 10);
	ASSERT_EQ(verdict, RANGE_PART);
	ASSERT_EQ(len, 5);
	parse("bytes=-100", 10);
	ASSERT_EQ(verdict, RANGE_PART);
	ASSERT_EQ(first, 0);
	ASSERT_EQ(len, 10);
	parse("bytes=5-99999999999999999999999999", 10);
	ASSERT_EQ(verdict, RANGE_PART);
	ASSERT_EQ(len, 5);
}

TEST(a_range_behind_the_end_cannot_be_had)
{
	static const char *const headers[] = {"bytes=10-", "bytes=10-20", "bytes=-0",
					      "bytes=99999999999999999999999-"};

	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
		parse(headers[i], 10);
		ASSERT_EQ(verdict, RANGE_UNSATISFIABLE);
	}
	parse("bytes=0-", 0);
	ASSERT_EQ(verdict, RANGE_UNSATISFIABLE);
	parse("bytes=-5", 0);
	ASSERT_EQ(verdict, RANGE_UNSATISFIABLE);
}

TEST(what_is_no_single_range_means_the_whole_file)
{
	static const char *const headers[] = {NULL,         "",           "bytes=",    "bytes=-",
					      "bytes=a-b",  "bytes=4-2",  "lines=0-1", "bytes=0-1,3-4",
					      "bytes= 0-1", "bytes=0-1 ", "bytes=--1", "bytes=0x1-2",
					      "bytes=+1-2", "bytes",      "bytes=1"};

	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
		parse(headers[i], 10);
		ASSERT_EQ(verdict, RANGE_WHOLE);
		ASSERT_EQ(first, 12345);
	}
}

TESTS(RUN(a_range_is_the_part_it_names), RUN(what_reaches_beyond_the_end_is_cut_to_it),
      RUN(a_range_behind_the_end_cannot_be_had), RUN(what_is_no_single_range_means_the_whole_file))

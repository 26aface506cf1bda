#include "wire/greeting.h"

#include <errno.h>

#include "unit.h"

#define SPEAKS(first, last) ((struct speaker){.oldest = (first), .newest = (last)})

/* Both sides compute alone, and must come to the same. */
static int agree(struct speaker a, struct speaker b)
{
	int r = speakers_agree(a, b);

	ASSERT_EQ(speakers_agree(b, a), r);
	return r;
}

TEST(two_of_one_build_speak_its_newest_version)
{
	ASSERT_EQ(agree(SPEAKS(1, 1), SPEAKS(1, 1)), 1);
	ASSERT_EQ(agree(SPEAKS(2, 7), SPEAKS(2, 7)), 7);
}

TEST(the_smaller_of_the_two_newest_counts)
{
	ASSERT_EQ(agree(SPEAKS(1, 3), SPEAKS(1, 9)), 3);
	ASSERT_EQ(agree(SPEAKS(3, 9), SPEAKS(1, 3)), 3);
}

TEST(ranges_that_do_not_meet_have_no_version)
{
	ASSERT_EQ(agree(SPEAKS(1, 3), SPEAKS(4, 9)), -EPROTONOSUPPORT);
	ASSERT_EQ(agree(SPEAKS(1, 1), SPEAKS(2, 2)), -EPROTONOSUPPORT);
}

TEST(a_range_that_is_none_is_refused)
{
	ASSERT_EQ(agree(SPEAKS(0, 0), SPEAKS(0, 5)), -EPROTONOSUPPORT);
	ASSERT_EQ(agree(SPEAKS(5, 3), SPEAKS(1, 9)), -EPROTONOSUPPORT);
	ASSERT_EQ(agree(SPEAKS(UINT16_MAX, UINT16_MAX), SPEAKS(1, 1)), -EPROTONOSUPPORT);
}

TEST(a_disagreement_is_a_sentence)
{
	struct msg_hello hello = {.version = 9, .oldest = 7, .build = wire_text_of("2.0")};
	char text[120];

	ASSERT_EQ(wire_agree(&hello), -EPROTONOSUPPORT);
	wire_disagreement(&hello, text, sizeof text);
	assert_non_null(strstr(text, "build 2.0 and speaks versions 7 to 9"));
}

TESTS(RUN(two_of_one_build_speak_its_newest_version), RUN(the_smaller_of_the_two_newest_counts),
      RUN(ranges_that_do_not_meet_have_no_version), RUN(a_range_that_is_none_is_refused),
      RUN(a_disagreement_is_a_sentence))

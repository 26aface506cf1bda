#include "base/utf8.h"

#include "unit.h"

#define UNFINISHED(text) utf8_unfinished(text, sizeof(text) - 1)
#define VALID(text)      utf8_valid(text, sizeof(text) - 1)

TEST(a_character_that_is_cut_is_held_back)
{
	ASSERT_EQ(UNFINISHED(""), 0);
	ASSERT_EQ(UNFINISHED("abc"), 0);
	ASSERT_EQ(UNFINISHED("\xc3\xa4"), 0);
	ASSERT_EQ(UNFINISHED("ab\xc3"), 1);
	ASSERT_EQ(UNFINISHED("\xe2\x82"), 2);
	ASSERT_EQ(UNFINISHED("\xf0\x9f\x98"), 3);
	ASSERT_EQ(UNFINISHED("x\xf0\x9f"), 2);
	ASSERT_EQ(UNFINISHED("\xf0\x9f\x98\x80"), 0);
}

TEST(bytes_that_can_never_be_a_character_are_not_held_back)
{
	ASSERT_EQ(UNFINISHED("\x80"), 0);
	ASSERT_EQ(UNFINISHED("\xff"), 0);
	ASSERT_EQ(UNFINISHED("\xc0"), 0);         /* only overlong forms begin so */
	ASSERT_EQ(UNFINISHED("\xe0\x80"), 0);     /* overlong */
	ASSERT_EQ(UNFINISHED("\xed\xa0"), 0);     /* a surrogate */
	ASSERT_EQ(UNFINISHED("\xf4\x90\x80"), 0); /* above U+10FFFF */
	ASSERT_EQ(UNFINISHED("\xe2\x28"), 0);
}

TEST(every_cut_of_a_text_holds_back_just_the_cut_character)
{
	static const char text[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z";
	static const unsigned held[] = {0, 0, 1, 0, 1, 2, 0, 1, 2, 3, 0, 0};

	for (size_t len = 0; len < sizeof text; len++)
		ASSERT_EQ(utf8_unfinished(text, len), held[len]);
}

TEST(well_formed_is_what_the_rfc_says)
{
	ASSERT_TRUE(VALID(""));
	ASSERT_TRUE(VALID("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"));
	ASSERT_FALSE(VALID("\xc3"));
	ASSERT_FALSE(VALID("\xc0\x80"));
	ASSERT_FALSE(VALID("\xed\xa0\x80"));
	ASSERT_FALSE(VALID("\xf4\x90\x80\x80"));
	ASSERT_FALSE(VALID("\x80"));
}

TESTS(RUN(a_character_that_is_cut_is_held_back), RUN(bytes_that_can_never_be_a_character_are_not_held_back),
      RUN(every_cut_of_a_text_holds_back_just_the_cut_character), RUN(well_formed_is_what_the_rfc_says))

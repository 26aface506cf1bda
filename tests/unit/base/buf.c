#include "base/buf.h"

#include "unit.h"

TEST(buf_refuses_past_its_cap)
{
	auto_buf struct buf b = buf_with_cap(4);

	ASSERT_OK(buf_add(&b, "four", 4));
	ASSERT_EQ(buf_add(&b, "!", 1), -E2BIG);
	ASSERT_EQ(b.len, 4); /* a refusal leaves what was there */
	ASSERT_MEM(b.data, "four", 4);
}

TEST(buf_takes_from_the_front_and_reuses_the_room)
{
	auto_buf struct buf b = buf_with_cap(1000);

	for (int round = 0; round < 1000; round++) {
		ASSERT_OK(buf_addf(&b, "round %d;", round));
		if (round % 3 == 2) buf_take(&b, b.len - 4);
	}
	ASSERT_TRUE(b.room <= 2048);
	ASSERT_STR(buf_text(&b) + b.len - 4, "999;");
}

TEST(buf_clear_keeps_and_reset_returns_the_memory)
{
	auto_buf struct buf b = buf_with_cap(100);

	ASSERT_OK(buf_add_text(&b, "text"));
	buf_clear(&b);
	ASSERT_EQ(b.len, 0);
	ASSERT_TRUE(b.room > 0);
	buf_reset(&b);
	ASSERT_EQ(b.room, 0);
	ASSERT_STR(buf_text(&b), "");
}

TESTS(RUN(buf_refuses_past_its_cap), RUN(buf_takes_from_the_front_and_reuses_the_room),
      RUN(buf_clear_keeps_and_reset_returns_the_memory))

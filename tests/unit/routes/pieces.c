#include "routes/pieces.h"

#include "unit.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/utf8.h"

struct seen {
	struct buf all;
	size_t count, longest;
	bool split; /* a piece ended inside a character */
};

static void on_piece_seen(void *ctx, const void *bytes, size_t len)
{
	struct seen *s = ctx;

	ASSERT_OK(buf_add(&s->all, bytes, len));
	s->count++;
	s->longest = MAX(s->longest, len);
	if (!utf8_valid(bytes, len)) s->split = true;
}

static const char text[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z\xf0\x9f\x98\x80";

TEST(no_piece_ends_inside_a_character_however_the_text_arrives)
{
	for (size_t step = 1; step < sizeof text; step++) {
		struct seen seen = {.all = buf_with_cap(1 << 20)};
		struct pieces p = {0};

		for (size_t at = 0; at < sizeof text - 1; at += step)
			pieces_add(&p, text + at, MIN(step, sizeof text - 1 - at), on_piece_seen, &seen);
		pieces_end(&p, on_piece_seen, &seen);
		ASSERT_FALSE(seen.split);
		ASSERT_EQ(seen.all.len, sizeof text - 1);
		ASSERT_MEM(seen.all.data, text, sizeof text - 1);
		buf_done(&seen.all);
	}
}

TEST(long_text_is_cut_between_characters)
{
	struct seen seen = {.all = buf_with_cap(1 << 20)};
	struct pieces p = {0};
	auto_free char *euros = mem_new(300000);

	for (size_t i = 0; i < 100000; i++)
		memcpy(euros + 3 * i, "\xe2\x82\xac", 3);
	pieces_add(&p, euros, 100001, on_piece_seen, &seen);
	pieces_add(&p, euros + 100001, 199999, on_piece_seen, &seen);
	pieces_end(&p, on_piece_seen, &seen);
	ASSERT_FALSE(seen.split);
	ASSERT_TRUE(seen.longest <= PIECE_MAX);
	ASSERT_EQ(seen.all.len, 300000);
	ASSERT_MEM(seen.all.data, euros, 300000);
	buf_done(&seen.all);
}

TEST(bytes_that_are_no_text_pass_unchanged)
{
	auto_free unsigned char *noise = mem_new(200000);

	srandom(1);
	for (size_t i = 0; i < 200000; i++)
		noise[i] = (unsigned char)random();
	/* A begun character over and over: the worst case for who holds something back. */
	memset(noise + 50000, 0xe2, 70000);
	for (size_t i = 130000; i < 180000; i += 2)
		memcpy(noise + i, "\xe2\x82", 2);
	for (size_t step = 1; step < 100000; step = step * 3 + 1) {
		struct seen seen = {.all = buf_with_cap(1 << 20)};
		struct pieces p = {0};

		for (size_t at = 0; at < 200000; at += step)
			pieces_add(&p, noise + at, MIN(step, 200000 - at), on_piece_seen, &seen);
		pieces_end(&p, on_piece_seen, &seen);
		ASSERT_EQ(seen.all.len, 200000);
		ASSERT_MEM(seen.all.data, noise, 200000);
		buf_done(&seen.all);
	}
}

TEST(an_unfinished_character_is_held_until_the_end)
{
	struct seen seen = {.all = buf_with_cap(64)};
	struct pieces p = {0};

	pieces_add(&p, "x\xe2\x82", 3, on_piece_seen, &seen);
	ASSERT_EQ(seen.all.len, 1);
	pieces_add(&p, "", 0, on_piece_seen, &seen);
	ASSERT_EQ(seen.all.len, 1);
	pieces_end(&p, on_piece_seen, &seen);
	ASSERT_EQ(seen.all.len, 3);
	pieces_end(&p, on_piece_seen, &seen);
	ASSERT_EQ(seen.all.len, 3);
	buf_done(&seen.all);
}

TESTS(RUN(no_piece_ends_inside_a_character_however_the_text_arrives),
      RUN(long_text_is_cut_between_characters), RUN(bytes_that_are_no_text_pass_unchanged),
      RUN(an_unfinished_character_is_held_until_the_end))

#include "routes/cursor.h"

#include "unit.h"

#include <stdio.h>

#define UUID "3a18a0f3-b17f-4d9e-9178-85093eeebd5b"

static int decode(const char *text, uint64_t *seq, char store[CURSOR_STORE_MAX + 1])
{
	return cursor_decode(text, strlen(text), store, seq);
}

TEST(a_cursor_comes_back_as_it_was)
{
	static const uint64_t seqs[] = {0, 1, 9, 10, 255, 1ull << 40, UINT64_MAX};
	static const char *const ids[] = {UUID, "a", "session-x", ""};
	char store[CURSOR_STORE_MAX + 1], text[CURSOR_MAX], back[CURSOR_STORE_MAX + 1];

	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
		for (size_t k = 0; k < sizeof seqs / sizeof *seqs; k++) {
			uint64_t seq = 77;

			cursor_store(ids[i], (uint32_t)(i * 1000 + k), store);
			cursor_encode(store, seqs[k], text);
			ASSERT_EQ(strspn(text,
					 "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
				  strlen(text));
			ASSERT_OK(decode(text, &seq, back));
			ASSERT_TRUE(seq == seqs[k]);
			ASSERT_STR(back, store);
		}
	}
}

TEST(its_form_is_that_of_the_contract)
{
	char text[CURSOR_MAX];

	cursor_encode("ab", 7, text);
	ASSERT_STR(text, "djEuWVdJLjc"); /* base64url("v1." + base64url("ab") + ".7") */
}

TEST(logs_of_the_same_name_are_not_the_same_log)
{
	char one[CURSOR_STORE_MAX + 1], other[CURSOR_STORE_MAX + 1];

	cursor_store("build", 7, one);
	cursor_store("build", 8, other);
	ASSERT_TRUE(strcmp(one, other) != 0);
	cursor_store(UUID, 7, other);
	ASSERT_TRUE(strcmp(one, other) != 0);
}

TEST(the_longest_store_fits)
{
	char id[400], store[CURSOR_STORE_MAX + 1], text[CURSOR_MAX], back[CURSOR_STORE_MAX + 1];
	uint64_t seq;

	memset(id, 'x', sizeof id - 1);
	id[sizeof id - 1] = '\0';
	cursor_store(id, UINT32_MAX, store);
	ASSERT_EQ(strlen(store), CURSOR_STORE_MAX);
	cursor_encode(store, UINT64_MAX, text);
	ASSERT_TRUE(strlen(text) < CURSOR_MAX);
	ASSERT_OK(decode(text, &seq, back));
	ASSERT_STR(back, store);
}

TEST(what_was_never_made_is_refused)
{
	static const char *const wrong[] = {
		"",
		"zzz",
		"djEuWVdJLjc=",                         /* padded */
		"djEuWVdJLjd",                          /* spare bits: another spelling of the same bytes */
		"djEuWVdJLjA3",                         /* v1.YWI.07 */
		"djEuWVdJLg",                           /* v1.YWI. */
		"djEuWVdJ",                             /* v1.YWI */
		"djIuWVdJLjc",                          /* v2.YWI.7 */
		"djEuWVdJLjcg",                         /* a blank at its end */
		"djEuWVdJLi03",                         /* v1.YWI.-7 */
		"djEuWUIuNw",                           /* v1.YB.7: spare bits inside */
		"djEuLi43",                             /* v1...7 */
		"djEuWVdJLjE4NDQ2NzQ0MDczNzA5NTUxNjE2", /* 2^64 */
		"djEuQUEuNw",                           /* a NUL as store */
		"djEuWVdJLjc\n",
		"djEuWVdJ Ljc",
		"djEuWVdJLj+/",
	};
	char store[CURSOR_STORE_MAX + 1], text[CURSOR_MAX], longer[2 * CURSOR_MAX];
	uint64_t seq = 5;

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		if (decode(wrong[i], &seq, store) != -EINVAL) fail_msg("'%s' was taken", wrong[i]);
	memset(longer, 'A', sizeof longer);
	ASSERT_EQ(cursor_decode(longer, sizeof longer, store, &seq), -EINVAL);
	/* Every cut and every changed character of a good one. */
	cursor_encode("7." UUID, 12, text);
	for (size_t i = 0; i < strlen(text); i++) {
		char changed[CURSOR_MAX];

		if (cursor_decode(text, i, store, &seq) == 0) ASSERT_TRUE(seq == 1);
		memcpy(changed, text, sizeof changed);
		changed[i] = changed[i] == 'A' ? 'B' : 'A';
		if (decode(changed, &seq, store) == 0)
			ASSERT_TRUE(strcmp(store, "7." UUID) != 0 || seq != 12);
	}
}

TESTS(RUN(a_cursor_comes_back_as_it_was), RUN(its_form_is_that_of_the_contract),
      RUN(logs_of_the_same_name_are_not_the_same_log), RUN(the_longest_store_fits),
      RUN(what_was_never_made_is_refused))

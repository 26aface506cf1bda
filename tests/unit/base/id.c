#include "base/id.h"

#include "unit.h"

static bool sandbox(const char *text)
{
	return id_is_sandbox(text, strlen(text));
}

static bool name(const char *text)
{
	return id_is_name(text, strlen(text));
}

TEST(sandbox_ids_are_base32_in_lower_case)
{
	char longest[SANDBOX_ID_MAX + 2];

	memset(longest, 'a', sizeof longest);
	ASSERT_TRUE(sandbox("demo"));
	ASSERT_TRUE(sandbox("a2b7"));
	ASSERT_TRUE(id_is_sandbox(longest, SANDBOX_ID_MAX));
	ASSERT_FALSE(id_is_sandbox(longest, SANDBOX_ID_MAX + 1));
	ASSERT_FALSE(sandbox(""));
	ASSERT_FALSE(sandbox("Demo"));
	ASSERT_FALSE(sandbox("a1"));
	ASSERT_FALSE(sandbox("a8"));
	ASSERT_FALSE(sandbox("foo;rm"));
	ASSERT_FALSE(sandbox("my-sandbox"));
	ASSERT_FALSE(id_is_sandbox("a\0b", 3));
}

TEST(names_have_no_way_up)
{
	ASSERT_TRUE(name("session-1.x_Y"));
	ASSERT_TRUE(name("."));
	ASSERT_FALSE(name(".."));
	ASSERT_FALSE(name("a..b"));
	ASSERT_FALSE(name("a/b"));
	ASSERT_FALSE(name(""));
}

TEST(made_ids_are_valid_and_never_the_same)
{
	char ids[512][SANDBOX_ID_MADE + 1], uuid[UUID_LEN + 1];

	for (size_t i = 0; i < 512; i++) {
		id_make_sandbox(ids[i]);
		ASSERT_EQ(strlen(ids[i]), SANDBOX_ID_MADE);
		ASSERT_TRUE(sandbox(ids[i]));
		for (size_t j = 0; j < i; j++)
			ASSERT_TRUE(strcmp(ids[i], ids[j]) != 0);
	}
	id_make_uuid(uuid);
	ASSERT_EQ(strlen(uuid), UUID_LEN);
	ASSERT_EQ(uuid[14], '4');
	ASSERT_TRUE(strchr("89ab", uuid[19]) != NULL);
}

TESTS(RUN(sandbox_ids_are_base32_in_lower_case), RUN(names_have_no_way_up),
      RUN(made_ids_are_valid_and_never_the_same))

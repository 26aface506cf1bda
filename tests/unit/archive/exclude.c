#include "archive/exclude.h"

#include "unit.h"

static const char *cleaned(const char *entry)
{
	static char text[64];

	strcpy(text, entry);
	return exclude_clean(text);
}

static bool matches(const char *pattern, const char *path)
{
	char text[64];
	char *entry = strcpy(text, pattern);

	return exclude_matches(&entry, 1, path);
}

TEST(an_entry_is_cleaned_to_a_path_below_the_root)
{
	ASSERT_STR(cleaned("a/b"), "a/b");
	ASSERT_STR(cleaned("./a"), "a");
	ASSERT_STR(cleaned("/a/b//"), "a/b");
	ASSERT_STR(cleaned("/././/./.git/"), ".git");
	ASSERT_STR(cleaned(".a"), ".a");
	ASSERT_STR(cleaned("..."), "...");
}

TEST(an_entry_that_names_the_root_is_ignored)
{
	assert_null(cleaned(""));
	assert_null(cleaned("."));
	assert_null(cleaned("./"));
	assert_null(cleaned("/"));
	assert_null(cleaned("//./."));
}

TEST(a_match_takes_what_is_below_but_no_longer_name)
{
	ASSERT_TRUE(matches(".git", ".git"));
	ASSERT_TRUE(matches(".git", ".git/config"));
	ASSERT_FALSE(matches(".git", ".gitignore"));
	ASSERT_FALSE(matches("a/b", "ab"));
	ASSERT_FALSE(matches("b", "a/b"));
}

TEST(wildcards_match_slashes_and_leading_dots)
{
	ASSERT_TRUE(matches("*.pyc", "d/e/x.pyc"));
	ASSERT_TRUE(matches("*", ".hidden"));
	ASSERT_TRUE(matches("[a-c]?", "bx"));
	ASSERT_FALSE(matches("\\*", "x"));
	ASSERT_TRUE(matches("\\*", "*"));
}

TESTS(RUN(an_entry_is_cleaned_to_a_path_below_the_root), RUN(an_entry_that_names_the_root_is_ignored),
      RUN(a_match_takes_what_is_below_but_no_longer_name), RUN(wildcards_match_slashes_and_leading_dots))

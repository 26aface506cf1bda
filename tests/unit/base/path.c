#include "base/path.h"

#include "unit.h"

static const char *resolved(const char *text)
{
	static char out[PATH_LIMIT];

	return path_resolve("/workspace", text, strlen(text), out) == 0 ? out : "refused";
}

TEST(paths_resolve_by_text_alone)
{
	ASSERT_STR(resolved(""), "/workspace");
	ASSERT_STR(resolved("a"), "/workspace/a");
	ASSERT_STR(resolved("./a//b/."), "/workspace/a/b");
	ASSERT_STR(resolved("/workspace/../etc"), "/etc");
	ASSERT_STR(resolved("/workspace/a/../../workspace/b"), "/workspace/b");
	ASSERT_STR(resolved("../.."), "/");
	ASSERT_STR(resolved("/../../x/"), "/x");
	ASSERT_STR(resolved("/..a/...b"), "/..a/...b");
}

TEST(a_path_with_a_nul_or_without_an_end_is_refused)
{
	char out[PATH_LIMIT], longest[PATH_LIMIT + 8];

	ASSERT_EQ(path_resolve("/", "a\0b", 3, out), -EINVAL);
	memset(longest, 'x', sizeof longest);
	ASSERT_OK(path_resolve("/", longest, PATH_LIMIT - 2, out));
	ASSERT_EQ(strlen(out), PATH_LIMIT - 1);
	ASSERT_EQ(path_resolve("/", longest, PATH_LIMIT - 1, out), -ENAMETOOLONG);
}

TEST(within_ends_at_a_separator)
{
	ASSERT_TRUE(path_is_within("/workspace", "/workspace"));
	ASSERT_TRUE(path_is_within("/workspace/a", "/workspace"));
	ASSERT_FALSE(path_is_within("/workspacex", "/workspace"));
	ASSERT_FALSE(path_is_within("/", "/workspace"));
	ASSERT_FALSE(path_is_within("/work", "/workspace"));
}

TESTS(RUN(paths_resolve_by_text_alone), RUN(a_path_with_a_nul_or_without_an_end_is_refused),
      RUN(within_ends_at_a_separator))

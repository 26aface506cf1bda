#include "base/err.h"

#include "unit.h"

TEST(each_caller_says_what_it_was_doing)
{
	struct err e = ERR_NONE;

	ASSERT_EQ(err_set(&e, -ENOENT, "open '%s'", "/x"), -ENOENT);
	ASSERT_STR(e.text, "open '/x': No such file or directory");
	ASSERT_EQ(err_add(&e, "read the record of %s", "demo"), -ENOENT);
	ASSERT_STR(e.text, "read the record of demo: open '/x': No such file or directory");
	ASSERT_EQ(err_say(&e, -EINVAL, "no"), -EINVAL);
	ASSERT_STR(e.text, "no");
}

TEST(nobody_has_to_listen)
{
	ASSERT_EQ(err_set(NULL, -EIO, "x"), -EIO);
	ASSERT_EQ(err_say(NULL, -EIO, "x"), -EIO);
}

TEST(a_long_reason_is_cut_and_stays_text)
{
	struct err e = ERR_NONE;

	for (int i = 0; i < 100; i++)
		(void)err_set(&e, -EIO, "%0*d", 10 * i, i);
	ASSERT_EQ(strlen(e.text), sizeof e.text - 1);
	(void)err_add(&e, "in front");
	ASSERT_MEM(e.text, "in front: 000", 13);
}

TESTS(RUN(each_caller_says_what_it_was_doing), RUN(nobody_has_to_listen),
      RUN(a_long_reason_is_cut_and_stays_text))

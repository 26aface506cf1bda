#include "routes/excludes.h"

#include "base/mem.h"
#include "unit.h"

/* The entries joined by "|", or the status of the fault in digits. */
static const char *parse(const char *query, bool strict)
{
	static char text[256];
	struct excludes_fault fault;
	struct excludes e;

	text[0] = '\0';
	if (!excludes_parse(query, strict, &e, &fault)) return fault.status == 400 ? "400" : "502";
	for (uint32_t i = 0; i < e.count; i++) {
		strcat(text, i ? "|" : "");
		strcat(text, e.items[i]);
	}
	excludes_done(&e);
	return text;
}

TEST(entries_are_split_and_cleaned)
{
	ASSERT_STR(parse(NULL, false), "");
	ASSERT_STR(parse("excludes=", false), "");
	ASSERT_STR(parse("excludes=a,b/c", false), "a|b/c");
	ASSERT_STR(parse("x=1&excludes=,,a%2Cb,", false), "a|b");
	ASSERT_STR(parse("excludes=./a,/b,.//./c/,d//", false), "a|b|c|d");
	ASSERT_STR(parse("excludes=.,./,/,./.", false), "");
	ASSERT_STR(parse("excludes=.git,*.log,a+b", false), ".git|*.log|a b");
}

TEST(what_climbs_is_refused)
{
	ASSERT_STR(parse("excludes=..", false), "400");
	ASSERT_STR(parse("excludes=a,b/../c", false), "400");
	ASSERT_STR(parse("excludes=a..b", true), "400");
	ASSERT_STR(parse("excludes=%2e.", false), "400");
	ASSERT_STR(parse("excludes=a%00b", false), "400");
}

TEST(next_refuses_what_it_could_not_leave_out)
{
	ASSERT_STR(parse("excludes=/a", true), "502");
	ASSERT_STR(parse("excludes=.", true), "502");
	ASSERT_STR(parse("excludes=a,,b", true), "a|b");
}

TESTS(RUN(entries_are_split_and_cleaned), RUN(what_climbs_is_refused),
      RUN(next_refuses_what_it_could_not_leave_out))

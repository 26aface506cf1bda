#include "unit.h"

#include "cli/args.h"

#include "base/mem.h"

struct target {
	const char *cwd;
	struct args_texts env;
	uint64_t timeout_ms;
	bool keep;
};

static const struct args_option options[] = {
	{"cwd", 'C', "DIR", "", ARGS_TEXT, offsetof(struct target, cwd)},
	{"env", 'e', "NAME=VALUE", "", ARGS_TEXTS, offsetof(struct target, env)},
	{"timeout", 0, "TIME", "", ARGS_DURATION, offsetof(struct target, timeout_ms)},
	{"keep", 'k', NULL, "", ARGS_SWITCH, offsetof(struct target, keep)},
};

static const struct args_syntax run = {
	.command = "run",
	.operands = "SANDBOX COMMAND",
	.summary = "",
	.options = options,
	.option_count = ARRAY_LEN(options),
	.least = 1,
	.most = -1,
	.operands_end_options = true,
};

#define PARSE(syntax, target, ...) \
	({ \
		static char *argv_[] = {"run", __VA_ARGS__, NULL}; \
		args_parse(syntax, ARRAY_LEN(argv_) - 1, argv_, target); \
	})

TEST(args_fill_the_fields_of_their_table)
{
	struct target t = {0};

	ASSERT_EQ(PARSE(&run, &t, "-C", "/a", "--env=A=1", "-e", "B=2", "--timeout", "3s", "-k", "box"), 9);
	ASSERT_STR(t.cwd, "/a");
	ASSERT_EQ(t.env.count, 2);
	ASSERT_STR(t.env.items[1], "B=2");
	ASSERT_EQ(t.timeout_ms, 3000);
	ASSERT_TRUE(t.keep);
	free(t.env.items);
}

TEST(args_leave_a_commands_own_options_alone)
{
	struct target t = {0};

	ASSERT_EQ(PARSE(&run, &t, "box", "ls", "-k", "--cwd", "x"), 1);
	ASSERT_FALSE(t.keep);
	ASSERT_TRUE(t.cwd == NULL);
}

TEST(args_take_options_behind_operands_elsewhere)
{
	struct args_syntax rm = run;
	struct target t = {0};

	rm.operands_end_options = false;
	ASSERT_EQ(PARSE(&rm, &t, "box", "-k", "other"), 2);
	ASSERT_TRUE(t.keep);
}

TEST(args_know_durations)
{
	static const struct {
		const char *text;
		uint64_t ms;
	} good[] = {{"0", 0}, {"5", 5000}, {"250ms", 250}, {"30s", 30000}, {"2m", 120000}, {"1h", 3600000}};
	static const char *const bad[] = {
		"", "s", "-1s", " 1", "1 s", "1d", "1.5s", "99999999999999999999", "18446744073709551615h"};
	uint64_t ms;

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		ASSERT_TRUE(args_duration(good[i].text, &ms));
		ASSERT_EQ(ms, good[i].ms);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ASSERT_FALSE(args_duration(bad[i], &ms));
}

TESTS(RUN(args_fill_the_fields_of_their_table), RUN(args_leave_a_commands_own_options_alone),
      RUN(args_take_options_behind_operands_elsewhere), RUN(args_know_durations))

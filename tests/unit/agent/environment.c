#include "agent/environment.h"

#include "base/err.h"
#include "base/mem.h"
#include "unit.h"
#include "wire/message.h"

static uint8_t room[256 << 10];

static int build(uint32_t uid, const char *const *vars, size_t count, struct environment *ret)
{
	struct msg_open_exec sent = {.cwd = {.at = ""}, .env = {.items = vars, .count = (uint32_t)count}},
			     got;
	struct packet p = {.bytes = room, .room = sizeof room};
	struct frame_reader reader;
	struct frame f;

	ASSERT_OK(msg_open_exec_add(&p, 1, &sent));
	reader = frame_reader_of(p.bytes, p.len);
	ASSERT_EQ(frame_reader_next(&reader, &f), 1);
	ASSERT_OK(msg_open_exec_parse(&f, &got));
	return environment_build(uid, "/workspace/d", &got.env, ret, NULL);
}

TEST(the_base_depends_on_the_user_and_the_directory)
{
	struct environment env;

	ASSERT_OK(build(1000, NULL, 0, &env));
	ASSERT_EQ(env.count, 8);
	ASSERT_STR(environment_get(&env, "HOME"), "/home/sandbox");
	ASSERT_STR(environment_get(&env, "USER"), "sandbox");
	ASSERT_STR(environment_get(&env, "PWD"), "/workspace/d");
	ASSERT_STR(environment_get(&env, "LANG"), "C.UTF-8");
	ASSERT_TRUE(environment_get(&env, "TERM") == NULL);
	environment_done(&env);
	ASSERT_OK(build(0, NULL, 0, &env));
	ASSERT_STR(environment_get(&env, "HOME"), "/root");
	ASSERT_STR(environment_get(&env, "LOGNAME"), "root");
	environment_done(&env);
	ASSERT_OK(build(1234, NULL, 0, &env));
	ASSERT_STR(environment_get(&env, "HOME"), "/");
	ASSERT_STR(environment_get(&env, "USER"), "1234");
	environment_done(&env);
}

TEST(a_request_replaces_adds_and_its_last_word_counts)
{
	static const char *const vars[] = {"HOME=/x", "A=1", "A=2", "EMPTY=", "B==", "HOM=short"};
	struct environment env;

	ASSERT_OK(build(1000, vars, ARRAY_LEN(vars), &env));
	ASSERT_STR(environment_get(&env, "HOME"), "/x");
	ASSERT_STR(environment_get(&env, "A"), "2");
	ASSERT_STR(environment_get(&env, "EMPTY"), "");
	ASSERT_STR(environment_get(&env, "B"), "=");
	ASSERT_STR(environment_get(&env, "HOM"), "short");
	ASSERT_EQ(env.count, 8 + 4);
	for (size_t i = 0; i < ENVIRONMENT_SPARE + 1; i++)
		ASSERT_TRUE(env.vars[env.count + i] == NULL);
	environment_done(&env);
}

TEST(what_is_no_variable_is_dropped)
{
	static const char *const vars[] = {"", "=", "=x", "NOTHING", "OK=1"};
	struct environment env;

	ASSERT_OK(build(1000, vars, ARRAY_LEN(vars), &env));
	ASSERT_EQ(env.count, 9);
	environment_done(&env);
}

TEST(far_too_many_variables_are_refused)
{
	static const char *vars[ENVIRONMENT_MAX + 1];
	struct environment env;

	for (size_t i = 0; i < ARRAY_LEN(vars); i++)
		vars[i] = "A=1";
	ASSERT_EQ(build(1000, vars, ARRAY_LEN(vars), &env), -E2BIG);
	ASSERT_OK(build(1000, vars, ARRAY_LEN(vars) - 1, &env));
	environment_done(&env);
}

TESTS(RUN(the_base_depends_on_the_user_and_the_directory),
      RUN(a_request_replaces_adds_and_its_last_word_counts), RUN(what_is_no_variable_is_dropped),
      RUN(far_too_many_variables_are_refused))

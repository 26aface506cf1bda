#include "routes/exec_request.h"

#include "unit.h"

#include <stdio.h>

static struct exec_request r;
static struct exec_fault fault;

static bool parse(const char *body, const char *session)
{
	exec_request_done(&r);
	fault = (struct exec_fault){0};
	return exec_request_parse(body, strlen(body), session, &r, &fault);
}

#define REFUSED(body, session, code, text) \
	do { \
		ASSERT_FALSE(parse(body, session)); \
		ASSERT_EQ(fault.status, code); \
		ASSERT_STR(fault.message, text); \
	} while (0)

TEST(a_body_that_is_no_json_is_refused)
{
	static const char *const bodies[] = {
		"", "{", "argv", "{\"argv\":[\"a\"]} x", "{\"argv\":[\"\xff\"]}", "{'argv':[]}"};

	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
		REFUSED(bodies[i], NULL, 400, "Invalid JSON body");
}

TEST(what_is_no_object_has_no_argv)
{
	static const char *const bodies[] = {"null",
					     "7",
					     "\"x\"",
					     "true",
					     "[]",
					     "{}",
					     "{\"argv\":[]}",
					     "{\"argv\":\"ls\"}",
					     "{\"argv\":{\"0\":\"ls\"}}"};

	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
		REFUSED(bodies[i], NULL, 400, "argv must be a non-empty array");
}

TEST(the_checks_come_in_the_contracts_order)
{
	REFUSED("{\"cwd\":\"/etc\"}", "/", 400, "argv must be a non-empty array");
	REFUSED("{\"argv\":[{}],\"cwd\":\"/etc\"}", "a..b", 400, "Invalid session ID format");
	REFUSED("{\"argv\":[{}],\"cwd\":\"/etc\"}", "fine", 403,
		"cwd must resolve to a location within /workspace");
	REFUSED("{\"argv\":[\"a\",{}]}", "", 400, "argv items must be strings");
	REFUSED("{\"argv\":[[]]}", NULL, 400, "argv items must be strings");
}

TEST(elements_that_are_no_strings_are_their_json_text)
{
	ASSERT_TRUE(parse("{\"argv\":[\"echo\",1,-2.5,1e3,0.1,1e300,true,false,null]}", NULL));
	static const char *const words[] = {"echo",   "1",    "-2.5",  "1000", "0.1",
					    "1e+300", "true", "false", "null"};

	ASSERT_EQ(r.argc, 9);
	for (unsigned i = 0; i < 9; i++)
		ASSERT_STR(r.argv[i], words[i]);

	/* As JavaScript writes them: it has an exponent from 1e21 on, and 17 digits at most. */
	static const char *const large[][2] = {{"99999999999999999999", "100000000000000000000"},
					       {"-99999999999999999999", "-100000000000000000000"},
					       {"590295810358705651712", "590295810358705700000"},
					       {"123456789012345678e0", "123456789012345680"},
					       {"0.0", "0"},
					       {"-5.0", "-5"},
					       {"1e15", "1000000000000000"},
					       {"1e21", "1e+21"},
					       {"9007199254740993", "9007199254740993"}};
	for (unsigned i = 0; i < sizeof large / sizeof *large; i++) {
		char body[80];

		snprintf(body, sizeof body, "{\"argv\":[%s]}", large[i][0]);
		ASSERT_TRUE(parse(body, NULL));
		ASSERT_STR(r.argv[0], large[i][1]);
	}
}

TEST(cwd_is_resolved_below_the_workspace)
{
	ASSERT_TRUE(parse("{\"argv\":[\"a\"]}", NULL));
	ASSERT_STR(r.cwd, "/workspace");
	ASSERT_TRUE(parse("{\"argv\":[\"a\"],\"cwd\":\"\"}", NULL));
	ASSERT_STR(r.cwd, "/workspace");
	ASSERT_TRUE(parse("{\"argv\":[\"a\"],\"cwd\":\"a/../b\"}", NULL));
	ASSERT_STR(r.cwd, "/workspace/b");
	ASSERT_TRUE(parse("{\"argv\":[\"a\"],\"cwd\":7}", NULL));
	ASSERT_STR(r.cwd, "/workspace");
	REFUSED("{\"argv\":[\"a\"],\"cwd\":\"/workspacex\"}", NULL, 403,
		"cwd must resolve to a location within /workspace");
	REFUSED("{\"argv\":[\"a\"],\"cwd\":\"..\"}", NULL, 403,
		"cwd must resolve to a location within /workspace");
}

TEST(a_timeout_is_a_number_above_zero)
{
	ASSERT_TRUE(parse("{\"argv\":[\"a\"],\"timeout_ms\":500}", NULL));
	ASSERT_EQ(r.timeout_ms, 500);
	ASSERT_STR(r.timeout_text, "500");
	ASSERT_TRUE(parse("{\"argv\":[\"a\"],\"timeout_ms\":0.5}", NULL));
	ASSERT_EQ(r.timeout_ms, 1);
	ASSERT_STR(r.timeout_text, "0.5");
	/* No whole number is too large for a body: JavaScript writes 2 to the 64th out. */
	static const char *const none[] = {
		"0", "-1", "\"5\"", "null", "[5]", "1e300", "18446744073709552000", "-18446744073709552000"};
	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		char body[80];

		snprintf(body, sizeof body, "{\"argv\":[\"a\"],\"timeout_ms\":%s}", none[i]);
		ASSERT_TRUE(parse(body, NULL));
		ASSERT_EQ(r.timeout_ms, 0);
	}
}

TEST(env_and_stdin_are_taken)
{
	ASSERT_TRUE(
		parse("{\"argv\":[\"a\"],\"env\":{\"A\":\"1=2\",\"B\":7,\"C\":\"\"},\"stdin\":\"x\\u0000y\"}",
		      NULL));
	ASSERT_EQ(r.env_count, 2);
	ASSERT_STR(r.env[0], "A=1=2");
	ASSERT_STR(r.env[1], "C=");
	ASSERT_EQ(r.input_len, 3);
	ASSERT_MEM(r.input, "x\0y", 3);
	ASSERT_TRUE(parse("{\"argv\":[\"a\"],\"env\":[],\"stdin\":7}", NULL));
	ASSERT_EQ(r.env_count, 0);
	ASSERT_TRUE(r.input == NULL);
	ASSERT_TRUE(parse("{\"argv\":[\"a\"],\"stdin\":\"\"}", NULL));
	ASSERT_TRUE(r.input != NULL);
}

TEST(a_nul_where_the_kernel_takes_none_is_refused)
{
	REFUSED("{\"argv\":[\"a\\u0000b\"]}", NULL, 400, "argv items must not contain NUL characters");
	REFUSED("{\"argv\":[\"a\"],\"cwd\":\"a\\u0000b\"}", NULL, 400,
		"cwd must not contain a NUL character");
	REFUSED("{\"argv\":[\"a\"],\"env\":{\"A\":\"\\u0000\"}}", NULL, 400,
		"env must not contain NUL characters");
	REFUSED("{\"argv\":[\"a\"],\"env\":{\"A=B\":\"1\"}}", NULL, 400,
		"env names must be non-empty and without '='");
	REFUSED("{\"argv\":[\"a\"],\"env\":{\"\":\"1\"}}", NULL, 400,
		"env names must be non-empty and without '='");
}

TEST(the_last_of_equal_keys_counts)
{
	ASSERT_TRUE(parse("{\"argv\":[\"a\"],\"argv\":[\"b\"],\"zz\":1}", NULL));
	ASSERT_STR(r.argv[0], "b");
	ASSERT_TRUE(parse("\xef\xbb\xbf{\"argv\":[\"a\"]}", NULL));
	exec_request_done(&r);
}

TESTS(RUN(a_body_that_is_no_json_is_refused), RUN(what_is_no_object_has_no_argv),
      RUN(the_checks_come_in_the_contracts_order), RUN(elements_that_are_no_strings_are_their_json_text),
      RUN(cwd_is_resolved_below_the_workspace), RUN(a_timeout_is_a_number_above_zero),
      RUN(env_and_stdin_are_taken), RUN(a_nul_where_the_kernel_takes_none_is_refused),
      RUN(the_last_of_equal_keys_counts))

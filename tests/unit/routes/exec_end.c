#include "routes/exec_end.h"

#include "unit.h"

#include <stdlib.h>

#include <jansson.h>

static json_t *json;
static const char *event;

static void format(struct operation_end end)
{
	char *text = exec_end_json(&end, &event);

	json_decref(json);
	for (const char *c = text; *c; c++)
		ASSERT_TRUE(*c >= 0x20 && *c < 0x7f);
	json = json_loads(text, 0, NULL);
	assert_non_null(json);
	free(text);
}

#define WORD(key)   json_string_value(json_object_get(json, key))
#define NUMBER(key) json_integer_value(json_object_get(json, key))

TEST(an_exit_tells_the_code_and_what_was_used)
{
	format((struct operation_end){.reason = END_EXITED,
				      .code = 3,
				      .text = "",
				      .duration_ms = 12,
				      .cpu_ms = 5,
				      .max_memory = 4096,
				      .bytes = 7,
				      .left_running = 2});
	ASSERT_STR(event, "exit");
	ASSERT_EQ(NUMBER("exit_code"), 3);
	ASSERT_STR(WORD("reason"), "exited");
	ASSERT_EQ(NUMBER("duration_ms"), 12);
	ASSERT_EQ(NUMBER("cpu_ms"), 5);
	ASSERT_EQ(NUMBER("max_memory"), 4096);
	ASSERT_EQ(NUMBER("bytes"), 7);
	ASSERT_EQ(NUMBER("left_running"), 2);
	assert_null(json_object_get(json, "signal"));
	assert_null(json_object_get(json, "detail"));
}

TEST(a_signal_has_its_name)
{
	format((struct operation_end){.reason = END_SIGNAL, .code = 137, .signo = 9, .text = ""});
	ASSERT_EQ(NUMBER("exit_code"), 137);
	ASSERT_STR(WORD("signal"), "SIGKILL");
	ASSERT_STR(WORD("reason"), "signal");
	format((struct operation_end){.reason = END_SIGNAL, .code = 162, .signo = 34, .text = ""});
	ASSERT_STR(WORD("signal"), "SIG34");
}

TEST(a_timeout_is_124_whatever_ended_the_program)
{
	format((struct operation_end){.reason = END_TIMEOUT, .code = 143, .signo = 15, .text = ""});
	ASSERT_STR(event, "exit");
	ASSERT_EQ(NUMBER("exit_code"), 124);
	ASSERT_STR(WORD("signal"), "SIGTERM");
	ASSERT_STR(WORD("reason"), "timeout");
}

TEST(what_was_lost_is_a_transport_error_and_says_how)
{
	format((struct operation_end){.reason = END_DELETED, .text = "the sandbox was deleted"});
	ASSERT_STR(event, "error");
	ASSERT_STR(WORD("code"), "exec_transport_error");
	ASSERT_STR(WORD("error"), "exec failed: the sandbox was deleted");
	ASSERT_STR(WORD("reason"), "sandbox_deleted");
	format((struct operation_end){.reason = END_LOST, .text = "its agent is gone"});
	ASSERT_STR(WORD("reason"), "lost");
}

TEST(what_never_ran_is_an_exec_error)
{
	format((struct operation_end){
		.reason = END_FAILED, .error = ENOENT, .text = "working directory '/workspace/\xc3\xa4\n'"});
	ASSERT_STR(event, "error");
	ASSERT_STR(WORD("code"), "exec_error");
	assert_non_null(strstr(WORD("error"), "/workspace/\xc3\xa4\n"));
}

TEST(the_words_of_an_agent_are_bounded_and_may_be_any_bytes)
{
	static char words[60001];

	memset(words, 0xfe, sizeof words - 1);
	format((struct operation_end){.reason = END_OOM, .code = 137, .signo = 9, .text = words});
	ASSERT_EQ(strlen(json_string_value(json_object_get(json_object_get(json, "detail"), "message"))),
		  1000);
	format((struct operation_end){.reason = END_FAILED, .text = words});
	ASSERT_TRUE(strlen(WORD("error")) < 1100);
	json_decref(json);
	json = NULL;
}

TESTS(RUN(an_exit_tells_the_code_and_what_was_used), RUN(a_signal_has_its_name),
      RUN(a_timeout_is_124_whatever_ended_the_program), RUN(what_was_lost_is_a_transport_error_and_says_how),
      RUN(what_never_ran_is_an_exec_error), RUN(the_words_of_an_agent_are_bounded_and_may_be_any_bytes))

#include "sandbox/registry.h"

#include "sandbox/keeper_peer.h"

#include "isolation/limits.h"

TEST(the_picture_is_complete_when_the_keeper_says_ready)
{
	const char *faults[] = {"no image"};

	begin(0);
	close(attach("abc"));
	ASSERT_FALSE(ready);
	PEER_SENDS(0, ready, .limit = 5, .faults = {.items = faults, .count = 1});
	run_until(&ready);
	ASSERT_EQ(sandboxes_limit(all), 5);
	ASSERT_STR(sandboxes_fault(all, 0), "no image");
	assert_null(sandboxes_fault(all, 1));
	end();
}

TEST(many_first_requests_make_one_sandbox)
{
	begin(0);
	for (int i = 0; i < 10; i++)
		assert_non_null(sandboxes_start(all, "abc", on_answer, NULL));
	ASSERT_EQ(sandboxes_state(all, "abc"), SANDBOX_MAKING);
	ASSERT_EQ(peer_saw(MSG_create), 1);
	ASSERT_EQ(answers, 0);
	int agent = attach("abc");
	ASSERT_EQ(answers, 10);
	assert_non_null(outcome.sandbox);
	ASSERT_TRUE(sandboxes_find(all, "abc") == outcome.sandbox);
	ASSERT_STR(sandbox_run(outcome.sandbox), "run-1");
	close(agent);
	end();
}

TEST(a_refusal_reaches_everybody_who_waits_and_the_next_may_ask_again)
{
	begin(0);
	assert_non_null(sandboxes_start(all, "abc", on_answer, NULL));
	assert_non_null(sandboxes_start(all, "abc", on_answer, NULL));
	PEER_SENDS(0, refused, .id = wire_text_of("abc"), .why = REFUSED_CAPACITY,
		   .text = wire_text_of("full"));
	settle();
	ASSERT_EQ(answers, 2);
	assert_null(outcome.sandbox);
	ASSERT_EQ(outcome.refused, REFUSED_CAPACITY);
	ASSERT_STR(outcome_text, "full");
	ASSERT_EQ(peer_saw(MSG_create), 1);
	assert_non_null(sandboxes_start(all, "abc", on_answer, NULL));
	ASSERT_EQ(peer_saw(MSG_create), 1);
	end();
}

TEST(who_gave_up_is_not_answered)
{
	begin(0);
	struct sandbox_wait *w = sandboxes_start(all, "abc", on_answer, NULL);
	assert_null(sandbox_wait_cancel(w));
	int agent = attach("abc");
	ASSERT_EQ(answers, 0);
	assert_non_null(sandboxes_find(all, "abc"));
	close(agent);
	end();
}

TEST(deletes_coalesce_and_are_answered_when_the_keeper_says_gone)
{
	begin(0);
	int agent = attach("abc");
	assert_non_null(sandboxes_remove(all, "abc", on_answer, NULL));
	assert_non_null(sandboxes_remove(all, "abc", on_answer, NULL));
	assert_null(sandboxes_find(all, "abc"));
	ASSERT_EQ(peer_saw(MSG_remove), 1);
	ASSERT_EQ(answers, 0);
	PEER_SENDS(0, gone, .id = wire_text_of("abc"), .why = GONE_REMOVED, .text = wire_text_of(""));
	settle();
	ASSERT_EQ(answers, 2);
	ASSERT_EQ(outcome.error, 0);
	ASSERT_EQ(sandboxes_state(all, "abc"), SANDBOX_ABSENT);
	close(agent);
	end();
}

TEST(an_id_that_is_on_its_way_out_is_made_anew_for_who_asks)
{
	begin(0);
	int agent = attach("abc");
	assert_non_null(sandboxes_remove(all, "abc", on_answer, NULL));
	assert_non_null(sandboxes_start(all, "abc", on_answer, NULL));
	ASSERT_EQ(peer_saw(MSG_create), 0);
	PEER_SENDS(0, gone, .id = wire_text_of("abc"), .why = GONE_REMOVED, .text = wire_text_of(""));
	settle();
	ASSERT_EQ(answers, 1);
	ASSERT_EQ(peer_saw(MSG_create), 1);
	close(agent);
	agent = attach("abc");
	ASSERT_EQ(answers, 2);
	assert_non_null(outcome.sandbox);
	close(agent);
	end();
}

TEST(a_delete_fails_those_who_wait_for_the_start)
{
	begin(0);
	assert_non_null(sandboxes_start(all, "abc", on_answer, NULL));
	assert_non_null(sandboxes_remove(all, "abc", on_answer, NULL));
	ASSERT_EQ(answers, 1);
	ASSERT_STR(outcome_text, "the sandbox was deleted");
	/* The answer to the create crossed the remove. */
	close(attach("abc"));
	assert_null(sandboxes_find(all, "abc"));
	PEER_SENDS(0, gone, .id = wire_text_of("abc"), .why = GONE_REMOVED, .text = wire_text_of(""));
	settle();
	ASSERT_EQ(answers, 2);
	end();
}

TEST(a_sandbox_that_died_is_absent_and_may_be_made_again)
{
	begin(0);
	int agent = attach("abc");
	PEER_SENDS(0, gone, .id = wire_text_of("abc"), .why = GONE_DIED, .text = wire_text_of("killed"));
	settle();
	assert_null(sandboxes_find(all, "abc"));
	assert_non_null(sandboxes_start(all, "abc", on_answer, NULL));
	ASSERT_EQ(peer_saw(MSG_create), 1);
	close(agent);
	end();
}

TEST(a_broken_link_makes_it_absent_until_the_keeper_gives_a_new_one)
{
	begin(0);
	close(attach("abc"));
	settle();
	ASSERT_EQ(sandboxes_state(all, "abc"), SANDBOX_ABSENT);
	assert_non_null(sandboxes_start(all, "abc", on_answer, NULL));
	/* The keeper noticed the death only now: this is not the answer. */
	PEER_SENDS(0, gone, .id = wire_text_of("abc"), .why = GONE_DIED, .text = wire_text_of("killed"));
	settle();
	ASSERT_EQ(answers, 0);
	int agent = attach("abc");
	ASSERT_EQ(answers, 1);
	assert_non_null(outcome.sandbox);
	close(agent);
	end();
}

TEST(without_a_keeper_everybody_is_told_and_nothing_can_be_asked)
{
	begin(0);
	assert_non_null(sandboxes_start(all, "abc", on_answer, NULL));
	assert_non_null(sandboxes_remove(all, "xyz", on_answer, NULL));
	peer_close();
	run_until(&keeper_lost);
	ASSERT_EQ(answers, 2);
	ASSERT_EQ(outcome.error, -EPIPE);
	assert_null(sandboxes_start(all, "abc", on_answer, NULL));
	assert_null(sandboxes_remove(all, "abc", on_answer, NULL));
	assert_non_null(sandboxes_fault(all, 0));
	end();
}

TEST(an_inspection_brings_the_keepers_numbers)
{
	begin(0);
	assert_null(sandboxes_inspect(all, "abc", on_answer, NULL));
	int agent = attach("abc");
	assert_non_null(sandboxes_inspect(all, "abc", on_answer, NULL));
	ASSERT_EQ(peer_saw(MSG_inspect), 1);
	PEER_SENDS(0, usage, .id = wire_text_of("abc"), .known = 1, .pids = 9);
	run_until(&answered);
	assert_non_null(outcome.usage);
	close(agent);
	end();
}

TEST(issued_ids_are_remembered_until_deleted_or_too_many)
{
	char first[SANDBOX_ID_MADE + 1], id[SANDBOX_ID_MADE + 1];

	begin(0);
	sandboxes_issue(all, "lite", &(struct limits){.pids = 64}, first);
	ASSERT_TRUE(sandboxes_issued(all, first));
	ASSERT_FALSE(sandboxes_issued(all, "abc"));
	assert_non_null(sandboxes_start(all, first, on_answer, NULL));
	struct msg_create m;
	ASSERT_EQ(peer_saw(MSG_create), 1);
	ASSERT_OK(msg_create_parse(&last, &m));
	ASSERT_STR(m.instance.at, "lite");
	for (int i = 0; i < 10; i++)
		sandboxes_issue(all, "", &(struct limits){0}, id);
	ASSERT_FALSE(sandboxes_issued(all, first));
	ASSERT_TRUE(sandboxes_issued(all, id));
	assert_non_null(sandboxes_remove(all, id, on_answer, NULL));
	ASSERT_FALSE(sandboxes_issued(all, id));
	end();
}

TESTS(RUN(the_picture_is_complete_when_the_keeper_says_ready), RUN(many_first_requests_make_one_sandbox),
      RUN(a_refusal_reaches_everybody_who_waits_and_the_next_may_ask_again), RUN(who_gave_up_is_not_answered),
      RUN(deletes_coalesce_and_are_answered_when_the_keeper_says_gone),
      RUN(an_id_that_is_on_its_way_out_is_made_anew_for_who_asks),
      RUN(a_delete_fails_those_who_wait_for_the_start),
      RUN(a_sandbox_that_died_is_absent_and_may_be_made_again),
      RUN(a_broken_link_makes_it_absent_until_the_keeper_gives_a_new_one),
      RUN(without_a_keeper_everybody_is_told_and_nothing_can_be_asked),
      RUN(an_inspection_brings_the_keepers_numbers), RUN(issued_ids_are_remembered_until_deleted_or_too_many))

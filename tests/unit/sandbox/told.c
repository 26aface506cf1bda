/* What the keeper tells of sandboxes that sleep, that are late, that are lost, and of ids that were issued.
 */
#include "sandbox/told.h"

#include "sandbox/keeper_peer.h"

#include "isolation/limits.h"

static void tell_asleep(const char *id, bool late)
{
	PEER_SENDS(0, asleep, .id = wire_text_of(id), .run = wire_text_of("run-1"),
		   .instance = wire_text_of("lite"), .created_ms = 1000, .late = late);
	settle();
}

static void tell_died(const char *id)
{
	PEER_SENDS(0, gone, .id = wire_text_of(id), .why = GONE_DIED, .text = wire_text_of("its agent died"));
	settle();
}

/* Runs the loop until the keeper has been sent a message of TYPE. */
static void await(uint16_t type)
{
	while (!peer_saw(type)) {
	}
}

TEST(an_idle_one_is_put_to_sleep_and_who_comes_meanwhile_waits_and_wakes_it)
{
	begin(20);
	struct sandbox *used = sandboxes_use(all, "abc");
	int agent = attach("abc");
	ASSERT_EQ(sandboxes_state(all, "abc"), SANDBOX_LIVE); /* and stays, however slow we are */
	sandbox_unuse(used);
	await(MSG_sleep);
	ASSERT_EQ(sandboxes_state(all, "abc"), SANDBOX_FALLING_ASLEEP);
	assert_non_null(sandboxes_start(all, "abc", on_answer, NULL));
	ASSERT_EQ(peer_saw(MSG_create), 0);
	tell_asleep("abc", false);
	ASSERT_EQ(peer_saw(MSG_create), 1);
	ASSERT_EQ(sandboxes_state(all, "abc"), SANDBOX_MAKING);
	close(attach("abc"));
	ASSERT_EQ(answers, 1);
	assert_non_null(outcome.sandbox);
	close(agent);
	end();
}

TEST(who_uses_one_keeps_it_awake)
{
	begin(20);
	struct sandbox *used = sandboxes_use(all, "abc");
	int agent = attach("abc");

	for (int i = 0; i < 100; i++) {
		ASSERT_EQ(peer_saw(MSG_sleep), 0);
		(void)usleep(1000);
	}
	sandbox_unuse(used);
	await(MSG_sleep);
	close(agent);
	end();
}

TEST(one_that_could_not_be_woken_still_sleeps)
{
	begin(0);
	tell_asleep("abc", false);
	assert_non_null(sandboxes_sleeper(all, "abc"));
	ASSERT_EQ(sandboxes_count(all), 0);
	assert_non_null(sandboxes_start(all, "abc", on_answer, NULL));
	PEER_SENDS(0, refused, .id = wire_text_of("abc"), .why = REFUSED_CAPACITY,
		   .text = wire_text_of("full"));
	settle();
	ASSERT_EQ(answers, 1);
	ASSERT_EQ(outcome.refused, REFUSED_CAPACITY);
	ASSERT_EQ(sandboxes_state(all, "abc"), SANDBOX_ASLEEP);
	end();
}

TEST(a_late_one_is_waited_for_and_when_it_is_lost_nobody_gets_another)
{
	begin(0);
	tell_asleep("abc", true);
	tell_asleep("def", true);
	ASSERT_EQ(sandboxes_state(all, "abc"), SANDBOX_MAKING);
	assert_non_null(sandboxes_start(all, "abc", on_answer, NULL));
	close(attach("abc"));
	assert_non_null(outcome.sandbox);
	assert_non_null(sandboxes_start(all, "def", on_answer, NULL));
	tell_died("def");
	ASSERT_EQ(answers, 2);
	assert_null(outcome.sandbox);
	ASSERT_EQ(peer_saw(MSG_create), 0);
	ASSERT_STR(sandboxes_lost(all, "def"), "its agent died");
	end();
}

TEST(what_was_lost_is_known_until_the_id_is_used_again_or_removed)
{
	begin(0);
	tell_died("abc");
	tell_died("def");
	ASSERT_STR(sandboxes_lost(all, "abc"), "its agent died");
	close(attach("abc"));
	assert_null(sandboxes_lost(all, "abc"));
	assert_non_null(sandboxes_remove(all, "def", on_answer, NULL));
	assert_null(sandboxes_lost(all, "def"));
	assert_null(sandboxes_lost(all, "ghi"));
	end();
}

TEST(issued_ids_are_told_to_the_keeper_and_come_back_from_it)
{
	struct limits own = {.pids = 9};
	char id[SANDBOX_ID_MADE + 1];

	begin(0);
	sandboxes_issue(all, "lite", &own, id);
	ASSERT_EQ(peer_saw(MSG_issue), 1);
	struct msg_issue m;
	ASSERT_OK(msg_issue_parse(&last, &m));
	ASSERT_STR(m.id.at, id);
	ASSERT_STR(m.instance.at, "lite");
	ASSERT_EQ(m.pids, 9);
	PEER_SENDS(0, issued, .id = wire_text_of("abc"), .instance = wire_text_of("basic"),
		   .memory_bytes = 5);
	settle();
	ASSERT_TRUE(sandboxes_issued(all, "abc"));
	assert_non_null(sandboxes_start(all, "abc", on_answer, NULL));
	ASSERT_EQ(peer_saw(MSG_create), 1);
	struct msg_create create;
	ASSERT_OK(msg_create_parse(&last, &create));
	ASSERT_STR(create.instance.at, "basic");
	ASSERT_EQ(create.memory_bytes, 5);
	end();
}

TESTS(RUN(an_idle_one_is_put_to_sleep_and_who_comes_meanwhile_waits_and_wakes_it),
      RUN(who_uses_one_keeps_it_awake), RUN(one_that_could_not_be_woken_still_sleeps),
      RUN(a_late_one_is_waited_for_and_when_it_is_lost_nobody_gets_another),
      RUN(what_was_lost_is_known_until_the_id_is_used_again_or_removed),
      RUN(issued_ids_are_told_to_the_keeper_and_come_back_from_it))

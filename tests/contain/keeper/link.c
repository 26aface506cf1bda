/* link.c - what the keeper promises to the front over the control link, on a real host. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "rig.h"
#include "unit.h"

#define MANY 50

static void name_of(unsigned n, char id[16])
{
	(void)snprintf(id, 16, "many%c%c", 'a' + n / 26, 'a' + n % 26);
}

TEST(fifty_at_once_are_all_made_and_all_go)
{
	struct rig r;
	char id[16];

	rig_init(&r);
	ASSERT_EQ(rig_start(&r), 0);
	for (unsigned i = 0; i < MANY; i++) {
		name_of(i, id);
		rig_create(&r, id, i % 2 ? "" : "lite");
	}
	for (unsigned i = 0; i < MANY; i++) {
		struct said s = rig_expect(&r, MSG_attached, NULL);

		rig_greet_agent(s.fd);
		fd_close(s.fd);
	}
	for (unsigned i = 0; i < MANY; i++) {
		name_of(i, id);
		rig_remove(&r, id);
	}
	for (unsigned i = 0; i < MANY; i++)
		ASSERT_EQ(rig_expect(&r, MSG_gone, NULL).why, GONE_REMOVED);
	rig_done(&r);
}

TEST(an_id_of_128_characters_is_an_id_like_others)
{
	char id[129];
	struct rig r;

	memset(id, 'x', sizeof id - 1);
	id[128] = '\0';
	rig_init(&r);
	(void)rig_start(&r);
	rig_create(&r, id, "");
	fd_close(rig_expect(&r, MSG_attached, id).fd);
	rig_remove(&r, id);
	(void)rig_expect(&r, MSG_gone, id);
	rig_done(&r);
}

TEST(one_too_many_is_told_the_limit_and_fits_after_another_went)
{
	struct rig r;
	struct said s;

	rig_init(&r);
	(void)rig_start(&r, "--max-sandboxes", "2");
	rig_create(&r, "a", "");
	rig_create(&r, "b", "");
	fd_close(rig_expect(&r, MSG_attached, NULL).fd);
	fd_close(rig_expect(&r, MSG_attached, NULL).fd);
	rig_create(&r, "c", "");
	s = rig_expect(&r, MSG_refused, "c");
	ASSERT_EQ(s.why, REFUSED_CAPACITY);
	ASSERT_TRUE(strstr(s.text, "instance limit reached (2/2)"));
	rig_remove(&r, "a");
	(void)rig_expect(&r, MSG_gone, "a");
	rig_create(&r, "c", "");
	fd_close(rig_expect(&r, MSG_attached, "c").fd);
	rig_done(&r);
}

TEST(wishes_that_cannot_be_are_answered_and_cost_nothing)
{
	struct rig r;

	rig_init(&r);
	(void)rig_start(&r);
	rig_create(&r, "a", "gigantic");
	ASSERT_EQ(rig_expect(&r, MSG_refused, "a").why, REFUSED_INSTANCE);
	rig_remove(&r, "nobody");
	ASSERT_EQ(rig_expect(&r, MSG_gone, "nobody").why, GONE_REMOVED);
	rig_inspect(&r, "nobody");
	ASSERT_EQ(rig_expect(&r, MSG_usage, "nobody").why, 0);
	rig_create(&r, "a", "");
	fd_close(rig_expect(&r, MSG_attached, "a").fd);
	rig_inspect(&r, "a");
	ASSERT_EQ(rig_expect(&r, MSG_usage, "a").why, 1);
	rig_done(&r);
}

TEST(two_removals_are_one_and_who_asks_again_meanwhile_gets_a_new_one)
{
	char first[37];
	struct rig r;
	struct said s;

	rig_init(&r);
	(void)rig_start(&r);
	rig_create(&r, "a", "");
	s = rig_expect(&r, MSG_attached, "a");
	memcpy(first, s.run, sizeof first);
	fd_close(s.fd);
	rig_remove(&r, "a");
	rig_remove(&r, "a");
	rig_create(&r, "a", "");
	(void)rig_expect(&r, MSG_gone, "a");
	s = rig_hear(&r);
	/* Only a keeper that had ended the first removal before it read the second answers both. */
	if (s.type == MSG_gone) s = rig_hear(&r);
	ASSERT_EQ(s.type, MSG_attached);
	ASSERT_TRUE(strcmp(s.run, first) != 0);
	fd_close(s.fd);
	rig_done(&r);
}

TEST(one_that_is_removed_while_it_is_made_is_refused_and_gone)
{
	struct rig r;

	rig_init(&r);
	(void)rig_start(&r, "--parked", "0");
	rig_create(&r, "a", "");
	rig_remove(&r, "a");
	for (bool refused = false, gone = false; !refused || !gone;) {
		struct said s = rig_hear(&r);

		if (s.type == MSG_refused) refused = true;
		else if (s.type == MSG_gone) gone = true;
		else fail_msg("heard %s", message_name(s.type));
	}
	rig_create(&r, "a", "");
	fd_close(rig_expect(&r, MSG_attached, "a").fd);
	rig_done(&r);
}

TEST(an_agent_that_is_killed_is_gone_with_everything)
{
	struct rig r;
	struct said s;

	rig_init(&r);
	(void)rig_start(&r);
	rig_create(&r, "a", "");
	fd_close(rig_expect(&r, MSG_attached, "a").fd);
	ASSERT_OK(kill((pid_t)rig_record_number(&r, "a", "pid "), SIGKILL));
	s = rig_expect(&r, MSG_gone, "a");
	ASSERT_EQ(s.why, GONE_DIED);
	ASSERT_TRUE(strstr(s.text, "died"));
	rig_done(&r);
}

TEST(a_zygote_that_is_killed_is_replaced_and_nobody_notices)
{
	struct rig r;
	char id[16];

	rig_init(&r);
	(void)rig_start(&r);
	ASSERT_OK(kill(rig_child(rig_keeper(&r), "tombolo-zygote"), SIGKILL));
	for (unsigned i = 0; i < 10; i++) {
		name_of(i, id);
		rig_create(&r, id, "");
	}
	for (unsigned i = 0; i < 10; i++)
		fd_close(rig_expect(&r, MSG_attached, NULL).fd);
	rig_done(&r);
}

TEST(a_front_that_dies_is_replaced_and_the_next_is_told_of_all)
{
	char before[256] = "", after[256];
	struct rig r;
	struct said s;

	rig_init(&r);
	(void)rig_start(&r);
	rig_create(&r, "a", "");
	s = rig_expect(&r, MSG_attached, "a");
	(void)snprintf(before, sizeof before, "a %s\n", s.run);
	fd_close(s.fd);
	ASSERT_EQ(rig_meet_front(&r, after, sizeof after), 1);
	ASSERT_STR(after, before);
	rig_send_garbage(&r);
	ASSERT_EQ(rig_meet_front(&r, after, sizeof after), 1);
	ASSERT_STR(after, before);
	rig_done(&r);
}

TEST(a_keeper_that_is_killed_is_replaced_and_its_sandboxes_live_on)
{
	char before[256] = "", after[256];
	struct rig r;
	struct said s;
	pid_t agent;

	rig_init(&r);
	(void)rig_start(&r);
	rig_create(&r, "a", "");
	s = rig_expect(&r, MSG_attached, "a");
	(void)snprintf(before, sizeof before, "a %s\n", s.run);
	fd_close(s.fd);
	agent = (pid_t)rig_record_number(&r, "a", "pid ");
	for (int life = 0; life < 3; life++) {
		ASSERT_OK(kill(rig_keeper(&r), SIGKILL));
		ASSERT_EQ(rig_meet_front(&r, after, sizeof after), 1);
		ASSERT_STR(after, before);
	}
	ASSERT_EQ(rig_record_number(&r, "a", "pid "), agent);
	rig_create(&r, "b", "");
	fd_close(rig_expect(&r, MSG_attached, "b").fd);
	ASSERT_OK(kill(agent, SIGKILL));
	ASSERT_EQ(rig_expect(&r, MSG_gone, "a").why, GONE_DIED);
	rig_remove(&r, "b");
	(void)rig_expect(&r, MSG_gone, "b");
	rig_done(&r);
}

TEST(after_the_death_of_everything_the_next_start_takes_over_what_lives)
{
	char runs[1024] = "";
	struct rig r;
	pid_t dead;

	rig_init(&r);
	(void)rig_start(&r);
	rig_create(&r, "a", "");
	rig_create(&r, "b", "");
	fd_close(rig_expect(&r, MSG_attached, NULL).fd);
	fd_close(rig_expect(&r, MSG_attached, NULL).fd);
	dead = (pid_t)rig_record_number(&r, "b", "pid ");
	rig_kill_all(&r);
	ASSERT_OK(kill(dead, SIGKILL));
	rig_wait_gone(dead);
	ASSERT_EQ(rig_start_and_list(&r, runs, sizeof runs), 1);
	/* What is lost is said to be lost, before or after the front serves. */
	if (!strstr(runs, "gone b\n")) ASSERT_EQ(rig_expect(&r, MSG_gone, "b").why, GONE_DIED);
	rig_create(&r, "b", "");
	fd_close(rig_expect(&r, MSG_attached, "b").fd);
	rig_done(&r);
}

TEST(a_stop_that_keeps_sandboxes_leaves_them_for_the_next_start)
{
	struct rig r;

	rig_init(&r);
	(void)rig_start(&r, "--keep-sandboxes");
	rig_create(&r, "a", "");
	fd_close(rig_expect(&r, MSG_attached, "a").fd);
	ASSERT_EQ(rig_stop(&r), 0);
	ASSERT_EQ(rig_start(&r), 1);
	rig_done(&r);
}

TEST(a_second_server_on_the_same_directory_is_sent_away)
{
	static const char *const none[] = {NULL};
	char text[1024];
	struct rig r;

	rig_init(&r);
	(void)rig_start(&r);
	ASSERT_EQ(rig_run(&r, none, text, sizeof text), 1);
	if (!strstr(text, "another server (pid ")) fail_msg("it says: %s", text);
	rig_create(&r, "a", "");
	fd_close(rig_expect(&r, MSG_attached, "a").fd);
	rig_done(&r);
}

TEST(servers_side_by_side_share_no_ids)
{
	struct rig one, two;

	rig_init(&one);
	rig_init(&two);
	(void)rig_start(&one);
	(void)rig_start(&two);
	rig_create(&one, "a", "");
	rig_create(&two, "a", "");
	fd_close(rig_expect(&one, MSG_attached, "a").fd);
	fd_close(rig_expect(&two, MSG_attached, "a").fd);
	ASSERT_TRUE(rig_record_number(&one, "a", "base_id ") >> 24 !=
		    rig_record_number(&two, "a", "base_id ") >> 24);
	rig_done(&one);
	rig_create(&two, "b", "");
	fd_close(rig_expect(&two, MSG_attached, "b").fd);
	rig_done(&two);
}

TESTS(RUN(fifty_at_once_are_all_made_and_all_go), RUN(an_id_of_128_characters_is_an_id_like_others),
      RUN(one_too_many_is_told_the_limit_and_fits_after_another_went),
      RUN(wishes_that_cannot_be_are_answered_and_cost_nothing),
      RUN(two_removals_are_one_and_who_asks_again_meanwhile_gets_a_new_one),
      RUN(one_that_is_removed_while_it_is_made_is_refused_and_gone),
      RUN(an_agent_that_is_killed_is_gone_with_everything),
      RUN(a_zygote_that_is_killed_is_replaced_and_nobody_notices),
      RUN(a_front_that_dies_is_replaced_and_the_next_is_told_of_all),
      RUN(a_keeper_that_is_killed_is_replaced_and_its_sandboxes_live_on),
      RUN(after_the_death_of_everything_the_next_start_takes_over_what_lives),
      RUN(a_stop_that_keeps_sandboxes_leaves_them_for_the_next_start),
      RUN(a_second_server_on_the_same_directory_is_sent_away), RUN(servers_side_by_side_share_no_ids))

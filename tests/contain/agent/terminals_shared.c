/* Terminals that are shared, followed, left and found again; and private ones, which end with whoever opened
 * them. The real agent in a real sandbox. */
#include <stdio.h>
#include <unistd.h>

#include "rig.h"
#include "unit.h"

static bool stat_in_sandbox(const char *path)
{
	char full[128];

	(void)snprintf(full, sizeof full, "%s%s", rig_root(), path);
	return access(full, F_OK) == 0;
}

static bool got_64k(const struct run *r)
{
	return r->out_bytes >= 60 << 10;
}

TEST(an_attached_reader_that_does_not_read_stops_the_program)
{
	auto_run struct run r = {0};
	struct msg_open_terminal m =
		RIG_TERMINAL("bash", "-c", "head -c 3000000 /dev/zero; touch /workspace/done; read x");

	r.no_credit = true;
	m.window = 64 << 10;
	rig_start_terminal(&r, &m);
	rig_until(got_64k, &r);
	for (int i = 0; i < 10; i++) {
		auto_run struct run other = {0};
		struct msg_open_exec sleep = RIG_EXEC("sleep", "0.05");

		rig_run(&other, &sleep);
	}
	ASSERT_TRUE(r.out_bytes <= 64 << 10);
	ASSERT_FALSE(stat_in_sandbox("/workspace/done"));
	r.no_credit = false;
	rig_credit(&r, 64 << 10);
	rig_type(&r, "\n");
	rig_until(run_ended, &r);
	ASSERT_EQ(r.gaps, 0);
	ASSERT_TRUE(r.out_bytes >= 3000000);
	ASSERT_TRUE(stat_in_sandbox("/workspace/done"));
}

static bool fell_behind(const struct run *r)
{
	return r->gap_after_now;
}

/* Patience ends after a second: the program goes on, and the one who is stuck is known by its gap. */
TEST(a_follower_that_is_stuck_stops_the_program_for_a_moment_only)
{
	auto_run struct run start = {0}, r = {0};
	struct msg_open_terminal m = RIG_TERMINAL(
		"bash", "-c",
		"stty -echo; read x; head -c 3000000 /dev/zero; touch /workspace/went-on; read x");

	m.flags = TERMINAL_DETACHED;
	m.name = wire_text_of("patience");
	rig_start_terminal(&start, &m);
	rig_until(run_ended, &start);
	r.no_credit = true;
	rig_follow(&r, KIND_TERMINAL, "patience", FOLLOW_LIVE | FOLLOW_INPUT, 0);
	rig_until(run_is_now, &r);
	rig_type(&r, "\n");
	rig_until(fell_behind, &r);
	ASSERT_TRUE(r.out_bytes <= RIG_WINDOW);
	/* With credit it is waited for again, and gets the rest. */
	r.no_credit = false;
	rig_credit(&r, RIG_WINDOW);
	rig_type(&r, "\n");
	rig_until(run_ended, &r);
	ASSERT_TRUE(stat_in_sandbox("/workspace/went-on"));
	ASSERT_EQ(r.end.reason, END_EXITED);
}

TEST(a_follower_that_reads_sees_no_gap_however_much_comes)
{
	auto_run struct run start = {0}, r = {0};
	struct msg_open_terminal m =
		RIG_TERMINAL("bash", "-c", "stty -opost -echo; echo go; read x; head -c 20000000 /dev/zero");
	struct msg_open_follow follow = {.kind = KIND_TERMINAL,
					 .name = wire_text_of("steady"),
					 .flags = FOLLOW_LIVE | FOLLOW_INPUT,
					 .window = 64 << 10};

	m.flags = TERMINAL_DETACHED;
	m.name = wire_text_of("steady");
	rig_start_terminal(&start, &m);
	rig_until(run_ended, &start);
	rig_start_follow(&r, &follow);
	rig_until_output(&r, "go\n");
	rig_type(&r, "\n");
	rig_until(run_ended, &r);
	ASSERT_EQ(r.out_bytes, 20000003);
	ASSERT_EQ(r.gaps, 0);
}

TEST(a_named_terminal_is_shared_and_replayed)
{
	auto_run struct run a = {0}, b = {0}, c = {0};
	struct msg_open_terminal m = rig_terminal(NULL, 0);

	rig_start_shell(&a, "shared-1", TERMINAL_SHARED);
	ASSERT_STR(a.process_id, "shared-1");
	rig_type(&a, "echo fir\"\"st\n");
	/* With the prompt: readline reads the size and writes it back before it, and undoes a resize in
	 * between. */
	rig_until_output(&a, "first\r\n" RIG_PROMPT);
	m.name = wire_text_of("shared-1");
	m.flags = TERMINAL_SHARED;
	m.cols = 100;
	m.rows = 30;
	rig_start_terminal(&b, &m);
	rig_until(run_is_now, &b);
	ASSERT_EQ(b.about.pid, a.about.pid);
	ASSERT_TRUE(run_has(&b, "first\r\n"));
	rig_type(&b, "stty size\n");
	rig_until_output(&a, "30 100\r\n");
	rig_until_output(&b, "30 100\r\n" RIG_PROMPT);
	rig_reset(&a, false);
	rig_type(&b, "echo still he\"\"re\n");
	rig_until_output(&b, "still here\r\n" RIG_PROMPT);
	rig_follow(&c, KIND_TERMINAL, "shared-1", FOLLOW_LIVE | FOLLOW_INPUT, 0);
	rig_until(run_is_now, &c);
	ASSERT_EQ(c.out.len, b.out.len);
	rig_type(&c, "exit 3\n");
	rig_until(run_ended, &b);
	rig_until(run_ended, &c);
	ASSERT_EQ(b.end.code, 3);
	ASSERT_EQ(c.end.code, 3);
	ASSERT_EQ(b.end.seq, c.end.seq);
}

TEST(a_name_that_is_taken_is_refused_and_one_that_is_free_again_starts_anew)
{
	auto_run struct run a = {0}, b = {0}, c = {0}, list = {0};

	rig_start_shell(&a, "once", 0);
	struct msg_open_terminal m = rig_terminal(NULL, 0);
	m.name = wire_text_of("once");
	rig_start_terminal(&b, &m);
	rig_until(run_ended, &b);
	ASSERT_EQ(b.end.error, EEXIST);
	rig_end_shell(&a);
	rig_start_shell(&c, "once", TERMINAL_SHARED);
	ASSERT_TRUE(c.about.pid != a.about.pid);
	rig_list(&list, KIND_TERMINAL, "once");
	ASSERT_EQ(list.processes, 1);
	ASSERT_EQ(list.last_process.state, PROCESS_RUNNING);
	ASSERT_EQ(list.last_process.pid, c.about.pid);
	rig_end_shell(&c);
}

TEST(a_detached_terminal_is_followed_by_cursor)
{
	auto_run struct run start = {0}, a = {0}, b = {0}, c = {0}, d = {0};
	struct msg_open_terminal m =
		RIG_TERMINAL("bash", "-c", "stty -echo; for i in 1 2 3; do echo line $i; read x; done");

	m.flags = TERMINAL_DETACHED;
	rig_start_terminal(&start, &m);
	rig_until(run_ended, &start);
	ASSERT_TRUE(start.opened);
	ASSERT_EQ(start.end.reason, END_DONE);
	ASSERT_EQ(strlen(start.process_id), 36);
	rig_follow(&a, KIND_TERMINAL, start.process_id, FOLLOW_LIVE | FOLLOW_INPUT, 0);
	rig_until_output(&a, "line 1\r\n");
	rig_type(&a, "\n");
	rig_until_output(&a, "line 2\r\n");
	rig_follow(&b, KIND_TERMINAL, start.process_id, FOLLOW_LIVE | FOLLOW_INPUT | FOLLOW_SINCE,
		   a.last_seq);
	rig_until(run_is_now, &b);
	ASSERT_EQ(b.out.len, 0);
	rig_type(&b, "\n\n");
	rig_until(run_ended, &a);
	rig_until(run_ended, &b);
	ASSERT_STR(buf_text(&b.out), "line 3\r\n");
	ASSERT_EQ(a.end.reason, END_EXITED);
	/* The end has a cursor of its own; nothing is beyond it. */
	rig_follow(&c, KIND_TERMINAL, start.process_id, FOLLOW_LIVE | FOLLOW_SINCE, a.end.seq);
	rig_until(run_ended, &c);
	ASSERT_EQ(c.end.reason, END_EXITED);
	ASSERT_EQ(c.out.len, 0);
	rig_follow(&d, KIND_TERMINAL, start.process_id, FOLLOW_LIVE | FOLLOW_SINCE, a.end.seq + 1);
	rig_until(run_ended, &d);
	ASSERT_EQ(d.end.reason, END_FAILED);
	ASSERT_EQ(d.end.error, EINVAL);
}

TEST(what_was_overwritten_is_told_as_a_gap)
{
	auto_run struct run start = {0}, writer = {0}, all = {0}, since = {0};
	struct msg_open_terminal m =
		RIG_TERMINAL("bash", "-c", "stty -opost -echo; head -c 600000 /dev/zero; echo end; read x");

	m.flags = TERMINAL_DETACHED;
	m.name = wire_text_of("gap");
	rig_start_terminal(&start, &m);
	rig_until(run_ended, &start);
	rig_follow(&writer, KIND_TERMINAL, "gap", FOLLOW_LIVE | FOLLOW_INPUT, 0);
	rig_until_output(&writer, "end\n");
	rig_follow(&all, KIND_TERMINAL, "gap", 0, 0);
	rig_until(run_ended, &all);
	ASSERT_EQ(all.gaps, 1);
	ASSERT_EQ(all.gap_seq, all.first_seq);
	ASSERT_TRUE(all.out_bytes <= 256 << 10 && all.out_bytes > 240 << 10);
	ASSERT_EQ(all.end.reason, END_DONE);
	ASSERT_EQ(all.end.seq, writer.last_seq);
	rig_follow(&since, KIND_TERMINAL, "gap", FOLLOW_SINCE, 1);
	rig_until(run_ended, &since);
	ASSERT_EQ(since.gaps, 1);
	ASSERT_EQ(since.out_bytes, all.out_bytes);
	rig_type(&writer, "\n");
	rig_until(run_ended, &writer);
}

TEST(a_private_terminal_takes_all_with_it_when_its_channel_ends)
{
	auto_run struct run polite = {0}, stubborn = {0}, list = {0};

	rig_start_shell(&polite, "", TERMINAL_PRIVATE);
	rig_type(&polite, "sh -c 'echo rea\"\"dy; exec sleep 98761'\n");
	rig_until_output(&polite, "ready\r\n");
	rig_list(&list, KIND_TERMINAL, polite.process_id);
	ASSERT_EQ(list.processes, 1);
	rig_until_marked(true);
	rig_reset(&polite, false);
	rig_until_marked(false);
	rig_start_shell(&stubborn, "", TERMINAL_PRIVATE);
	rig_type(&stubborn,
		 "trap '' HUP; setsid sh -c 'trap \"\" HUP TERM; echo rea\"\"dy; sleep 98761; :'\n");
	rig_until_output(&stubborn, "ready\r\n");
	rig_until_marked(true);
	rig_reset(&stubborn, false);
	rig_until_marked(false);
}

TEST(a_private_terminal_is_forgotten_when_it_has_ended)
{
	auto_run struct run r = {0}, list = {0};

	rig_start_shell(&r, "", TERMINAL_PRIVATE);
	rig_end_shell(&r);
	ASSERT_EQ(r.end.reason, END_EXITED);
	rig_list(&list, KIND_TERMINAL, r.process_id);
	ASSERT_EQ(list.processes, 0);
}

TEST(finished_terminals_are_kept_up_to_twenty_five)
{
	auto_run struct run list = {0};

	for (int i = 0; i < 30; i++) {
		auto_run struct run r = {0};
		struct msg_open_terminal m = RIG_TERMINAL("true");

		rig_start_terminal(&r, &m);
		rig_until(run_ended, &r);
	}
	rig_list(&list, KIND_TERMINAL, "");
	ASSERT_EQ(list.processes, 25);
}

RIG_TESTS(RUN(an_attached_reader_that_does_not_read_stops_the_program),
	  RUN(a_follower_that_is_stuck_stops_the_program_for_a_moment_only),
	  RUN(a_follower_that_reads_sees_no_gap_however_much_comes),
	  RUN(a_named_terminal_is_shared_and_replayed),
	  RUN(a_name_that_is_taken_is_refused_and_one_that_is_free_again_starts_anew),
	  RUN(a_detached_terminal_is_followed_by_cursor), RUN(what_was_overwritten_is_told_as_a_gap),
	  RUN(a_private_terminal_takes_all_with_it_when_its_channel_ends),
	  RUN(a_private_terminal_is_forgotten_when_it_has_ended),
	  RUN(finished_terminals_are_kept_up_to_twenty_five))

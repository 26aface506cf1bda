/* Processes in the background and the logs of all: the real agent in a real sandbox. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "rig.h"
#include "unit.h"

/* Starts and waits for `opened` and its `end`; R is free for the next use but keeps the id. */
static void launch(struct run *r, struct msg_open_exec m)
{
	m.flags |= EXEC_DIRECT | EXEC_BACKGROUND;
	m.grace_ms = 1000;
	rig_run(r, &m);
}

static void launch_well(struct run *r, struct msg_open_exec m)
{
	launch(r, m);
	ASSERT_TRUE(r->opened);
	ASSERT_EQ(r->end.reason, END_DONE);
	ASSERT_TRUE(r->end.at_ms > 0);
}

static enum process_state state_of(const char *id)
{
	auto_run struct run list = {0};

	rig_list(&list, KIND_PROCESS, id);
	ASSERT_EQ(list.processes, 1);
	return (enum process_state)list.last_process.state;
}

static bool marked_are_gone(const char *marker)
{
	uint64_t until = clock_ms() + 20000;

	while (rig_count_processes(marker) && clock_ms() < until)
		rig_pump(10);
	return rig_count_processes(marker) == 0;
}

TEST(a_process_in_the_background_ends_and_its_log_tells_how)
{
	auto_run struct run start = {0}, log = {0};

	launch_well(&start, RIG_SH("echo out; echo err >&2; exit 7"));
	rig_follow(&log, KIND_PROCESS, start.process_id, FOLLOW_LIVE, 0);
	rig_until(run_ended, &log);
	ASSERT_STR(buf_text(&log.out), "out\n");
	ASSERT_STR(buf_text(&log.err), "err\n");
	ASSERT_EQ(log.first_seq, 1);
	ASSERT_EQ(log.end.reason, END_EXITED);
	ASSERT_EQ(log.end.code, 7);
	ASSERT_EQ(log.end.seq, 3);
	ASSERT_TRUE(log.end.at_ms >= start.end.at_ms);
	ASSERT_EQ(state_of(start.process_id), PROCESS_EXITED);
}

TEST(a_launch_that_fails_says_why)
{
	auto_run struct run missing = {0}, cwd = {0};
	struct msg_open_exec there = RIG_EXEC("true");

	launch(&missing, RIG_EXEC("nosuchprogram", "x"));
	ASSERT_EQ(missing.end.reason, END_FAILED);
	ASSERT_EQ(missing.end.error, ENOENT);
	ASSERT_STR(missing.end_text, "execute 'nosuchprogram': No such file or directory");
	there.cwd = wire_text_of("/etc/passwd");
	launch(&cwd, there);
	ASSERT_EQ(cwd.end.error, ENOTDIR);
}

TEST(it_runs_until_its_whole_group_is_gone)
{
	auto_run struct run start = {0}, log = {0}, kill = {0};

	launch_well(&start, RIG_SH("sleep 98762 >/dev/null 2>&1 & echo bye; exit 5"));
	rig_follow(&log, KIND_PROCESS, start.process_id, FOLLOW_LIVE, 0);
	rig_until_output(&log, "bye\n");
	/* The leader is gone by the time its parent reaps this one. */
	for (int i = 0; i < 5; i++) {
		auto_run struct run other = {0};
		struct msg_open_exec true_ = RIG_EXEC("true");

		rig_run(&other, &true_);
	}
	ASSERT_EQ(state_of(start.process_id), PROCESS_RUNNING);
	ASSERT_FALSE(log.ended);
	rig_kill(&kill, KIND_PROCESS, start.process_id, SIGTERM, SIGNAL_SEND);
	rig_until(run_ended, &log);
	ASSERT_EQ(log.end.code, 5);
	ASSERT_EQ(rig_count_processes("98762"), 0);
}

TEST(it_runs_until_its_pipes_are_drained)
{
	auto_run struct run make = {0}, start = {0}, log = {0}, release = {0};
	struct msg_open_exec fifo = RIG_EXEC("mkfifo", "/workspace/fifo"),
			     open = RIG_SH("echo go > /workspace/fifo");

	rig_run(&make, &fifo);
	ASSERT_EQ(make.end.code, 0);
	launch_well(&start, RIG_SH("setsid sh -c 'read x < /workspace/fifo; echo late $x' & exit 0"));
	rig_follow(&log, KIND_PROCESS, start.process_id, FOLLOW_LIVE, 0);
	rig_run(&release, &open);
	rig_until(run_ended, &log);
	ASSERT_STR(buf_text(&log.out), "late go\n");
	ASSERT_EQ(log.end.code, 0);
}

TEST(a_daemon_that_let_go_of_everything_is_not_waited_for_but_can_be_killed)
{
	auto_run struct run start = {0}, log = {0}, list = {0}, kill = {0};

	launch_well(&start, RIG_SH("setsid sleep 98762 </dev/null >/dev/null 2>&1 & echo bye"));
	rig_follow(&log, KIND_PROCESS, start.process_id, FOLLOW_LIVE, 0);
	rig_until(run_ended, &log);
	ASSERT_EQ(log.end.reason, END_EXITED);
	rig_list(&list, KIND_PROCESS, start.process_id);
	ASSERT_EQ(list.last_process.state, PROCESS_EXITED);
	ASSERT_EQ(list.last_process.live, 1);
	rig_kill(&kill, KIND_PROCESS, start.process_id, SIGKILL, SIGNAL_SEND);
	ASSERT_TRUE(marked_are_gone("98762"));
}

TEST(a_timeout_is_told_with_what_was_observed)
{
	auto_run struct run start = {0}, log = {0}, deaf = {0}, deaf_log = {0};
	struct msg_open_exec m = RIG_EXEC("sleep", "98762"),
			     m_deaf = RIG_SH("trap '' TERM; echo set; sleep 98762; sleep 98762");

	m.timeout_ms = 100;
	launch_well(&start, m);
	rig_follow(&log, KIND_PROCESS, start.process_id, FOLLOW_LIVE, 0);
	rig_until(run_ended, &log);
	ASSERT_EQ(log.end.reason, END_TIMEOUT);
	ASSERT_EQ(log.end.code, 143);
	ASSERT_EQ(log.end.signo, SIGTERM);
	ASSERT_TRUE(log.end.timed_out);
	/* Until the trap was set before the time was over. */
	for (m_deaf.timeout_ms = 250; !deaf_log.out_bytes; m_deaf.timeout_ms *= 2) {
		run_done(&deaf);
		run_done(&deaf_log);
		deaf = deaf_log = (struct run){0};
		launch_well(&deaf, m_deaf);
		rig_follow(&deaf_log, KIND_PROCESS, deaf.process_id, FOLLOW_LIVE, 0);
		rig_until(run_ended, &deaf_log);
	}
	ASSERT_EQ(deaf_log.end.signo, SIGKILL);
	ASSERT_TRUE(deaf_log.end.timed_out);
	ASSERT_EQ(rig_count_processes("98762"), 0);
}

TEST(any_signal_can_be_sent_by_number)
{
	static const int signals[] = {1, 2, 9, 10, 15, 34, 64};

	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		auto_run struct run start = {0}, log = {0}, kill = {0}, again = {0};

		launch_well(&start, RIG_EXEC("sleep", "98762"));
		rig_kill(&kill, KIND_PROCESS, start.process_id, signals[i], SIGNAL_SEND);
		ASSERT_EQ(kill.end.reason, END_DONE);
		rig_follow(&log, KIND_PROCESS, start.process_id, FOLLOW_LIVE, 0);
		rig_until(run_ended, &log);
		ASSERT_EQ(log.end.signo, signals[i]);
		ASSERT_EQ(log.end.code, 128 + signals[i]);
		ASSERT_FALSE(log.end.timed_out);
		rig_kill(&again, KIND_PROCESS, start.process_id, signals[i], SIGNAL_SEND);
		ASSERT_EQ(again.end.reason, END_DONE);
	}
}

TEST(a_stopped_process_still_ends_when_it_is_told_to)
{
	auto_run struct run start = {0}, stop = {0}, end = {0}, unknown = {0};

	launch_well(&start, RIG_EXEC("sleep", "98762"));
	rig_kill(&stop, KIND_PROCESS, start.process_id, SIGSTOP, SIGNAL_SEND);
	rig_kill(&end, KIND_PROCESS, start.process_id, 0, SIGNAL_TERMINATE);
	ASSERT_EQ(end.end.reason, END_DONE);
	ASSERT_EQ(state_of(start.process_id), PROCESS_EXITED);
	rig_kill(&unknown, KIND_TERMINAL, start.process_id, 0, SIGNAL_TERMINATE);
	ASSERT_EQ(unknown.end.error, ESRCH); /* a process is no terminal */
}

TEST(a_log_is_read_from_where_one_says)
{
	auto_run struct run start = {0}, all = {0}, some = {0}, since = {0}, now = {0}, beyond = {0},
			    kill = {0};

	launch_well(&start,
		    RIG_SH("for i in 1 2 3 4; do echo $i; sleep 0.02; done; echo 5; exec sleep 98762"));
	rig_follow(&all, KIND_PROCESS, start.process_id, FOLLOW_LIVE, 0);
	rig_until_output(&all, "5\n");
	rig_follow(&some, KIND_PROCESS, start.process_id, 0, 0);
	rig_until(run_ended, &some);
	ASSERT_STR(buf_text(&some.out), "1\n2\n3\n4\n5\n");
	ASSERT_EQ(some.end.reason, END_DONE);
	ASSERT_EQ(some.end.seq, all.last_seq);
	rig_follow(&since, KIND_PROCESS, start.process_id, FOLLOW_SINCE, all.last_seq - 1);
	rig_until(run_ended, &since);
	ASSERT_EQ(since.first_seq, all.last_seq);
	ASSERT_EQ(since.last_seq, all.last_seq);
	rig_follow(&beyond, KIND_PROCESS, start.process_id, FOLLOW_SINCE | FOLLOW_LIVE, all.last_seq + 1);
	rig_until(run_ended, &beyond);
	ASSERT_EQ(beyond.end.error, EINVAL);
	rig_follow(&now, KIND_PROCESS, start.process_id, FOLLOW_NOW | FOLLOW_LIVE, 0);
	rig_until(run_is_now, &now);
	rig_kill(&kill, KIND_PROCESS, start.process_id, SIGTERM, SIGNAL_SEND);
	rig_until(run_ended, &now);
	rig_until(run_ended, &all);
	ASSERT_EQ(now.out.len, 0);
	ASSERT_EQ(now.end.signo, SIGTERM);
	auto_run struct run after = {0};
	rig_follow(&after, KIND_PROCESS, start.process_id, FOLLOW_NOW, 0);
	rig_until(run_ended, &after);
	ASSERT_EQ(after.end.reason, now.end.reason);
	ASSERT_EQ(after.end.seq, now.end.seq);
	auto_run struct run unknown = {0};
	rig_follow(&unknown, KIND_PROCESS, "nobody", FOLLOW_LIVE, 0);
	rig_until(run_ended, &unknown);
	ASSERT_EQ(unknown.end.error, ESRCH);
}

TEST(a_log_keeps_the_newest_mebibyte_and_tells_of_the_rest)
{
	auto_run struct run start = {0}, live = {0}, log = {0};

	launch_well(&start, RIG_SH("head -c 3000000 /dev/zero; printf end"));
	rig_follow(&live, KIND_PROCESS, start.process_id, FOLLOW_LIVE, 0);
	rig_until(run_ended, &live);
	rig_follow(&log, KIND_PROCESS, start.process_id, FOLLOW_LIVE, 0);
	rig_until(run_ended, &log);
	ASSERT_EQ(log.gaps, 1);
	ASSERT_EQ(log.gap_seq, log.first_seq);
	ASSERT_TRUE(log.out_bytes <= 1 << 20 && log.out_bytes > (1 << 20) - WIRE_DATA_MAX);
	ASSERT_MEM(log.out.data + log.out.len - 3, "end", 3);
	ASSERT_EQ(log.end.bytes, 3000003);
}

static bool got_a_window(const struct run *r)
{
	return r->out_bytes >= RIG_WINDOW - WIRE_DATA_MAX;
}

/* The process goes on at its own speed; who was too slow continues at the oldest event there is. */
TEST(a_slow_reader_slows_nobody_and_is_told_what_it_missed)
{
	auto_run struct run make = {0}, start = {0}, slow = {0}, quick = {0}, release = {0};
	struct msg_open_exec fifo = RIG_EXEC("mkfifo", "/workspace/slow"),
			     open = RIG_SH("echo go > /workspace/slow");

	rig_run(&make, &fifo);
	ASSERT_EQ(make.end.code, 0);
	launch_well(&start, RIG_SH("read x < /workspace/slow; head -c 6000000 /dev/zero; printf end"));
	slow.no_credit = true;
	rig_follow(&slow, KIND_PROCESS, start.process_id, FOLLOW_LIVE, 0);
	rig_until(run_is_now, &slow);
	rig_follow(&quick, KIND_PROCESS, start.process_id, FOLLOW_LIVE, 0);
	rig_until(run_is_now, &quick);
	rig_run(&release, &open);
	rig_until(run_ended, &quick);
	rig_until(got_a_window, &slow);
	ASSERT_FALSE(slow.ended);
	ASSERT_TRUE(slow.out_bytes <= RIG_WINDOW);
	ASSERT_TRUE(slow.gaps >= 1 && slow.gap_after_now);
	slow.no_credit = false;
	rig_credit(&slow, RIG_WINDOW);
	rig_until(run_ended, &slow);
	ASSERT_EQ(slow.end.reason, END_EXITED);
	ASSERT_EQ(slow.end.seq, quick.end.seq);
	ASSERT_MEM(slow.out.data + slow.out.len - 3, "end", 3);
	ASSERT_TRUE(slow.out_bytes < 6000003);
}

TEST(many_follow_at_once_and_see_the_same)
{
	enum { MANY = 100 };
	auto_run struct run start = {0};
	static struct run readers[MANY];

	launch_well(
		&start,
		RIG_SH("for i in $(seq 200); do echo line $i; echo err $i >&2; done; sleep 0.2; echo last"));
	for (size_t i = 0; i < MANY; i++) {
		readers[i] = (struct run){0};
		rig_follow(&readers[i], KIND_PROCESS, start.process_id, FOLLOW_LIVE, 0);
	}
	for (size_t i = 0; i < MANY; i++) {
		rig_until(run_ended, &readers[i]);
		ASSERT_EQ(readers[i].out.len, readers[0].out.len);
		ASSERT_MEM(readers[i].out.data, readers[0].out.data, readers[0].out.len);
		ASSERT_MEM(readers[i].err.data, readers[0].err.data, readers[0].err.len);
		ASSERT_EQ(readers[i].end.seq, readers[0].end.seq);
		ASSERT_FALSE(readers[i].data_after_end);
		if (i) run_done(&readers[i]);
	}
	run_done(&readers[0]);
}

TEST(a_reader_that_leaves_ends_only_its_reading)
{
	auto_run struct run start = {0}, log = {0}, other = {0}, kill = {0};

	launch_well(&start, RIG_SH("echo hi; exec sleep 98762"));
	rig_follow(&log, KIND_PROCESS, start.process_id, FOLLOW_LIVE, 0);
	rig_until_output(&log, "hi\n");
	rig_reset(&log, false);
	rig_follow(&other, KIND_PROCESS, start.process_id, 0, 0);
	rig_until(run_ended, &other);
	ASSERT_EQ(other.end.reason, END_DONE);
	ASSERT_EQ(state_of(start.process_id), PROCESS_RUNNING);
	rig_kill(&kill, KIND_PROCESS, start.process_id, SIGKILL, SIGNAL_SEND);
	ASSERT_TRUE(marked_are_gone("98762"));
}

static bool got_60k(const struct run *r)
{
	return r->out_bytes >= 60 << 10;
}

TEST(a_command_with_a_client_can_be_followed_and_keeps_its_pace)
{
	auto_run struct run command = {0}, log = {0};
	struct msg_open_exec m = RIG_SH("head -c 500000 /dev/zero; printf end");

	m.window = 64 << 10;
	command.no_credit = true;
	rig_start(&command, &m);
	rig_until(run_opened, &command);
	rig_follow(&log, KIND_PROCESS, command.process_id, FOLLOW_LIVE, 0);
	rig_until(got_60k, &command);
	rig_until(got_60k, &log);
	for (int i = 0; i < 5; i++) {
		auto_run struct run other = {0};
		struct msg_open_exec sleep = RIG_EXEC("sleep", "0.02");

		rig_run(&other, &sleep);
	}
	ASSERT_TRUE(command.out_bytes <= 64 << 10);
	ASSERT_EQ(log.out_bytes, command.out_bytes);
	command.no_credit = false;
	rig_credit(&command, 64 << 10);
	rig_until(run_ended, &command);
	rig_until(run_ended, &log);
	ASSERT_EQ(command.out_bytes, 500003);
	ASSERT_EQ(log.out_bytes, 500003);
	ASSERT_EQ(log.end.reason, command.end.reason);
}

TEST(finished_processes_are_kept_up_to_sixty_four_and_commands_do_not_push_them_out)
{
	auto_run struct run list = {0};
	char first_id[40] = "", last_id[40] = "";

	for (int i = 0; i < 70; i++) {
		auto_run struct run start = {0}, log = {0};

		launch_well(&start, RIG_EXEC("true"));
		rig_follow(&log, KIND_PROCESS, start.process_id, FOLLOW_LIVE, 0);
		rig_until(run_ended, &log);
		if (!i) memcpy(first_id, start.process_id, sizeof first_id);
		memcpy(last_id, start.process_id, sizeof last_id);
	}
	for (int i = 0; i < 70; i++) {
		auto_run struct run command = {0};
		struct msg_open_exec m = RIG_EXEC("true");

		rig_run(&command, &m);
	}
	rig_list(&list, KIND_PROCESS, "");
	ASSERT_EQ(list.processes, 64 + 64);
	auto_run struct run first = {0}, last = {0};
	rig_list(&first, KIND_PROCESS, first_id);
	rig_list(&last, KIND_PROCESS, last_id);
	ASSERT_EQ(first.processes, 0);
	ASSERT_EQ(last.processes, 1);
}

RIG_TESTS(RUN(a_process_in_the_background_ends_and_its_log_tells_how), RUN(a_launch_that_fails_says_why),
	  RUN(it_runs_until_its_whole_group_is_gone), RUN(it_runs_until_its_pipes_are_drained),
	  RUN(a_daemon_that_let_go_of_everything_is_not_waited_for_but_can_be_killed),
	  RUN(a_timeout_is_told_with_what_was_observed), RUN(any_signal_can_be_sent_by_number),
	  RUN(a_stopped_process_still_ends_when_it_is_told_to), RUN(a_log_is_read_from_where_one_says),
	  RUN(a_log_keeps_the_newest_mebibyte_and_tells_of_the_rest),
	  RUN(a_slow_reader_slows_nobody_and_is_told_what_it_missed),
	  RUN(many_follow_at_once_and_see_the_same), RUN(a_reader_that_leaves_ends_only_its_reading),
	  RUN(a_command_with_a_client_can_be_followed_and_keeps_its_pace),
	  RUN(finished_processes_are_kept_up_to_sixty_four_and_commands_do_not_push_them_out))

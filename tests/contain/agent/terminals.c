/* Programs on terminals: what they experience, and what whoever is attached does. The real agent in a real
 * sandbox. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "rig.h"
#include "unit.h"

#define SHELL_READY "$ "

static bool out_has(const struct run *r, const char *text)
{
	return r->out.len && memmem(r->out.data, r->out.len, text, strlen(text));
}

static void forget_output(struct run *r)
{
	buf_clear(&r->out);
}

static void start_shell(struct run *r, const char *name, unsigned flags)
{
	struct msg_open_terminal m = rig_terminal(NULL, 0);

	m.name = wire_text_of(name);
	m.flags = flags;
	rig_start_terminal(r, &m);
	rig_until_output(r, SHELL_READY);
	ASSERT_FALSE(r->ended);
}

static void end_shell(struct run *r)
{
	rig_type(r, "\x15"
		    "exit\n");
	rig_until(run_ended, r);
}

/* The size is there before the program looks (C086). */
TEST(a_terminal_has_its_size_from_the_first_moment)
{
	for (int i = 0; i < 50; i++) {
		auto_run struct run r = {0};
		struct msg_open_terminal m = RIG_TERMINAL("stty", "size");

		m.cols = 131;
		m.rows = 47;
		rig_start_terminal(&r, &m);
		rig_until(run_ended, &r);
		ASSERT_STR(buf_text(&r.out), "47 131\r\n");
		ASSERT_EQ(r.end.reason, END_EXITED);
		ASSERT_EQ(r.end.code, 0);
		ASSERT_EQ(r.end.seq, r.last_seq + 1);
	}
}

TEST(a_short_program_on_a_terminal_ends_at_once)
{
	uint64_t longest = 0;

	for (int i = 0; i < 200; i++) {
		auto_run struct run r = {0};
		struct msg_open_terminal m = RIG_TERMINAL("true");

		rig_start_terminal(&r, &m);
		rig_until(run_ended, &r);
		ASSERT_EQ(r.end.reason, END_EXITED);
		longest = MAX(longest, r.end.duration_ms);
	}
	/* Not one of them had to wait for 200 ms of silence. */
	ASSERT_TRUE(longest < 200);
}

TEST(the_shell_is_interactive_with_job_control_and_owns_its_terminal)
{
	auto_run struct run r = {0};

	start_shell(&r, "", 0);
	rig_type(&r, "PS1=; stty -echo\n");
	rig_type(&r, "tty; stat -c '%U %a' $(tty); set -o | grep monitor; echo T=$TERM $0 $-; echo x "
		     ">/dev/tty; pwd\n");
	rig_type(&r, "tput colors; locale charmap; stty size; exit 7\n");
	rig_until(run_ended, &r);
	ASSERT_TRUE(out_has(&r, "/dev/pts/"));
	ASSERT_TRUE(out_has(&r, "\r\nsandbox 620\r\nmonitor        \ton\r\nT=xterm-256color bash "
				"himBHs\r\nx\r\n/workspace\r\n"));
	ASSERT_TRUE(out_has(&r, "256\r\nUTF-8\r\n24 80\r\n"));
	ASSERT_FALSE(out_has(&r, "job control") || out_has(&r, "process group") || out_has(&r, "ioctl"));
	ASSERT_EQ(r.end.code, 7);
}

#define SLEEPER "sh -c 'echo rea\"\"dy; exec sleep 100'\n"

TEST(keys_signal_the_foreground_program_and_the_shell_lives)
{
	auto_run struct run r = {0};

	start_shell(&r, "", 0);
	rig_type(&r, SLEEPER);
	rig_until_output(&r, "ready\r\n");
	rig_type(&r, "\x03"
		     "echo code=$?\n");
	rig_until_output(&r, "code=130\r\n");
	forget_output(&r);
	rig_type(&r, SLEEPER);
	rig_until_output(&r, "ready\r\n");
	rig_type(&r, "\x1c"
		     "echo code=$?\n");
	/* With the prompt: only then is ^D a key of the shell. */
	rig_until_output(&r, "code=131\r\n\x1b[?2004hsandbox@sandbox:/workspace$ ");
	rig_type(&r, "\x04");
	rig_until(run_ended, &r);
	ASSERT_EQ(r.end.reason, END_EXITED);
	ASSERT_EQ(r.end.code, 0);
}

TEST(a_stopped_program_comes_back_to_the_foreground)
{
	auto_run struct run r = {0};

	start_shell(&r, "", 0);
	rig_type(&r, "sh -c 'echo rea\"\"dy; read x; echo got $x; exec sleep 100'\n");
	rig_until_output(&r, "ready\r\n");
	rig_type(&r, "\x1a");
	rig_until_output(&r, "Stopped");
	forget_output(&r);
	rig_type(&r, "fg\n");
	rig_until_output(&r, "exec sleep 100'\r\n");
	rig_type(&r, "it\n");
	rig_until_output(&r, "got it\r\n");
	rig_type(&r, "\x03"
		     "echo code=$?\n");
	rig_until_output(&r, "code=130\r\n");
	end_shell(&r);
}

TEST(a_program_that_is_missing_is_a_failure_with_a_reason)
{
	auto_run struct run a = {0}, b = {0};
	struct msg_open_terminal missing = RIG_TERMINAL("/bin/nosuchshell"), cwd = RIG_TERMINAL("true");

	rig_start_terminal(&a, &missing);
	rig_until(run_ended, &a);
	ASSERT_FALSE(a.opened);
	ASSERT_EQ(a.end.reason, END_FAILED);
	ASSERT_EQ(a.end.error, ENOENT);
	ASSERT_STR(a.end_text, "execute '/bin/nosuchshell': No such file or directory");
	cwd.cwd = wire_text_of("/nope");
	rig_start_terminal(&b, &cwd);
	rig_until(run_ended, &b);
	ASSERT_EQ(b.end.error, ENOENT);
}

TEST(a_death_by_signal_is_told_with_its_number)
{
	auto_run struct run r = {0};
	struct msg_open_terminal m = RIG_TERMINAL("sh", "-c", "kill -TERM $$");

	rig_start_terminal(&r, &m);
	rig_until(run_ended, &r);
	ASSERT_EQ(r.end.reason, END_SIGNAL);
	ASSERT_EQ(r.end.code, 143);
	ASSERT_EQ(r.end.signo, SIGTERM);
}

/* C090: all of it arrives, in order, and the agent waits for the program instead of asking again and again.
 */
TEST(ten_megabytes_pasted_arrive_whole)
{
	size_t len = 10 << 20;
	auto_free char *bytes = mem_new(len);
	auto_run struct run r = {0}, reference = {0};
	struct msg_open_terminal m =
		RIG_TERMINAL("bash", "-c", "stty raw -echo; echo go; head -c 10485760 | cksum");
	struct msg_open_exec cksum = RIG_EXEC("cksum");

	for (size_t i = 0; i < len; i++)
		bytes[i] = (char)(i * 2654435761u >> 13);
	cksum.flags = EXEC_STDIN;
	rig_start(&reference, &cksum);
	rig_input(&reference, bytes, len);
	rig_input_end(&reference);
	rig_until(run_ended, &reference);
	rig_start_terminal(&r, &m);
	rig_until_output(&r, "go\n");
	rig_input(&r, bytes, len);
	rig_until(run_ended, &r);
	ASSERT_EQ(r.out.len, reference.out.len + 3);
	ASSERT_MEM(r.out.data + 3, reference.out.data, reference.out.len);
}

/* Clock ticks that the agent has used. */
static unsigned long agent_ticks(void)
{
	char path[64];
	unsigned long user = 0, kernel = 0;

	(void)snprintf(path, sizeof path, "/proc/%d/stat", (int)rig_agent());
	FILE *f = fopen(path, "re");
	ASSERT_TRUE(f != NULL);
	ASSERT_EQ(
		fscanf(f, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &kernel),
		2);
	(void)fclose(f);
	return user + kernel;
}

static bool has_no_input_credit(const struct run *r)
{
	return r->input_credit == 0;
}

TEST(a_program_that_does_not_read_costs_nothing_and_can_be_ended)
{
	static char bytes[64 << 10];
	auto_run struct run r = {0}, other = {0}, kill = {0};
	struct msg_open_terminal m = RIG_TERMINAL("sh", "-c", "stty raw -echo; echo go; exec sleep 100");
	struct msg_open_exec true_ = RIG_SH("for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.05; done");
	unsigned long before;
	uint64_t sent = 0;

	m.name = wire_text_of("stuck");
	rig_start_terminal(&r, &m);
	rig_until_output(&r, "go\n");
	/* Until the kernel's buffer, the queue and the credit are full. */
	for (unsigned quiet = 0; quiet < 3;) {
		size_t n = MIN(sizeof bytes, (size_t)r.input_credit);

		if (n) rig_input(&r, bytes, n);
		sent += n;
		quiet = n ? 0 : quiet + 1;
		rig_pump(50);
	}
	ASSERT_TRUE(has_no_input_credit(&r));
	ASSERT_TRUE(sent < (512 << 10));
	before = agent_ticks();
	rig_run(&other, &true_);
	ASSERT_TRUE(agent_ticks() - before <= 5);
	rig_kill(&kill, KIND_TERMINAL, "stuck", 0, SIGNAL_TERMINATE);
	ASSERT_EQ(kill.end.reason, END_DONE);
	rig_until(run_ended, &r);
	ASSERT_EQ(r.end.signo, SIGTERM);
}

TEST(output_is_exact_when_the_terminal_does_not_process_it)
{
	auto_run struct run r = {0}, reference = {0};
	struct msg_open_terminal m = RIG_TERMINAL("bash", "-c", "stty -opost; cat /usr/bin/bash");
	struct msg_open_exec cat = RIG_EXEC("cat", "/usr/bin/bash");

	rig_run(&reference, &cat);
	rig_start_terminal(&r, &m);
	rig_until(run_ended, &r);
	ASSERT_TRUE(reference.out.len > 500000);
	ASSERT_EQ(r.out.len, reference.out.len);
	ASSERT_MEM(r.out.data, reference.out.data, r.out.len);
	ASSERT_EQ(r.end.bytes, r.out.len);
	ASSERT_EQ(r.gaps, 0);
}

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

	start_shell(&a, "shared-1", TERMINAL_SHARED);
	ASSERT_STR(a.process_id, "shared-1");
	rig_type(&a, "echo fir\"\"st\n");
	rig_until_output(&a, "first\r\n");
	m.name = wire_text_of("shared-1");
	m.flags = TERMINAL_SHARED;
	m.cols = 100;
	m.rows = 30;
	rig_start_terminal(&b, &m);
	rig_until(run_is_now, &b);
	ASSERT_EQ(b.about.pid, a.about.pid);
	ASSERT_TRUE(out_has(&b, "first\r\n"));
	rig_type(&b, "stty size\n");
	rig_until_output(&a, "30 100\r\n");
	rig_until_output(&b, "30 100\r\n");
	rig_reset(&a, false);
	rig_type(&b, "echo still he\"\"re\n");
	rig_until_output(&b, "still here\r\n");
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

	start_shell(&a, "once", 0);
	struct msg_open_terminal m = rig_terminal(NULL, 0);
	m.name = wire_text_of("once");
	rig_start_terminal(&b, &m);
	rig_until(run_ended, &b);
	ASSERT_EQ(b.end.error, EEXIST);
	end_shell(&a);
	start_shell(&c, "once", TERMINAL_SHARED);
	ASSERT_TRUE(c.about.pid != a.about.pid);
	rig_list(&list, KIND_TERMINAL, "once");
	ASSERT_EQ(list.processes, 1);
	ASSERT_EQ(list.last_process.state, PROCESS_RUNNING);
	ASSERT_EQ(list.last_process.pid, c.about.pid);
	end_shell(&c);
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

/* A process that the tests mark by its argument. */
static void until_marked(bool there)
{
	uint64_t until = clock_ms() + 20000;

	while ((rig_count_processes("98761") > 0) != there) {
		if (clock_ms() > until) fail_msg("marked processes: %u", rig_count_processes("98761"));
		rig_pump(20);
	}
}

TEST(a_private_terminal_takes_all_with_it_when_its_channel_ends)
{
	auto_run struct run polite = {0}, stubborn = {0}, list = {0};

	start_shell(&polite, "", TERMINAL_PRIVATE);
	rig_type(&polite, "sh -c 'echo rea\"\"dy; exec sleep 98761'\n");
	rig_until_output(&polite, "ready\r\n");
	rig_list(&list, KIND_TERMINAL, polite.process_id);
	ASSERT_EQ(list.processes, 1);
	until_marked(true);
	rig_reset(&polite, false);
	until_marked(false);
	start_shell(&stubborn, "", TERMINAL_PRIVATE);
	rig_type(&stubborn,
		 "trap '' HUP; setsid sh -c 'trap \"\" HUP TERM; echo rea\"\"dy; sleep 98761; :'\n");
	rig_until_output(&stubborn, "ready\r\n");
	until_marked(true);
	rig_reset(&stubborn, false);
	until_marked(false);
}

TEST(a_private_terminal_is_forgotten_when_it_has_ended)
{
	auto_run struct run r = {0}, list = {0};

	start_shell(&r, "", TERMINAL_PRIVATE);
	end_shell(&r);
	ASSERT_EQ(r.end.reason, END_EXITED);
	rig_list(&list, KIND_TERMINAL, r.process_id);
	ASSERT_EQ(list.processes, 0);
}

TEST(whoever_holds_the_terminal_in_the_background_is_not_waited_for)
{
	auto_run struct run r = {0};
	struct msg_open_terminal m =
		RIG_TERMINAL("bash", "-c", "(trap '' HUP; exec sleep 98761) & setsid sleep 98761 & echo bye");

	rig_start_terminal(&r, &m);
	rig_until(run_ended, &r);
	ASSERT_STR(buf_text(&r.out), "bye\r\n");
	ASSERT_EQ(r.end.code, 0);
	ASSERT_TRUE(r.end.duration_ms < 2000);
	auto_run struct run kill = {0};
	rig_kill(&kill, KIND_TERMINAL, r.process_id, SIGKILL, SIGNAL_SEND);
	until_marked(false);
}

TEST(interrupt_and_terminate_reach_the_whole_tree)
{
	auto_run struct run r = {0}, interrupt = {0}, terminate = {0}, again = {0}, unknown = {0};

	start_shell(&r, "signals", TERMINAL_SHARED);
	rig_type(&r, SLEEPER);
	rig_until_output(&r, "ready\r\n");
	rig_kill(&interrupt, KIND_TERMINAL, "signals", SIGINT, SIGNAL_SEND);
	ASSERT_EQ(interrupt.end.reason, END_DONE);
	rig_type(&r, "echo code=$?\n");
	rig_until_output(&r, "code=130\r\n");
	rig_kill(&terminate, KIND_TERMINAL, "signals", 0, SIGNAL_TERMINATE);
	ASSERT_EQ(terminate.end.reason, END_DONE);
	rig_until(run_ended, &r);
	ASSERT_EQ(r.end.code, 137); /* an interactive shell ignores SIGTERM */
	rig_kill(&again, KIND_TERMINAL, "signals", 0, SIGNAL_TERMINATE);
	ASSERT_EQ(again.end.reason, END_DONE);
	rig_kill(&unknown, KIND_TERMINAL, "nobody", SIGINT, SIGNAL_SEND);
	ASSERT_EQ(unknown.end.error, ESRCH);
}

TEST(a_resize_reaches_the_program_and_the_last_one_wins)
{
	auto_run struct run r = {0};
	struct msg_open_terminal m = RIG_TERMINAL(
		"bash", "-c",
		"trap 'echo changed' WINCH; stty -echo; echo go; while ! read -t 5 x; do :; done; stty size");

	rig_start_terminal(&r, &m);
	rig_until_output(&r, "go\r\n");
	for (uint16_t i = 1; i <= 100; i++)
		rig_resize(&r, 100 + i, 50);
	rig_until_output(&r, "changed\r\n");
	rig_type(&r, "\n");
	rig_until(run_ended, &r);
	ASSERT_TRUE(out_has(&r, "50 200\r\n"));
	rig_resize(&r, 10, 10); /* too late, and no offence */
	auto_run struct run other = {0};
	struct msg_open_exec true_ = RIG_EXEC("true");
	rig_run(&other, &true_);
	ASSERT_EQ(other.end.code, 0);
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

RIG_TESTS(RUN(a_terminal_has_its_size_from_the_first_moment), RUN(a_short_program_on_a_terminal_ends_at_once),
	  RUN(the_shell_is_interactive_with_job_control_and_owns_its_terminal),
	  RUN(keys_signal_the_foreground_program_and_the_shell_lives),
	  RUN(a_stopped_program_comes_back_to_the_foreground),
	  RUN(a_program_that_is_missing_is_a_failure_with_a_reason),
	  RUN(a_death_by_signal_is_told_with_its_number), RUN(ten_megabytes_pasted_arrive_whole),
	  RUN(a_program_that_does_not_read_costs_nothing_and_can_be_ended),
	  RUN(output_is_exact_when_the_terminal_does_not_process_it),
	  RUN(an_attached_reader_that_does_not_read_stops_the_program),
	  RUN(a_follower_that_is_stuck_stops_the_program_for_a_moment_only),
	  RUN(a_follower_that_reads_sees_no_gap_however_much_comes),
	  RUN(a_named_terminal_is_shared_and_replayed),
	  RUN(a_name_that_is_taken_is_refused_and_one_that_is_free_again_starts_anew),
	  RUN(a_detached_terminal_is_followed_by_cursor), RUN(what_was_overwritten_is_told_as_a_gap),
	  RUN(a_private_terminal_takes_all_with_it_when_its_channel_ends),
	  RUN(a_private_terminal_is_forgotten_when_it_has_ended),
	  RUN(whoever_holds_the_terminal_in_the_background_is_not_waited_for),
	  RUN(interrupt_and_terminate_reach_the_whole_tree),
	  RUN(a_resize_reaches_the_program_and_the_last_one_wins),
	  RUN(finished_terminals_are_kept_up_to_twenty_five))

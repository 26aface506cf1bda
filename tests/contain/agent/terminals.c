/* Programs on terminals: what they experience, and what whoever is attached does. The real agent in a real
 * sandbox. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "base/mem.h"
#include "rig.h"
#include "unit.h"

static void forget_output(struct run *r)
{
	buf_clear(&r->out);
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
	unsigned slow = 0;

	for (int i = 0; i < 200; i++) {
		auto_run struct run r = {0};
		struct msg_open_terminal m = RIG_TERMINAL("true");

		rig_start_terminal(&r, &m);
		rig_until(run_ended, &r);
		ASSERT_EQ(r.end.reason, END_EXITED);
		slow += r.end.duration_ms >= 200;
	}
	/* A wait for 200 ms of silence would be in each of them, a busy host in a few. */
	ASSERT_TRUE(slow < 20);
}

TEST(the_shell_is_interactive_with_job_control_and_owns_its_terminal)
{
	auto_run struct run r = {0};

	rig_start_shell(&r, "", 0);
	rig_type(&r, "PS1=; stty -echo\n");
	rig_type(&r, "tty; stat -c '%U %a' $(tty); set -o | grep monitor; echo T=$TERM $0 $-; echo x "
		     ">/dev/tty; pwd\n");
	rig_type(&r, "tput colors; locale charmap; stty size; exit 7\n");
	rig_until(run_ended, &r);
	ASSERT_TRUE(run_has(&r, "/dev/pts/"));
	ASSERT_TRUE(run_has(&r, "\r\nsandbox 620\r\nmonitor        \ton\r\nT=xterm-256color bash "
				"himBHs\r\nx\r\n/workspace\r\n"));
	ASSERT_TRUE(run_has(&r, "256\r\nUTF-8\r\n24 80\r\n"));
	ASSERT_FALSE(run_has(&r, "job control") || run_has(&r, "process group") || run_has(&r, "ioctl"));
	ASSERT_EQ(r.end.code, 7);
}

#define SLEEPER "sh -c 'echo rea\"\"dy; exec sleep 100'\n"

TEST(keys_signal_the_foreground_program_and_the_shell_lives)
{
	auto_run struct run r = {0};

	rig_start_shell(&r, "", 0);
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
	rig_until_output(&r, "code=131\r\n" RIG_PROMPT);
	rig_type(&r, "\x04");
	rig_until(run_ended, &r);
	ASSERT_EQ(r.end.reason, END_EXITED);
	ASSERT_EQ(r.end.code, 0);
}

TEST(a_stopped_program_comes_back_to_the_foreground)
{
	auto_run struct run r = {0};

	rig_start_shell(&r, "", 0);
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
	rig_end_shell(&r);
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
	rig_until_marked(false);
}

TEST(interrupt_and_terminate_reach_the_whole_tree)
{
	auto_run struct run r = {0}, interrupt = {0}, terminate = {0}, again = {0}, unknown = {0};

	rig_start_shell(&r, "signals", TERMINAL_SHARED);
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
	ASSERT_TRUE(run_has(&r, "50 200\r\n"));
	rig_resize(&r, 10, 10); /* too late, and no offence */
	auto_run struct run other = {0};
	struct msg_open_exec true_ = RIG_EXEC("true");
	rig_run(&other, &true_);
	ASSERT_EQ(other.end.code, 0);
}

RIG_TESTS(RUN(a_terminal_has_its_size_from_the_first_moment), RUN(a_short_program_on_a_terminal_ends_at_once),
	  RUN(the_shell_is_interactive_with_job_control_and_owns_its_terminal),
	  RUN(keys_signal_the_foreground_program_and_the_shell_lives),
	  RUN(a_stopped_program_comes_back_to_the_foreground),
	  RUN(a_program_that_is_missing_is_a_failure_with_a_reason),
	  RUN(a_death_by_signal_is_told_with_its_number), RUN(ten_megabytes_pasted_arrive_whole),
	  RUN(a_program_that_does_not_read_costs_nothing_and_can_be_ended),
	  RUN(output_is_exact_when_the_terminal_does_not_process_it),
	  RUN(whoever_holds_the_terminal_in_the_background_is_not_waited_for),
	  RUN(interrupt_and_terminate_reach_the_whole_tree),
	  RUN(a_resize_reaches_the_program_and_the_last_one_wins))

/* What a command experiences and what its client is told: the real agent in a real sandbox. */
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rig.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "unit.h"

#define HANG_MS 20000 /* tells waiting for a process that sleeps 30 s and more from not waiting */

#define ASSERT_OUT(r, text) \
	do { \
		ASSERT_STR(buf_text(&(r).out), text); \
	} while (0)

TEST(output_and_status_arrive_and_the_end_is_last)
{
	auto_run struct run r = {0};
	struct msg_open_exec m = RIG_SH("echo out; echo err >&2; exit 42");

	rig_run(&r, &m);
	ASSERT_OUT(r, "out\n");
	ASSERT_STR(buf_text(&r.err), "err\n");
	ASSERT_EQ(r.end.reason, END_EXITED);
	ASSERT_EQ(r.end.code, 42);
	ASSERT_EQ(r.end.bytes, 8);
	ASSERT_TRUE(r.opened && r.about.pid > 1);
	ASSERT_EQ(strlen(r.process_id), 36);
}

TEST(a_builtin_is_run_by_bash_and_a_program_without_it)
{
	auto_run struct run a = {0}, b = {0};
	struct msg_open_exec builtin = RIG_EXEC("exit", "42"),
			     program = RIG_EXEC("readlink", "/proc/self/exe");

	rig_run(&a, &builtin);
	ASSERT_EQ(a.end.code, 42);
	rig_run(&b, &program);
	ASSERT_OUT(b, "/usr/bin/readlink\n");
}

TEST(bash_itself_reports_what_cannot_be_run)
{
	auto_run struct run a = {0}, b = {0};
	struct msg_open_exec missing = RIG_EXEC("nosuchcmd"), data = RIG_EXEC("/etc/passwd");

	rig_run(&a, &missing);
	ASSERT_EQ(a.end.code, 127);
	ASSERT_STR(buf_text(&a.err), "bash: line 1: nosuchcmd: command not found\n");
	rig_run(&b, &data);
	ASSERT_EQ(b.end.code, 126);
	ASSERT_STR(buf_text(&b.err), "bash: line 1: /etc/passwd: Permission denied\n");
}

TEST(a_death_by_signal_is_told_as_such)
{
	auto_run struct run r = {0};
	struct msg_open_exec m = RIG_SH("kill -SEGV $$");

	rig_run(&r, &m);
	ASSERT_EQ(r.end.reason, END_SIGNAL);
	ASSERT_EQ(r.end.signo, SIGSEGV);
	ASSERT_EQ(r.end.code, 128 + SIGSEGV);
}

TEST(a_working_directory_that_cannot_be_entered_is_named)
{
	static const struct {
		const char *cwd, *text;
		int error;
	} cases[] = {
		{"/workspace/nope", "working directory '/workspace/nope': No such file or directory", ENOENT},
		{"/etc/passwd", "working directory '/etc/passwd': Not a directory", ENOTDIR},
		{"/root", "working directory '/root': Permission denied", EACCES}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_run struct run r = {0};
		struct msg_open_exec m = RIG_EXEC("true");

		m.cwd = wire_text_of(cases[i].cwd);
		rig_run(&r, &m);
		ASSERT_EQ(r.end.reason, END_FAILED);
		ASSERT_EQ(r.end.error, cases[i].error);
		ASSERT_STR(r.end_text, cases[i].text);
	}
}

TEST(a_command_starts_with_nothing_of_ours)
{
	auto_run struct run fds = {0}, signals = {0}, env = {0}, who = {0}, oom = {0};
	struct msg_open_exec m_fds = RIG_SH("exec ls -l /proc/self/fd"),
			     m_signals = RIG_EXEC("grep", "-E", "Sig(Ign|Blk):|CapEff|NoNewPrivs",
						  "/proc/self/status"),
			     m_env = RIG_EXEC("env"),
			     m_oom = RIG_EXEC("cat", "/proc/self/oom_score_adj", "/proc/1/oom_score_adj"),
			     m_who = RIG_SH("id -u; id -g; id -G; umask; pwd; ps -o sid= $$");

	rig_run(&fds, &m_fds);
	ASSERT_TRUE(strstr(buf_text(&fds.out), "0 -> /dev/null") != NULL);
	ASSERT_TRUE(strstr(buf_text(&fds.out), "3 -> /proc/") != NULL);
	ASSERT_TRUE(strstr(buf_text(&fds.out), " 4 -> ") == NULL);
	rig_run(&signals, &m_signals);
	ASSERT_OUT(signals,
		   "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\nCapEff:\t0000000000000000\n"
		   "NoNewPrivs:\t1\n");
	rig_run(&env, &m_env);
	ASSERT_OUT(env,
		   "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nHOME=/home/sandbox\n"
		   "LANG=C.UTF-8\nLC_ALL=C.UTF-8\nUSER=sandbox\nLOGNAME=sandbox\nSHELL=/bin/bash\nPWD=/"
		   "workspace\n"
		   "SHLVL=0\n_=/usr/bin/env\n");
	rig_run(&oom, &m_oom);
	ASSERT_OUT(oom, "500\n0\n");
	rig_run(&who, &m_who);
	ASSERT_TRUE(strncmp(buf_text(&who.out), "1000\n1000\n1000\n0022\n/workspace\n", 26) == 0);
}

static bool background_is_there(const struct run *r)
{
	(void)r;
	rig_pump(10);
	return rig_count_processes("31.003") == 1;
}

TEST(the_end_does_not_wait_for_a_background_child_that_holds_the_pipe)
{
	auto_run struct run r = {0};
	struct msg_open_exec m = RIG_SH("(sleep 31.003; echo late) & echo now; exit 7");
	uint64_t began = clock_ms();

	rig_run(&r, &m);
	ASSERT_OUT(r, "now\n");
	ASSERT_EQ(r.end.code, 7);
	ASSERT_TRUE(clock_ms() - began < HANG_MS);
	ASSERT_TRUE(r.end.left_running >= 1);
	rig_until(background_is_there, NULL);
}

TEST(a_background_child_may_go_on_writing)
{
	auto_run struct run r = {0}, look = {0};
	struct msg_open_exec m = RIG_SH(
				     "(sleep 0.4; seq 200000; echo $? > /workspace/seq-status) & echo now"),
			     m_look = RIG_SH("until [ -s seq-status ]; do sleep 0.02; done; cat seq-status");

	rig_run(&r, &m);
	ASSERT_OUT(r, "now\n");
	rig_run(&look, &m_look);
	ASSERT_OUT(look, "0\n");
}

/* Runs M, which says "set" when its traps are, with a timeout that is long enough for that. */
static void run_with_traps_set(struct run *r, struct msg_open_exec *m)
{
	for (m->timeout_ms = 250; m->timeout_ms < HANG_MS; m->timeout_ms *= 2) {
		*r = (struct run){0};
		rig_run(r, m);
		if (strstr(buf_text(&r->out), "set\n")) return;
		run_done(r);
	}
	fail_msg("it never said 'set'");
}

TEST(a_timeout_ends_the_whole_tree_even_if_it_ignores_term)
{
	auto_run struct run r = {0};
	struct msg_open_exec m =
		RIG_SH("trap '' TERM; setsid nohup sh -c 'trap \"\" TERM; echo set; sleep 32.008; "
		       "sleep 32.008' & sleep 32.008");

	run_with_traps_set(&r, &m);
	ASSERT_EQ(r.end.reason, END_TIMEOUT);
	ASSERT_EQ(r.end.signo, SIGKILL);
	ASSERT_EQ(r.end.code, 137);
	ASSERT_EQ(r.end.left_running, 0);
	ASSERT_TRUE(r.end.duration_ms < m.timeout_ms + HANG_MS);
	ASSERT_EQ(rig_count_processes("32.008"), 0);
}

TEST(a_timeout_that_is_obeyed_keeps_the_status_and_the_output)
{
	auto_run struct run r = {0};
	struct msg_open_exec m =
		RIG_SH("trap 'echo bye; exit 3' TERM; echo set; while :; do sleep 0.02; done");

	m.grace_ms = HANG_MS;
	run_with_traps_set(&r, &m);
	ASSERT_OUT(r, "set\nbye\n");
	ASSERT_EQ(r.end.reason, END_TIMEOUT);
	ASSERT_EQ(r.end.code, 3);
}

static bool has_output(const struct run *r)
{
	return r->out_bytes > 0;
}

TEST(a_signal_reaches_daemons_too)
{
	auto_run struct run r = {0};
	struct msg_open_exec m =
		RIG_SH("setsid nohup sh -c 'sleep 33.009; :' >/dev/null 2>&1 & echo up; sleep 33.009; :");

	rig_start(&r, &m);
	rig_until(has_output, &r);
	rig_signal(&r, SIGKILL);
	rig_until(run_ended, &r);
	ASSERT_EQ(r.end.reason, END_CANCELLED);
	ASSERT_EQ(r.end.signo, SIGKILL);
	ASSERT_EQ(rig_count_processes("33.009"), 0);
}

static bool daemon_is_gone(const struct run *r)
{
	(void)r;
	rig_pump(10);
	return rig_count_processes("34.001") == 0;
}

TEST(a_reset_with_kill_leaves_nothing_and_one_without_lets_it_go_on)
{
	auto_run struct run kept = {0}, killed = {0}, look = {0};
	struct msg_open_exec m_kept = RIG_SH("echo up; sleep 0.2; seq 100000; echo done > kept-mark"),
			     m_killed = RIG_SH("echo up; sleep 34.001; :"),
			     m_look = RIG_SH("until [ -s kept-mark ]; do sleep 0.02; done; cat kept-mark");

	rig_start(&kept, &m_kept);
	rig_until(has_output, &kept);
	rig_reset(&kept, false);
	rig_start(&killed, &m_killed);
	rig_until(has_output, &killed);
	rig_reset(&killed, true);
	rig_until(daemon_is_gone, NULL);
	rig_run(&look, &m_look);
	ASSERT_OUT(look, "done\n");
	ASSERT_FALSE(kept.ended || killed.ended);
}

/* The first 16 digits of the SHA-256, and a line feed. */
static void host_digest(const void *bytes, size_t len, char digest[32])
{
	auto_close int fd = memfd_create("bytes", MFD_CLOEXEC);
	char command[96];

	ASSERT_OK(fd_write_all(fd, bytes, len));
	(void)snprintf(command, sizeof command, "sha256sum /proc/%d/fd/%d | cut -c1-16", (int)getpid(), fd);
	FILE *sum = popen(command, "r");
	ASSERT_TRUE(sum && fgets(digest, 32, sum) != NULL);
	(void)pclose(sum);
}

TEST(five_mebibytes_of_stdin_arrive_whole)
{
	auto_run struct run r = {0}, closed = {0};
	struct msg_open_exec m = RIG_SH("sha256sum | cut -c1-16"), m_closed = RIG_EXEC("head", "-c1");
	size_t size = 5 << 20;
	auto_free char *bytes = mem_new(size);
	char expected[32] = "";

	for (size_t i = 0; i < size; i++)
		bytes[i] = (char)(i * 2654435761u >> 13);
	m.flags = m_closed.flags = EXEC_STDIN;
	rig_start(&r, &m);
	rig_input(&r, bytes, size);
	rig_input_end(&r);
	rig_until(run_ended, &r);
	ASSERT_EQ(r.end.code, 0);
	host_digest(bytes, size, expected);
	ASSERT_OUT(r, expected);

	/* A reader that leaves early does not stop the writer. */
	rig_start(&closed, &m_closed);
	rig_input(&closed, bytes, size);
	rig_until(run_ended, &closed);
	ASSERT_EQ(closed.end.code, 0);
	ASSERT_EQ(closed.out_bytes, 1);
}

TEST(without_credit_a_command_waits_and_nothing_grows)
{
	auto_run struct run r = {0}, other = {0};
	struct msg_open_exec m = RIG_EXEC("yes"), m_other = RIG_EXEC("echo", "hi");

	m.window = 100000;
	r.no_credit = true;
	rig_start(&r, &m);
	rig_run(&other, &m_other);
	ASSERT_OUT(other, "hi\n");
	while (r.out_bytes < 100000)
		rig_pump(1000);
	rig_pump(100);
	ASSERT_EQ(r.out_bytes, 100000);
	rig_credit(&r, 50000);
	while (r.out_bytes < 150000)
		rig_pump(1000);
	rig_signal(&r, SIGKILL);
	rig_pump(300);
	/* Dead, but what lay in the pipe is owed to us. */
	ASSERT_FALSE(r.ended);
	r.no_credit = false;
	rig_credit(&r, 1 << 20);
	rig_until(run_ended, &r);
	ASSERT_EQ(r.end.reason, END_CANCELLED);
	ASSERT_FALSE(r.data_after_end);
}

TEST(the_end_needs_no_credit)
{
	auto_run struct run silent = {0}, exact = {0}, held = {0};
	struct msg_open_exec m_silent = RIG_EXEC("sleep", "0.05"),
			     m_exact = RIG_SH("echo 1234567; sleep 0.05; exit 5"),
			     m_held = RIG_SH("sleep 31.1 & echo 1234567");

	silent.no_credit = exact.no_credit = held.no_credit = true;
	m_silent.window = 0;
	m_exact.window = m_held.window = 8;
	rig_run(&silent, &m_silent);
	ASSERT_EQ(silent.end.code, 0);
	rig_run(&exact, &m_exact);
	ASSERT_EQ(exact.end.code, 5);
	ASSERT_OUT(exact, "1234567\n");
	rig_run(&held, &m_held);
	ASSERT_OUT(held, "1234567\n");
}

TEST(much_output_is_exact)
{
	auto_run struct run r = {0};
	struct msg_open_exec m = RIG_SH("seq 1 1000000; seq 1 100000 >&2");
	const char *at;

	rig_run(&r, &m);
	ASSERT_EQ(r.out_bytes, 6888896);
	ASSERT_EQ(r.err_bytes, 588895);
	at = buf_text(&r.out);
	for (int i = 1; i <= 1000000; i++) {
		char *end;

		ASSERT_EQ(strtol(at, &end, 10), i);
		at = end + 1;
	}
}

TEST(a_thousand_orphans_leave_no_zombies)
{
	auto_run struct run look = {0};
	struct msg_open_exec m_look = RIG_SH("while ps -eo stat= | grep -q '^Z'; do :; done; echo none");

	for (int i = 0; i < 10; i++) {
		auto_run struct run r = {0};
		struct msg_open_exec m = RIG_SH("for i in $(seq 100); do (: & ); done");

		rig_run(&r, &m);
		ASSERT_EQ(r.end.code, 0);
	}
	rig_run(&look, &m_look);
	ASSERT_OUT(look, "none\n");
}

TEST(long_commands_work)
{
	size_t size = 140 << 10;
	auto_free char *script = mem_new(size + 64), *big = mem_new(size + 1);
	auto_run struct run a = {0}, b = {0}, c = {0};
	struct msg_open_exec m_script = RIG_EXEC("eval", script), m_builtin = RIG_EXEC("printf", "%s", big),
			     m_program = RIG_EXEC("/usr/bin/printf", "%s", big);

	memset(big, 'x', size);
	memset(script, ' ', size);
	memcpy(script, "x=1;", 4);
	strcpy(script + size, "ls -l /proc/self/fd | wc -l; exit 9");
	rig_run(&a, &m_script);
	ASSERT_EQ(a.end.code, 9);
	ASSERT_OUT(a, "5\n"); /* "total 0" and 0, 1, 2 and ls's own */
	rig_run(&b, &m_builtin);
	ASSERT_EQ(b.out_bytes, size);
	rig_run(&c, &m_program);
	ASSERT_EQ(c.end.code, 126);
	ASSERT_TRUE(strstr(buf_text(&c.err), "Argument list too long") != NULL);
}

TEST(processes_are_listed)
{
	auto_run struct run r = {0}, list = {0};
	struct msg_open_exec m = RIG_SH("echo up; sleep 35");

	rig_start(&r, &m);
	rig_until(has_output, &r);
	rig_start_list(&list);
	rig_until(run_ended, &list);
	ASSERT_TRUE(list.processes > 1);
	ASSERT_EQ(list.end.reason, END_DONE);
	ASSERT_EQ(list.last_process.state, PROCESS_RUNNING);
	ASSERT_EQ(list.last_process.pid, r.about.pid);
	rig_signal(&r, SIGTERM);
	rig_until(run_ended, &r);
	ASSERT_EQ(r.end.reason, END_CANCELLED);
}

RIG_TESTS(RUN(output_and_status_arrive_and_the_end_is_last),
	  RUN(a_builtin_is_run_by_bash_and_a_program_without_it), RUN(bash_itself_reports_what_cannot_be_run),
	  RUN(a_death_by_signal_is_told_as_such), RUN(a_working_directory_that_cannot_be_entered_is_named),
	  RUN(a_command_starts_with_nothing_of_ours),
	  RUN(the_end_does_not_wait_for_a_background_child_that_holds_the_pipe),
	  RUN(a_background_child_may_go_on_writing),
	  RUN(a_timeout_ends_the_whole_tree_even_if_it_ignores_term),
	  RUN(a_timeout_that_is_obeyed_keeps_the_status_and_the_output), RUN(a_signal_reaches_daemons_too),
	  RUN(a_reset_with_kill_leaves_nothing_and_one_without_lets_it_go_on),
	  RUN(five_mebibytes_of_stdin_arrive_whole), RUN(without_credit_a_command_waits_and_nothing_grows),
	  RUN(the_end_needs_no_credit), RUN(much_output_is_exact), RUN(a_thousand_orphans_leave_no_zombies),
	  RUN(long_commands_work), RUN(processes_are_listed))

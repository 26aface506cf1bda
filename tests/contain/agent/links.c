/* Who may talk to an agent, and what is left when somebody stops: fronts die, keepers die, peers lie. */
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "rig.h"
#include "unit.h"

static bool has_output(const struct run *r)
{
	return r->out_bytes > 0;
}

static void assert_serves(void)
{
	auto_run struct run r = {0};
	struct msg_open_exec m = RIG_EXEC("echo", "alive");

	rig_run(&r, &m);
	ASSERT_STR(buf_text(&r.out), "alive\n");
}

static struct link *new_front(void)
{
	struct link *l = rig_connect(rig_cookie(), ROLE_FRONT);

	ASSERT_TRUE(l != NULL);
	return l;
}

TEST(a_connection_without_the_cookie_is_closed)
{
	ASSERT_TRUE(rig_connect("wrong", ROLE_FRONT) == NULL);
	ASSERT_TRUE(rig_connect("", ROLE_FRONT) == NULL);
	ASSERT_TRUE(rig_connect("0123456789abcdef0123456789abcdeF", ROLE_KEEPER) == NULL);
	ASSERT_TRUE(rig_connect(rig_cookie(), ROLE_AGENT) == NULL);
	assert_serves();
}

TEST(when_a_front_dies_its_commands_go_on_and_its_writes_are_dropped)
{
	auto_run struct run command = {0}, write = {0}, list = {0}, look = {0};
	struct msg_open_exec
		m = RIG_SH("echo up; sleep 0.3; seq 100000; echo done > front-mark"),
		m_look = RIG_SH("until [ -s front-mark ]; do sleep 0.02; done; ls -A half; cat front-mark");
	char id[40];

	rig_start(&command, &m);
	rig_until(has_output, &command);
	strcpy(id, command.process_id);
	rig_start_file(&write, true, 1000, "/workspace/half/f");
	rig_until(run_opened, &write);
	rig_forget(&command);
	rig_forget(&write);
	rig_use_front(new_front());
	rig_start_list(&list);
	rig_until(run_ended, &list);
	ASSERT_TRUE(list.processes > 0);
	ASSERT_EQ(list.last_process.state, PROCESS_RUNNING);
	rig_run(&look, &m_look);
	ASSERT_STR(buf_text(&look.out), "done\n");
}

TEST(a_lying_front_only_hurts_itself)
{
	static const uint8_t bad[][WIRE_HEADER] = {
		{1, 0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0}, /* a payload that is not there */
		{0, 0, 0, 0, 22, 0, 0, 0, 0, 0, 0, 0}, /* an opening on channel 0 */
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct link *liar = new_front();
		struct packet p = {.bytes = (uint8_t *)bad[i], .room = WIRE_HEADER, .len = WIRE_HEADER};
		struct pollfd hung_up = {.fd = link_fd(liar), .events = POLLIN};
		char byte;

		ASSERT_OK(link_send(liar, &p, NULL, 0));
		ASSERT_EQ(poll(&hung_up, 1, 5000), 1);
		ASSERT_EQ(read(link_fd(liar), &byte, 1), 0);
		link_free(liar);
	}
	assert_serves();
}

TEST(stdin_beyond_the_credit_ends_the_link)
{
	struct link *before = new_front();
	auto_run struct run r = {0};
	struct msg_open_exec m = RIG_EXEC("sleep", "36");
	static char much[60000];
	struct iovec part = {.iov_base = much, .iov_len = sizeof much};
	struct pollfd hung_up;
	int sent;

	rig_use_front(new_front());
	m.flags = EXEC_STDIN;
	rig_start(&r, &m);
	rig_until(run_opened, &r);
	for (sent = 0; sent < 4; sent++)
		(void)link_send_data(rig_front(), r.channel, STREAM_IN, &part, 1);
	hung_up = (struct pollfd){.fd = link_fd(rig_front()), .events = POLLRDHUP};
	ASSERT_EQ(poll(&hung_up, 1, 5000), 1);
	rig_forget(&r);
	rig_use_front(before);
	assert_serves();
}

TEST(a_new_keeper_takes_the_bond_and_is_asked_for_limits)
{
	struct link *bond;

	rig_drop_bond();
	assert_serves(); /* the limits are held already */
	bond = rig_connect(rig_cookie(), ROLE_KEEPER);
	ASSERT_TRUE(bond != NULL);
	rig_take_bond(bond);
	assert_serves();
}

static bool limits_are_idle(const struct run *r)
{
	(void)r;
	return rig_limits_idle() == 1;
}

static void assert_no_leaves(void)
{
	DIR *dir = rig_groups_open();

	for (struct dirent *d; (d = readdir(dir));)
		ASSERT_FALSE(d->d_type == DT_DIR && d->d_name[0] == 'x');
	closedir(dir);
}

TEST(an_idle_sandbox_gives_its_limits_back_and_asks_again)
{
	auto_run struct run end_others = {0}, refused = {0};
	struct msg_open_exec m_end = RIG_SH("kill -9 -1"), m = RIG_EXEC("true");

	rig_run(&end_others, &m_end);
	rig_until(limits_are_idle, NULL);
	assert_no_leaves();
	rig_refuse_limits("no room for control groups");
	rig_run(&refused, &m);
	ASSERT_EQ(refused.end.reason, END_FAILED);
	ASSERT_EQ(refused.end.error, ENOSPC);
	ASSERT_STR(refused.end_text, "no room for control groups");
	rig_refuse_limits(NULL);
	assert_serves();
	ASSERT_EQ(rig_limits_wanted(), 3);
}

TEST(pid_1_is_out_of_reach_from_inside)
{
	auto_run struct run r = {0};
	struct msg_open_exec m =
		RIG_SH("kill -9 1; kill -TERM 1; cat /proc/1/environ; ls -l /proc/1/fd; ls /proc/1/root/");

	m.uid = 0;
	rig_run(&r, &m);
	ASSERT_EQ(r.out_bytes, 0);
	ASSERT_TRUE(r.end.code != 0);
	assert_serves();
}

RIG_TESTS(RUN(a_connection_without_the_cookie_is_closed),
	  RUN(when_a_front_dies_its_commands_go_on_and_its_writes_are_dropped),
	  RUN(a_lying_front_only_hurts_itself), RUN(stdin_beyond_the_credit_ends_the_link),
	  RUN(a_new_keeper_takes_the_bond_and_is_asked_for_limits),
	  RUN(an_idle_sandbox_gives_its_limits_back_and_asks_again), RUN(pid_1_is_out_of_reach_from_inside))

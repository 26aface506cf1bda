/* Logs and terminals as the front sees them; the agent is played by the test. */
#include "sandbox/follow.h"

#include "sandbox/peer.h"

#include "base/buf.h"
#include "base/mem.h"
#include "sandbox/agent_link.h"
#include "sandbox/call.h"
#include "sandbox/process_list.h"
#include "sandbox/terminal.h"

static struct agent_link *link_;
static bool lost;

static void on_lost(void *ctx, const char *why)
{
	(void)ctx, (void)why;
	lost = true;
	loop_stop(loop);
}

/* ---- one follow, and what it was told ---- */

static struct follow *follow;
static struct buf told; /* "o" opened, "1:text" events, "g7" gap, "n" now, "r" room, "e" end */
static bool ended;
static struct operation_end end_seen;

static void on_opened(void *ctx, const char *id, uint32_t pid)
{
	(void)ctx;
	ASSERT_OK(buf_addf(&told, "o%s/%u ", id, pid));
}

static void on_log(void *ctx, const struct follow_event *e)
{
	(void)ctx;
	ASSERT_OK(buf_addf(&told, "%d:%.*s ", (int)e->seq, (int)MIN(e->len, 20u), (const char *)e->bytes));
}

static void on_gap(void *ctx, uint64_t seq)
{
	(void)ctx;
	ASSERT_OK(buf_addf(&told, "g%d ", (int)seq));
}

static void on_now(void *ctx)
{
	(void)ctx;
	ASSERT_OK(buf_add_text(&told, "n "));
}

static void on_room(void *ctx)
{
	(void)ctx;
	ASSERT_OK(buf_add_text(&told, "r "));
}

static void on_end(void *ctx, const struct operation_end *end)
{
	(void)ctx;
	ASSERT_FALSE(ended);
	end_seen = *end;
	ended = true;
	follow = NULL;
	loop_stop(loop);
}

static const struct follow_events events = {.on_opened = on_opened,
					    .on_log = on_log,
					    .on_gap = on_gap,
					    .on_now = on_now,
					    .on_room = on_room,
					    .on_end = on_end};

static void begin(void)
{
	loop_begin();
	peer_open(ROLE_AGENT);
	lost = ended = false;
	follow = NULL;
	told = buf_with_cap(1 << 20);
	link_ = agent_link_new(loop, ours, on_lost, NULL);
}

static void end(void)
{
	agent_link_free(link_, END_LOST, "the test ends");
	buf_done(&told);
	peer_close();
	loop_end();
}

static void start_follow(unsigned flags)
{
	struct follow_spec spec = {
		.kind = KIND_PROCESS, .name = "p-1", .flags = flags, .since = 7, .cols = 90, .rows = 40};

	follow = follow_start(link_, &spec, &events, NULL);
	ASSERT_TRUE(follow != NULL);
	ASSERT_EQ(peer_saw(MSG_open_follow), 1);
}

static struct terminal_spec terminal_spec(void)
{
	static const char *const env[] = {"A=1"};

	return (struct terminal_spec){.flags = TERMINAL_SHARED,
				      .name = "t-1",
				      .uid = 1000,
				      .cols = 80,
				      .rows = 24,
				      .cwd = "/workspace",
				      .env = env,
				      .env_count = 1,
				      .session = "s-1"};
}

static void start_terminal(unsigned flags)
{
	struct terminal_spec spec = terminal_spec();

	spec.flags = flags;
	ASSERT_OK(terminal_start(link_, &spec, &events, NULL, &follow));
	ASSERT_EQ(peer_saw(MSG_open_terminal), 1);
}

#define OPENED              .process_id = wire_text_of("t-1"), .pid = 7
#define EVENT(number, text) .seq = (number), .at_ms = 5, .stream = STREAM_OUT, .bytes = wire_text_of(text)
#define EXITED              .reason = END_EXITED, .code = 3, .text = wire_text_of(""), .seq = 12, .at_ms = 99

TEST(a_log_is_told_in_order_with_its_gaps_and_its_end)
{
	struct msg_open_follow m;

	begin();
	start_follow(FOLLOW_SINCE | FOLLOW_LIVE);
	ASSERT_OK(msg_open_follow_parse(&last, &m));
	ASSERT_STR(m.name.at, "p-1");
	ASSERT_EQ(m.since, 7);
	ASSERT_EQ(m.window, FOLLOW_WINDOW);
	ASSERT_EQ(m.cols, 90);
	PEER_SENDS(1, opened, OPENED);
	PEER_SENDS(1, log_gap, .seq = 10);
	PEER_SENDS(1, log, EVENT(10, "ten"));
	PEER_SENDS(1, log_now);
	PEER_SENDS(1, log, EVENT(11, "eleven"));
	PEER_SENDS(1, end, EXITED);
	run_until(&ended);
	ASSERT_STR(buf_text(&told), "ot-1/7 g10 10:ten n 11:eleven ");
	ASSERT_EQ(end_seen.reason, END_EXITED);
	ASSERT_EQ(end_seen.seq, 12);
	ASSERT_EQ(end_seen.at_ms, 99);
	end();
}

TEST(a_gap_that_was_told_may_grow_before_the_next_event)
{
	begin();
	start_follow(FOLLOW_LIVE);
	PEER_SENDS(1, opened, OPENED);
	PEER_SENDS(1, log_gap, .seq = 10);
	PEER_SENDS(1, log, EVENT(15, "later"));
	settle();
	ASSERT_STR(buf_text(&told), "ot-1/7 g10 15:later ");
	ASSERT_FALSE(lost);
	end();
}

TEST(events_are_paid_for_and_credit_comes_back_in_large_steps)
{
	static char bytes[WIRE_DATA_MAX];
	struct iovec part = {.iov_base = bytes, .iov_len = sizeof bytes};
	struct msg_credit credit;

	begin();
	start_follow(FOLLOW_LIVE);
	PEER_SENDS(1, opened, OPENED);
	for (uint64_t seq = 1; seq <= FOLLOW_WINDOW / sizeof bytes; seq++)
		ASSERT_OK(link_send_log(peer, 1, seq, 5, STREAM_OUT, &part, 1));
	ASSERT_EQ(peer_saw(MSG_credit), 0);
	follow_consumed(follow, FOLLOW_WINDOW / 2 - 1);
	ASSERT_EQ(peer_saw(MSG_credit), 0);
	follow_consumed(follow, 1);
	ASSERT_EQ(peer_saw(MSG_credit), 1);
	ASSERT_OK(msg_credit_parse(&last, &credit));
	ASSERT_EQ(credit.bytes, FOLLOW_WINDOW / 2);
	ASSERT_FALSE(lost);
	end();
}

/* Each of these is answered by cutting the link. */
static void says_event_before_opened(void)
{
	PEER_SENDS(1, log, EVENT(1, "x"));
}

static void says_event_twice(void)
{
	PEER_SENDS(1, opened, OPENED);
	PEER_SENDS(1, log, EVENT(1, "x"));
	PEER_SENDS(1, log, EVENT(1, "x"));
}

static void says_empty_event(void)
{
	PEER_SENDS(1, opened, OPENED);
	PEER_SENDS(1, log, EVENT(1, ""));
}

static void says_event_of_input(void)
{
	PEER_SENDS(1, opened, OPENED);
	PEER_SENDS(1, log, .seq = 1, .stream = STREAM_IN, .bytes = wire_text_of("x"));
}

static void says_gap_backwards(void)
{
	PEER_SENDS(1, opened, OPENED);
	PEER_SENDS(1, log, EVENT(5, "x"));
	PEER_SENDS(1, log_gap, .seq = 5);
}

static void says_now_twice(void)
{
	PEER_SENDS(1, opened, OPENED);
	PEER_SENDS(1, log_now);
	PEER_SENDS(1, log_now);
}

static void says_end_before_opened(void)
{
	PEER_SENDS(1, end, EXITED);
}

static void says_time_of_no_calendar(void)
{
	PEER_SENDS(1, opened, OPENED);
	PEER_SENDS(1, log, .seq = 1, .at_ms = UINT64_MAX, .stream = STREAM_OUT, .bytes = wire_text_of("x"));
}

static void says_more_than_was_paid_for(void)
{
	static char bytes[WIRE_DATA_MAX];
	struct iovec part = {.iov_base = bytes, .iov_len = sizeof bytes};

	PEER_SENDS(1, opened, OPENED);
	for (uint64_t seq = 1; seq <= FOLLOW_WINDOW / sizeof bytes + 1; seq++)
		ASSERT_OK(link_send_log(peer, 1, seq, 5, STREAM_OUT, &part, 1));
	settle();
	ASSERT_OK(link_flush(peer)); /* what the socket did not take at once */
}

TEST(an_agent_that_lies_about_a_log_is_cut_off)
{
	static void (*const lies[])(void) = {
		says_event_before_opened, says_event_twice,         says_empty_event,
		says_event_of_input,      says_gap_backwards,       says_now_twice,
		says_end_before_opened,   says_time_of_no_calendar, says_more_than_was_paid_for};

	for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
		begin();
		start_follow(FOLLOW_LIVE);
		lies[i]();
		run_until(&lost);
		end();
	}
}

TEST(a_terminal_starts_with_all_that_was_asked_for)
{
	struct msg_open_terminal m;

	begin();
	start_terminal(TERMINAL_SHARED);
	ASSERT_OK(msg_open_terminal_parse(&last, &m));
	ASSERT_EQ(m.flags, TERMINAL_SHARED);
	ASSERT_STR(m.name.at, "t-1");
	ASSERT_STR(m.session.at, "s-1");
	ASSERT_STR(m.cwd.at, "/workspace");
	ASSERT_EQ(m.argv.count, 0);
	ASSERT_EQ(m.env.count, 1);
	ASSERT_EQ(m.cols, 80);
	ASSERT_EQ(m.rows, 24);
	end();
}

TEST(keys_wait_for_the_agents_credit)
{
	struct msg_data data;

	begin();
	start_terminal(TERMINAL_SHARED);
	ASSERT_EQ(terminal_room(follow), 0);
	ASSERT_EQ(terminal_input(follow, "abc", 3), 0);
	PEER_SENDS(1, opened, OPENED);
	PEER_SENDS(1, credit, .bytes = 5);
	settle();
	ASSERT_STR(buf_text(&told), "ot-1/7 r ");
	ASSERT_EQ(terminal_room(follow), 5);
	ASSERT_EQ(terminal_input(follow, "abc", 3), 3);
	ASSERT_EQ(terminal_input(follow, "def", 3), 2);
	ASSERT_EQ(terminal_room(follow), 0);
	ASSERT_EQ(peer_saw(MSG_data), 2);
	ASSERT_OK(msg_data_parse(&last, &data));
	ASSERT_EQ(data.stream, STREAM_IN);
	ASSERT_MEM(data.bytes.at, "de", 2);
	end();
}

TEST(a_size_and_a_signal_are_passed_on)
{
	struct msg_resize resize;
	struct msg_signal signal;

	begin();
	start_terminal(TERMINAL_SHARED);
	PEER_SENDS(1, opened, OPENED);
	settle();
	terminal_resize(follow, 131, 47);
	ASSERT_EQ(peer_saw(MSG_resize), 1);
	ASSERT_OK(msg_resize_parse(&last, &resize));
	ASSERT_EQ(resize.cols, 131);
	ASSERT_EQ(resize.rows, 47);
	terminal_signal(follow, 2);
	ASSERT_EQ(peer_saw(MSG_signal), 1);
	ASSERT_OK(msg_signal_parse(&last, &signal));
	ASSERT_EQ(signal.signo, 2);
	end();
}

TEST(a_detached_terminal_is_done_when_it_has_started)
{
	begin();
	start_terminal(TERMINAL_DETACHED);
	PEER_SENDS(1, opened, OPENED);
	PEER_SENDS(1, end, .reason = END_DONE, .text = wire_text_of(""), .at_ms = 42);
	run_until(&ended);
	ASSERT_EQ(end_seen.reason, END_DONE);
	ASSERT_EQ(end_seen.at_ms, 42);
	end();
}

TEST(a_terminal_with_a_long_command_line_travels_in_a_file)
{
	static char script[300000];
	const char *argv[] = {"bash", "-c", script};
	struct terminal_spec spec = terminal_spec();

	begin();
	memset(script, 'x', sizeof script - 1);
	spec.argv = argv;
	spec.argc = 3;
	ASSERT_OK(terminal_start(link_, &spec, &events, NULL, &follow));
	ASSERT_EQ(peer_saw(MSG_open_terminal), 1);
	ASSERT_TRUE(last.flags & FRAME_SPILLED);
	end();
}

TEST(who_lets_go_is_told_nothing_more)
{
	begin();
	start_terminal(TERMINAL_PRIVATE);
	PEER_SENDS(1, opened, OPENED);
	settle();
	follow = follow_drop(follow);
	ASSERT_EQ(peer_saw(MSG_reset), 1);
	PEER_SENDS(1, log, EVENT(1, "x"));
	PEER_SENDS(1, end, EXITED);
	settle();
	ASSERT_STR(buf_text(&told), "ot-1/7 ");
	ASSERT_FALSE(ended || lost);
	end();
}

TEST(the_loss_of_the_link_ends_a_follow)
{
	begin();
	start_follow(FOLLOW_LIVE);
	peer_close();
	run_until(&lost);
	link_ = agent_link_free(link_, END_DELETED, "the sandbox was deleted");
	ASSERT_TRUE(ended);
	ASSERT_EQ(end_seen.reason, END_DELETED);
	end();
}

/* ---- signals and lists ---- */

static void on_done(void *ctx, const struct operation_end *e)
{
	(void)ctx;
	end_seen = *e;
	ended = true;
	loop_stop(loop);
}

TEST(a_signal_goes_to_what_was_named_and_its_answer_comes_back)
{
	struct msg_open_signal m;

	begin();
	ASSERT_TRUE(process_signal(link_, KIND_TERMINAL, "t-1", 15, SIGNAL_TERMINATE, on_done, NULL) != NULL);
	ASSERT_EQ(peer_saw(MSG_open_signal), 1);
	ASSERT_OK(msg_open_signal_parse(&last, &m));
	ASSERT_STR(m.name.at, "t-1");
	ASSERT_EQ(m.kind, KIND_TERMINAL);
	ASSERT_EQ(m.how, SIGNAL_TERMINATE);
	PEER_SENDS(1, end, .reason = END_FAILED, .error = ESRCH, .text = wire_text_of("none"));
	run_until(&ended);
	ASSERT_EQ(end_seen.error, ESRCH);
	end();
}

static unsigned listed;

static void on_process(void *ctx, const struct msg_process *p)
{
	(void)ctx;
	ASSERT_EQ(p->kind, KIND_TERMINAL);
	listed++;
}

TEST(a_list_asks_for_one_kind_and_one_name_however_long_that_is)
{
	static const struct process_list_events list_events = {.on_process = on_process, .on_end = on_done};
	static char name[100000];
	struct msg_open_list m;

	begin();
	memset(name, 'x', sizeof name - 1);
	listed = 0;
	ASSERT_TRUE(process_list_start(link_, KIND_TERMINAL, name, &list_events, NULL) != NULL);
	ASSERT_EQ(peer_saw(MSG_open_list), 1);
	ASSERT_OK(msg_open_list_parse(&last, &m));
	ASSERT_EQ(m.kind, KIND_TERMINAL);
	ASSERT_EQ(m.name.len, 129); /* longer than anything has a name: it matches nothing */
	PEER_SENDS(1, process, .process_id = wire_text_of("t"), .kind = KIND_TERMINAL,
		   .cwd = wire_text_of("/"));
	PEER_SENDS(1, end, .reason = END_DONE, .text = wire_text_of(""));
	run_until(&ended);
	ASSERT_EQ(listed, 1);
	end();
}

TESTS(RUN(a_log_is_told_in_order_with_its_gaps_and_its_end),
      RUN(a_gap_that_was_told_may_grow_before_the_next_event),
      RUN(events_are_paid_for_and_credit_comes_back_in_large_steps),
      RUN(an_agent_that_lies_about_a_log_is_cut_off), RUN(a_terminal_starts_with_all_that_was_asked_for),
      RUN(keys_wait_for_the_agents_credit), RUN(a_size_and_a_signal_are_passed_on),
      RUN(a_detached_terminal_is_done_when_it_has_started),
      RUN(a_terminal_with_a_long_command_line_travels_in_a_file), RUN(who_lets_go_is_told_nothing_more),
      RUN(the_loss_of_the_link_ends_a_follow), RUN(a_signal_goes_to_what_was_named_and_its_answer_comes_back),
      RUN(a_list_asks_for_one_kind_and_one_name_however_long_that_is))

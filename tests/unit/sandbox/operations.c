#include "sandbox/operations.h"

#include "sandbox/peer.h"

#include "base/buf.h"
#include "base/mem.h"
#include "sandbox/agent_link.h"

static struct agent_link *link_;
static bool lost;
static char lost_why[80];

static void on_lost(void *ctx, const char *why)
{
	(void)ctx;
	snprintf(lost_why, sizeof lost_why, "%s", why);
	lost = true;
	loop_stop(loop);
}

/* ---- one command, and what it was told ---- */

static struct exec *command;
static struct buf output;
static char process_id[64];
static bool started, ended;
static struct operation_end end_seen;
static char end_text[100];

static void on_started(void *ctx, const char *id, uint32_t pid)
{
	(void)ctx, (void)pid;
	ASSERT_FALSE(started);
	snprintf(process_id, sizeof process_id, "%s", id);
	started = true;
}

static void on_output(void *ctx, enum wire_stream stream, const void *bytes, size_t len)
{
	(void)ctx, (void)stream;
	ASSERT_OK(buf_add(&output, bytes, len));
}

static void on_end(void *ctx, const struct operation_end *end)
{
	(void)ctx;
	ASSERT_FALSE(ended);
	end_seen = *end;
	snprintf(end_text, sizeof end_text, "%s", end->text);
	ended = true;
	command = NULL;
	loop_stop(loop);
}

static const struct exec_events events = {.on_started = on_started, .on_output = on_output, .on_end = on_end};

static void begin(void)
{
	loop_begin();
	peer_open(ROLE_AGENT);
	lost = started = ended = false;
	output = buf_with_cap(1 << 20);
	link_ = agent_link_new(loop, ours, on_lost, NULL);
}

static void end(void)
{
	agent_link_free(link_, END_LOST, "the test ends");
	buf_done(&output);
	peer_close();
	loop_end();
}

static void run(const char *input)
{
	static const char *const argv[] = {"echo", "hi"};
	struct exec_spec spec = {.uid = 1000,
				 .cwd = "/workspace",
				 .argv = argv,
				 .argc = 2,
				 .input = input,
				 .input_len = input ? strlen(input) : 0};

	ASSERT_OK(exec_start(link_, &spec, &events, NULL, &command));
}

#define OPENED .process_id = wire_text_of("p-1"), .pid = 7
#define EXITED .reason = END_EXITED, .code = 3, .text = wire_text_of("")

TEST(a_command_goes_out_and_its_end_comes_back)
{
	struct msg_open_exec m;

	begin();
	run(NULL);
	ASSERT_EQ(peer_saw(MSG_open_exec), 1);
	ASSERT_OK(msg_open_exec_parse(&last, &m));
	ASSERT_EQ(m.argv.count, 2);
	ASSERT_EQ(m.window, EXEC_WINDOW);
	ASSERT_FALSE(started);
	PEER_SENDS(last.channel, opened, OPENED);
	PEER_SENDS(last.channel, data, .stream = STREAM_OUT, .bytes = wire_text_of("hi\n"));
	PEER_SENDS(last.channel, end, EXITED);
	run_until(&ended);
	ASSERT_STR(process_id, "p-1");
	ASSERT_MEM(output.data, "hi\n", 3);
	ASSERT_EQ(end_seen.reason, END_EXITED);
	ASSERT_EQ(end_seen.code, 3);
	end();
}

TEST(credit_is_given_back_only_for_what_was_dealt_with)
{
	static char bytes[WIRE_DATA_MAX];
	struct iovec part = {.iov_base = bytes, .iov_len = sizeof bytes};
	struct msg_credit credit;

	begin();
	run(NULL);
	ASSERT_EQ(peer_saw(MSG_open_exec), 1);
	uint32_t channel = last.channel;
	PEER_SENDS(channel, opened, OPENED);
	for (unsigned sent = 0; sent < EXEC_WINDOW; sent += sizeof bytes)
		ASSERT_OK(link_send_data(peer, channel, STREAM_OUT, &part, 1));
	ASSERT_EQ(peer_saw(MSG_credit), 0);
	ASSERT_EQ(output.len, EXEC_WINDOW);
	exec_consumed(command, 10);
	ASSERT_EQ(peer_saw(MSG_credit), 0);
	exec_consumed(command, EXEC_WINDOW - 10);
	ASSERT_EQ(peer_saw(MSG_credit), 1);
	ASSERT_OK(msg_credit_parse(&last, &credit));
	ASSERT_EQ(credit.bytes, EXEC_WINDOW);
	ASSERT_FALSE(lost);
	end();
}

TEST(stdin_waits_for_the_agents_credit_and_ends)
{
	struct msg_data data;

	begin();
	run("abcdef");
	ASSERT_EQ(peer_saw(MSG_data), 0);
	PEER_SENDS(1, opened, OPENED);
	PEER_SENDS(1, credit, .bytes = 4);
	ASSERT_EQ(peer_saw(MSG_data), 1);
	ASSERT_OK(msg_data_parse(&last, &data));
	ASSERT_MEM(data.bytes.at, "abcd", 4);
	PEER_SENDS(1, credit, .bytes = 100);
	ASSERT_EQ(peer_saw(MSG_eof), 1);
	ASSERT_FALSE(lost);
	end();
}

TEST(an_empty_stdin_is_at_its_end_at_once)
{
	begin();
	run("");
	ASSERT_EQ(peer_saw(MSG_eof), 1);
	end();
}

TEST(a_command_that_is_larger_than_a_packet_travels_in_a_file)
{
	static char script[300000];
	const char *argv[] = {"bash", "-c", script};
	struct exec_spec spec = {.cwd = "/workspace", .argv = argv, .argc = 3};

	begin();
	memset(script, 'x', sizeof script - 1);
	ASSERT_OK(exec_start(link_, &spec, &events, NULL, &command));
	ASSERT_EQ(peer_saw(MSG_open_exec), 1);
	ASSERT_TRUE(last.flags & FRAME_SPILLED);
	ASSERT_FALSE(lost);
	end();
}

TEST(a_detached_command_is_reset_and_what_still_comes_is_ignored)
{
	struct msg_reset reset;

	begin();
	run(NULL);
	command = exec_detach(command, true);
	ASSERT_EQ(peer_saw(MSG_reset), 1);
	ASSERT_OK(msg_reset_parse(&last, &reset));
	ASSERT_EQ(reset.kill, 1);
	PEER_SENDS(1, opened, OPENED);
	PEER_SENDS(1, end, EXITED);
	settle();
	ASSERT_FALSE(started || ended || lost);
	end();
}

TEST(the_loss_of_the_link_ends_every_operation)
{
	begin();
	run(NULL);
	peer_close();
	run_until(&lost);
	ASSERT_STR(lost_why, "its agent is gone");
	ASSERT_FALSE(ended);
	link_ = agent_link_free(link_, END_DELETED, "the sandbox was deleted");
	ASSERT_TRUE(ended);
	ASSERT_EQ(end_seen.reason, END_DELETED);
	ASSERT_STR(end_text, "the sandbox was deleted");
	end();
}

TEST(an_end_that_was_sent_before_the_agent_died_still_counts)
{
	begin();
	run(NULL);
	ASSERT_EQ(peer_saw(MSG_open_exec), 1);
	PEER_SENDS(1, opened, OPENED);
	PEER_SENDS(1, end, EXITED);
	peer_close();
	run_until(&lost);
	ASSERT_TRUE(ended);
	ASSERT_EQ(end_seen.reason, END_EXITED);
	end();
}

/* ---- lies ---- */

#define CUTS(...) \
	do { \
		begin(); \
		run("in"); \
		__VA_ARGS__; \
		run_until(&lost); \
		ASSERT_STR(lost_why, "its agent broke the protocol"); \
		ASSERT_FALSE(ended); \
		end(); \
		ASSERT_TRUE(ended); \
	} while (0)

TEST(an_agent_that_says_what_it_may_not_is_cut_off)
{
	CUTS(PEER_SENDS(1, data, .stream = STREAM_OUT, .bytes = wire_text_of("before it is open")));
	CUTS(PEER_SENDS(1, opened, OPENED); PEER_SENDS(1, opened, OPENED));
	CUTS(PEER_SENDS(1, opened, OPENED);
	     PEER_SENDS(1, data, .stream = STREAM_IN, .bytes = wire_text_of("x")));
	CUTS(PEER_SENDS(1, opened, OPENED); PEER_SENDS(1, data, .stream = 77, .bytes = wire_text_of("x")));
	CUTS(PEER_SENDS(1, end, .reason = 99, .text = wire_text_of("")));
	CUTS(PEER_SENDS(1, end, .reason = END_DONE, .text = wire_text_of("")));
	CUTS(PEER_SENDS(1, end, EXITED));
	CUTS(PEER_SENDS(1, opened, OPENED);
	     PEER_SENDS(1, end, .reason = END_EXITED, .code = 256, .text = wire_text_of("")));
	CUTS(PEER_SENDS(1, opened, OPENED);
	     PEER_SENDS(1, end, .reason = END_SIGNAL, .signo = -1, .text = wire_text_of("")));
	CUTS(PEER_SENDS(1, credit, .bytes = UINT32_MAX));
	CUTS(PEER_SENDS(1, limits_wanted));
	CUTS(PEER_SENDS(0, hello, .version = WIRE_VERSION, .oldest = WIRE_OLDEST, .role = ROLE_KEEPER,
			.build = wire_text_of("")));
}

TEST(an_agent_may_greet_twice_for_the_keeper_greeted_it_too)
{
	begin();
	PEER_SENDS(0, hello, .version = WIRE_VERSION, .oldest = WIRE_OLDEST, .role = ROLE_AGENT,
		   .build = wire_text_of(""));
	run(NULL);
	PEER_SENDS(1, opened, OPENED);
	settle();
	ASSERT_TRUE(started && !lost);
	end();
}

TEST(an_agent_that_sends_more_than_was_paid_for_is_cut_off)
{
	static char bytes[WIRE_DATA_MAX];
	struct iovec part = {.iov_base = bytes, .iov_len = sizeof bytes},
		     one = {.iov_base = bytes, .iov_len = 1};

	begin();
	run(NULL);
	PEER_SENDS(1, opened, OPENED);
	for (unsigned sent = 0; sent < EXEC_WINDOW; sent += sizeof bytes)
		ASSERT_OK(link_send_data(peer, 1, STREAM_OUT, &part, 1));
	settle();
	ASSERT_OK(link_send_data(peer, 1, STREAM_OUT, &one, 1));
	run_until(&lost);
	ASSERT_EQ(output.len, EXEC_WINDOW);
	end();
}

TEST(an_agent_that_does_not_greet_is_cut_off)
{
	int pair[2];

	loop_begin();
	lost = started = ended = false;
	ASSERT_OK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	peer = link_new(pair[1]);
	output = buf_with_cap(1);
	link_ = agent_link_new(loop, pair[0], on_lost, NULL);
	run(NULL);
	PEER_SENDS(1, opened, OPENED);
	run_until(&lost);
	ASSERT_FALSE(started);
	end();
}

/* ---- files ---- */

static int file_fd;
static bool file_opened;
static char file_content[16];

static void on_opened(void *ctx, int fd, const struct stat *st, const char *content)
{
	(void)ctx;
	file_content[0] = '\0';
	if (content) (void)snprintf(file_content, sizeof file_content, "%.*s", (int)st->st_size, content);
	file_fd = fd;
	file_opened = true;
	loop_stop(loop);
}

static const struct file_events file_events = {.on_opened = on_opened, .on_end = on_end};

static int make_file(void)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	ASSERT_EQ(write(fd, "bytes", 5), 5);
	return fd;
}

TEST(a_file_that_was_opened_for_reading_is_ours)
{
	int fd = make_file();

	begin();
	file_opened = false;
	assert_non_null(file_open_read(link_, 1000, "/workspace/f", &file_events, NULL));
	PEER_SENDS_FDS(1, opened, &fd, 1, .process_id = wire_text_of(""));
	PEER_SENDS(1, end, .reason = END_DONE, .text = wire_text_of(""));
	run_until(&file_opened);
	settle();
	ASSERT_FALSE(ended || lost);
	close(file_fd);
	close(fd);
	end();
	ASSERT_FALSE(ended);
}

TEST(the_content_that_comes_along_is_taken_only_if_it_is_all)
{
	static const char *const sent[] = {"bytes", "byte", ""}, *const taken[] = {"bytes", "", ""};
	int fd = make_file();

	begin();
	for (uint32_t i = 0; i < ARRAY_LEN(sent); i++) {
		file_opened = false;
		assert_non_null(file_open_read(link_, 1000, "/workspace/f", &file_events, NULL));
		PEER_SENDS_FDS(i + 1, opened, &fd, 1, .process_id = wire_text_of(""),
			       .content = wire_text_of(sent[i]));
		run_until(&file_opened);
		ASSERT_STR(file_content, taken[i]);
		close(file_fd);
	}
	close(fd);
	end();
}

TEST(a_small_file_is_written_with_one_message)
{
	begin();
	assert_non_null(file_write_whole(link_, 1000, "/workspace/f", 0644, "bytes", 5, &file_events, NULL));
	ASSERT_EQ(peer_saw(MSG_open_write), 1);
	ASSERT_FALSE(ended);
	PEER_SENDS(1, end, .reason = END_DONE, .text = wire_text_of(""));
	run_until(&ended);
	ASSERT_EQ(end_seen.reason, END_DONE);
	end();
}

TEST(an_opening_that_a_whole_write_did_not_ask_for_cuts_the_link)
{
	int fd = make_file();

	begin();
	assert_non_null(file_write_whole(link_, 1000, "/workspace/f", 0644, "bytes", 5, &file_events, NULL));
	PEER_SENDS_FDS(1, opened, &fd, 1, .process_id = wire_text_of(""));
	run_until(&lost);
	close(fd);
	end();
}

TEST(a_file_is_in_its_place_only_when_the_agent_says_so)
{
	int fd = make_file();

	begin();
	file_opened = false;
	struct file_operation *op = file_open_write(link_, 1000, "/workspace/f", 0644, &file_events, NULL);
	PEER_SENDS_FDS(1, opened, &fd, 1, .process_id = wire_text_of(""));
	run_until(&file_opened);
	file_operation_commit(op);
	ASSERT_EQ(peer_saw(MSG_commit), 1);
	ASSERT_FALSE(ended);
	PEER_SENDS(1, end, .reason = END_DONE, .text = wire_text_of(""));
	run_until(&ended);
	ASSERT_EQ(end_seen.reason, END_DONE);
	close(file_fd);
	close(fd);
	end();
}

TEST(a_failure_to_open_tells_errno_and_why)
{
	begin();
	assert_non_null(file_open_read(link_, 1000, "/workspace/f", &file_events, NULL));
	PEER_SENDS(1, end, .reason = END_FAILED, .error = -ENOENT, .text = wire_text_of("no such file"));
	run_until(&ended);
	ASSERT_EQ(end_seen.error, ENOENT);
	ASSERT_STR(end_text, "no such file");
	end();
}

TEST(a_descriptor_that_is_no_regular_file_cuts_the_link)
{
	int pipes[2];

	ASSERT_OK(pipe(pipes));
	begin();
	assert_non_null(file_open_read(link_, 1000, "/workspace/f", &file_events, NULL));
	PEER_SENDS_FDS(1, opened, pipes, 1, .process_id = wire_text_of(""));
	run_until(&lost);
	end();
	close(pipes[0]);
	close(pipes[1]);
}

TEST(an_opening_without_a_descriptor_cuts_the_link)
{
	begin();
	assert_non_null(file_open_read(link_, 1000, "/workspace/f", &file_events, NULL));
	PEER_SENDS(1, opened, .process_id = wire_text_of(""));
	run_until(&lost);
	end();
}

TEST(no_more_channels_are_opened_than_an_agent_takes)
{
	begin();
	for (unsigned i = 0; i < CHANNELS_OPEN_MAX; i++)
		assert_non_null(file_open_read(link_, 1000, "/f", &file_events, NULL));
	assert_null(file_open_read(link_, 1000, "/f", &file_events, NULL));
	ended = true; /* on_end allows one only; here they are many */
	for (unsigned i = 1; i <= CHANNELS_OPEN_MAX; i++) {
		ended = false;
		PEER_SENDS(i, end, .reason = END_FAILED, .error = ENOENT, .text = wire_text_of(""));
		run_until(&ended);
		if (i % 500 == 0) (void)peer_saw(MSG_open_read);
	}
	ASSERT_FALSE(lost);
	end();
}

TESTS(RUN(a_command_goes_out_and_its_end_comes_back), RUN(credit_is_given_back_only_for_what_was_dealt_with),
      RUN(stdin_waits_for_the_agents_credit_and_ends), RUN(an_empty_stdin_is_at_its_end_at_once),
      RUN(a_command_that_is_larger_than_a_packet_travels_in_a_file),
      RUN(a_detached_command_is_reset_and_what_still_comes_is_ignored),
      RUN(the_loss_of_the_link_ends_every_operation),
      RUN(an_end_that_was_sent_before_the_agent_died_still_counts),
      RUN(an_agent_that_says_what_it_may_not_is_cut_off),
      RUN(an_agent_may_greet_twice_for_the_keeper_greeted_it_too),
      RUN(an_agent_that_sends_more_than_was_paid_for_is_cut_off),
      RUN(an_agent_that_does_not_greet_is_cut_off), RUN(a_file_that_was_opened_for_reading_is_ours),
      RUN(the_content_that_comes_along_is_taken_only_if_it_is_all),
      RUN(a_small_file_is_written_with_one_message),
      RUN(an_opening_that_a_whole_write_did_not_ask_for_cuts_the_link),
      RUN(a_file_is_in_its_place_only_when_the_agent_says_so), RUN(a_failure_to_open_tells_errno_and_why),
      RUN(a_descriptor_that_is_no_regular_file_cuts_the_link),
      RUN(an_opening_without_a_descriptor_cuts_the_link),
      RUN(no_more_channels_are_opened_than_an_agent_takes))

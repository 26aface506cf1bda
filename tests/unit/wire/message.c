#include "wire/message.h"

#include "unit.h"

static uint8_t room[WIRE_PACKET_MAX];

static struct frame only_frame(const struct packet *p)
{
	struct frame_reader r = frame_reader_of(p->bytes, p->len);
	struct frame f, none;

	ASSERT_EQ(frame_reader_next(&r, &f), 1);
	ASSERT_EQ(frame_reader_next(&r, &none), 0);
	return f;
}

TEST(a_message_with_every_kind_of_field_comes_back_as_it_was)
{
	const char *argv[] = {"sh", "-c", "", "\xff\xfe odd"};
	struct msg_open_exec sent = {.flags = EXEC_STDIN,
				     .uid = 1000,
				     .timeout_ms = 1ull << 40,
				     .window = 65536,
				     .cwd = wire_text_of("/workspace"),
				     .argv = {.items = argv, .count = 4}};
	struct packet p = {.bytes = room, .room = sizeof room};
	struct msg_open_exec got;
	const uint8_t *at;

	ASSERT_OK(msg_open_exec_add(&p, 7, &sent));
	struct frame f = only_frame(&p);
	ASSERT_EQ(f.channel, 7);
	ASSERT_EQ(f.type, MSG_open_exec);
	ASSERT_OK(msg_open_exec_parse(&f, &got));
	ASSERT_EQ(got.timeout_ms, 1ull << 40);
	ASSERT_STR(got.cwd.at, "/workspace");
	ASSERT_EQ(got.argv.count, 4);
	at = got.argv.packed;
	for (int i = 0; i < 4; i++)
		ASSERT_STR(wire_list_next(&got.argv, &at, NULL), argv[i]);
	ASSERT_TRUE(wire_list_next(&got.argv, &at, NULL) == NULL);
	ASSERT_EQ(got.env.count, 0);
}

TEST(fields_that_an_older_writer_did_not_send_are_zero)
{
	struct packet p = {.bytes = room, .room = sizeof room};
	struct msg_end sent = {.reason = END_SIGNAL, .code = 137, .signo = 9}, got;

	ASSERT_OK(msg_end_add(&p, 1, &sent));
	struct frame f = only_frame(&p);
	f.len = 1 + 4; /* reason and code only */
	ASSERT_OK(msg_end_parse(&f, &got));
	ASSERT_EQ(got.code, 137);
	ASSERT_EQ(got.signo, 0);
	ASSERT_STR(got.text.at, "");
	f.len = 3; /* in the middle of a field */
	ASSERT_EQ(msg_end_parse(&f, &got), -EPROTO);
}

TEST(a_text_with_a_nul_inside_is_refused)
{
	struct packet p = {.bytes = room, .room = sizeof room};
	struct msg_open_read sent = {.path = {.at = "a\0b", .len = 3}}, got;

	ASSERT_OK(msg_open_read_add(&p, 1, &sent));
	struct frame f = only_frame(&p);
	ASSERT_EQ(msg_open_read_parse(&f, &got), -EPROTO);
}

TEST(a_list_that_lies_about_its_count_is_refused)
{
	const char *items[] = {"one", "two"};
	struct packet p = {.bytes = room, .room = sizeof room};
	struct msg_ready sent = {.faults = {.items = items, .count = 2}}, got;

	ASSERT_OK(msg_ready_add(&p, 0, &sent));
	for (int wrong = 0; wrong < 6; wrong++) {
		if (wrong == 2) continue;
		room[WIRE_HEADER + 4] = (uint8_t)wrong;
		struct frame f = only_frame(&p);
		ASSERT_EQ(msg_ready_parse(&f, &got), -EPROTO);
	}
}

TEST(a_full_packet_refuses_and_stays_as_it_was)
{
	struct packet p = {.bytes = room, .room = WIRE_HEADER + 4};
	struct msg_credit m = {.bytes = 5};

	ASSERT_OK(msg_credit_add(&p, 1, &m));
	ASSERT_EQ(msg_credit_add(&p, 1, &m), -EMSGSIZE);
	ASSERT_EQ(p.len, WIRE_HEADER + 4);
}

TEST(a_cut_packet_is_no_packet)
{
	struct packet p = {.bytes = room, .room = sizeof room};
	struct msg_open_read sent = {.path = wire_text_of("/workspace/x")};
	struct frame f;

	ASSERT_OK(msg_open_read_add(&p, 1, &sent));
	for (size_t len = 1; len < p.len; len++) {
		struct frame_reader r = frame_reader_of(p.bytes, len);
		ASSERT_EQ(frame_reader_next(&r, &f), -EPROTO);
	}
}

TESTS(RUN(a_message_with_every_kind_of_field_comes_back_as_it_was),
      RUN(fields_that_an_older_writer_did_not_send_are_zero), RUN(a_text_with_a_nul_inside_is_refused),
      RUN(a_list_that_lies_about_its_count_is_refused), RUN(a_full_packet_refuses_and_stays_as_it_was),
      RUN(a_cut_packet_is_no_packet))

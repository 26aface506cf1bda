/* rig_talk.c - what the rig says as keeper and as front, and what it makes of the answers. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "rig_private.h"
#include "unit.h"

/* ---- what comes ---- */

static struct run *run_of(uint32_t channel)
{
	struct run *r = rig.runs;

	while (r && r->channel != channel)
		r = r->next;
	return r;
}

static void on_data(struct run *r, const struct frame *f)
{
	struct msg_data m;

	ASSERT_OK(msg_data_parse(f, &m));
	r->data_after_end |= r->ended;
	*(m.stream == STREAM_OUT ? &r->out_bytes : &r->err_bytes) += m.bytes.len;
	if (!r->discard)
		ASSERT_OK(buf_add(m.stream == STREAM_OUT ? &r->out : &r->err, m.bytes.at, m.bytes.len));
	if (!r->no_credit) rig_credit(r, m.bytes.len);
}

static void on_log(struct run *r, const struct frame *f)
{
	struct msg_log m;

	ASSERT_OK(msg_log_parse(f, &m));
	ASSERT_TRUE(m.seq > r->last_seq && m.bytes.len > 0 && m.at_ms > 0);
	if (!r->first_seq) r->first_seq = m.seq;
	r->last_seq = m.seq;
	r->data_after_end |= r->ended;
	*(m.stream == STREAM_OUT ? &r->out_bytes : &r->err_bytes) += m.bytes.len;
	if (!r->discard)
		ASSERT_OK(buf_add(m.stream == STREAM_OUT ? &r->out : &r->err, m.bytes.at, m.bytes.len));
	if (!r->no_credit) rig_credit(r, m.bytes.len);
}

static void on_gap(struct run *r, const struct frame *f)
{
	struct msg_log_gap m;

	ASSERT_OK(msg_log_gap_parse(f, &m));
	ASSERT_TRUE(m.seq > r->last_seq);
	r->gap_seq = m.seq;
	r->gaps++;
	r->gap_after_now |= r->now;
}

static void on_end(struct run *r, const struct frame *f)
{
	ASSERT_FALSE(r->ended);
	ASSERT_OK(msg_end_parse(f, &r->end));
	(void)snprintf(r->end_text, sizeof r->end_text, "%s", r->end.text.at);
	r->ended = true;
	r->ended_ms = clock_ms();
}

static int on_front_packet(void *ctx, const uint8_t *bytes, size_t len, int *fds, size_t fd_count)
{
	struct frame_reader reader = frame_reader_of(bytes, len);
	struct msg_credit credit;
	struct frame f;

	(void)ctx;
	while (frame_reader_next(&reader, &f) == 1) {
		struct run *r = run_of(f.channel);

		if (f.type == MSG_hello) rig.hello_came = true;
		if (!r) continue;
		switch (f.type) {
		case MSG_opened:
			ASSERT_OK(msg_opened_parse(&f, &r->about));
			ASSERT_OK(buf_add(&r->out, r->about.content.at, r->about.content.len));
			(void)snprintf(r->process_id, sizeof r->process_id, "%s", r->about.process_id.at);
			r->opened = true;
			if (fd_count) r->fd = take_fd(&fds[0]);
			break;
		case MSG_data: on_data(r, &f); break;
		case MSG_end: on_end(r, &f); break;
		case MSG_credit:
			ASSERT_OK(msg_credit_parse(&f, &credit));
			r->input_credit += credit.bytes;
			break;
		case MSG_log: on_log(r, &f); break;
		case MSG_log_gap: on_gap(r, &f); break;
		case MSG_log_now:
			ASSERT_FALSE(r->now);
			r->now = true;
			r->out_at_now = r->out.len;
			break;
		case MSG_process:
			ASSERT_OK(msg_process_parse(&f, &r->last_process));
			r->processes++;
			break;
		default: fail();
		}
	}
	return 0;
}

static void give_limits(void)
{
	struct msg_limits m = {.cgroup_version = (uint8_t)cgroups_version(rig.cgroups),
			       .text = wire_text_of("")};
	const struct limits none = {0};
	struct err e = ERR_NONE;
	size_t count = 0;
	int fds[3];

	rig.limits_wanted++;
	if (rig.limits_refusal) {
		m.error = ENOSPC;
		m.text = wire_text_of(rig.limits_refusal);
		ASSERT_OK(LINK_SEND(rig.bond, 0, limits, &m, NULL, 0));
		return;
	}
	if (cgroup_make(rig.cgroups, RIG_RUN, &none, BASE_ID, fds, &e) < 0) fail_msg("%s", e.text);
	for (; count < 3 && fds[count] >= 0; count++)
		m.present |= 1u << count;
	ASSERT_OK(LINK_SEND(rig.bond, 0, limits, &m, fds, count));
	while (count--)
		fd_close(fds[count]);
}

static int on_bond_packet(void *ctx, const uint8_t *bytes, size_t len, int *fds, size_t fd_count)
{
	struct frame_reader reader = frame_reader_of(bytes, len);
	struct msg_spawned spawned;
	struct msg_bound bound;
	struct frame f;

	(void)ctx;
	(void)fds;
	(void)fd_count;
	while (frame_reader_next(&reader, &f) == 1) {
		if (f.type == MSG_limits_wanted) give_limits();
		if (f.type == MSG_limits_idle) rig.limits_idle++;
		if (f.type == MSG_hello) rig.hello_came = true;
		if (f.type == MSG_spawned && msg_spawned_parse(&f, &spawned) == 0) rig.spawned = spawned.pid;
		if (f.type == MSG_bound && msg_bound_parse(&f, &bound) == 0) {
			rig.bound = bound.error;
			(void)snprintf(rig.bound_text, sizeof rig.bound_text, "%s", bound.text.at);
		}
	}
	return 0;
}

void rig_pump(int timeout_ms)
{
	struct pollfd p[3] = {
		{.fd = rig.front && !rig.front_lost ? link_fd(rig.front) : -1, .events = POLLIN},
		{.fd = rig.bond ? link_fd(rig.bond) : -1, .events = POLLIN},
		{.fd = link_fd(rig.control), .events = POLLIN}};

	if (rig.front && link_wants_out(rig.front)) p[0].events |= POLLOUT;
	(void)poll(p, 3, timeout_ms);
	if (p[0].revents & POLLOUT) (void)link_flush(rig.front);
	if (p[0].revents && link_read(rig.front, 64, on_front_packet, NULL) < 0) rig.front_lost = true;
	if (p[1].revents && link_read(rig.bond, 8, on_bond_packet, NULL) < 0) rig_drop_bond();
	if (p[2].revents) ASSERT_OK(link_read(rig.control, 8, on_bond_packet, NULL));
}

void rig_until(bool (*condition)(const struct run *r), const struct run *r)
{
	uint64_t until = clock_ms() + WAIT_MS;

	while (!condition(r)) {
		uint64_t now = clock_ms();

		if (now >= until) {
			fail_msg("nothing came for %d s; output so far: %s", WAIT_MS / 1000,
				 r ? buf_text((struct buf *)&r->out) : "");
		}
		rig_pump((int)(until - now));
	}
}

bool run_ended(const struct run *r)
{
	return r->ended;
}

bool run_opened(const struct run *r)
{
	return r->opened || r->ended;
}

/* ---- what is sent ---- */

struct msg_open_exec rig_exec(const char *const *argv, uint32_t argc)
{
	return (struct msg_open_exec){.uid = 1000,
				      .grace_ms = 300,
				      .window = RIG_WINDOW,
				      .cwd = wire_text_of("/workspace"),
				      .argv = {.items = argv, .count = argc}};
}

void run_begin(struct run *r)
{
	r->channel = ++rig.last_channel;
	r->link = rig.front;
	r->fd = -1;
	r->out = buf_with_cap(64 << 20);
	r->err = buf_with_cap(64 << 20);
	r->next = rig.runs;
	rig.runs = r;
}

void rig_start(struct run *r, const struct msg_open_exec *m)
{
	struct packet p = {.room = WIRE_HEADER + msg_open_exec_size(m)};
	auto_free uint8_t *room = mem_new(p.room);

	p.bytes = room;
	run_begin(r);
	ASSERT_OK(msg_open_exec_add(&p, r->channel, m));
	if (p.len > WIRE_PACKET_MAX) ASSERT_OK(link_send_spilled(rig.front, &p));
	else ASSERT_OK(link_send(rig.front, &p, NULL, 0));
}

void rig_start_file(struct run *r, bool write, uint32_t uid, const char *path)
{
	run_begin(r);
	if (write) {
		struct msg_open_write m = {.uid = uid, .path = wire_text_of(path)};

		ASSERT_OK(LINK_SEND(rig.front, r->channel, open_write, &m, NULL, 0));
	} else {
		struct msg_open_read m = {.uid = uid, .path = wire_text_of(path)};

		ASSERT_OK(LINK_SEND(rig.front, r->channel, open_read, &m, NULL, 0));
	}
}

void rig_start_whole(struct run *r, uint32_t uid, const char *path, const char *text)
{
	struct msg_open_write m = {
		.uid = uid, .path = wire_text_of(path), .whole = 1, .content = wire_text_of(text)};

	run_begin(r);
	ASSERT_OK(LINK_SEND(rig.front, r->channel, open_write, &m, NULL, 0));
}

void rig_start_list(struct run *r)
{
	run_begin(r);
	ASSERT_OK(LINK_SEND(rig.front, r->channel, open_list, &(struct msg_open_list){}, NULL, 0));
}

void rig_forget(struct run *r)
{
	for (struct run **at = &rig.runs; *at; at = &(*at)->next) {
		if (*at != r) continue;
		*at = r->next;
		return;
	}
}

void run_done(struct run *r)
{
	rig_forget(r);
	buf_done(&r->out);
	buf_done(&r->err);
	if (r->channel) fd_close(r->fd);
}

void rig_credit(struct run *r, uint32_t bytes)
{
	(void)LINK_SEND(r->link, r->channel, credit, &((struct msg_credit){.bytes = bytes}), NULL, 0);
}

static bool may_send(const struct run *r)
{
	return r->input_credit > 0 || r->ended;
}

void rig_input(struct run *r, const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len && !r->ended) {
		rig_until(may_send, r);
		size_t n = MIN(MIN(len, (size_t)r->input_credit), (size_t)WIRE_DATA_MAX);
		struct iovec part = {.iov_base = (char *)at, .iov_len = n};

		ASSERT_OK(link_send_data(r->link, r->channel, STREAM_IN, &part, 1));
		r->input_credit -= n;
		at += n;
		len -= n;
	}
}

void rig_input_end(struct run *r)
{
	ASSERT_OK(LINK_SEND(r->link, r->channel, eof, &(struct msg_eof){.stream = STREAM_IN}, NULL, 0));
}

void rig_signal(struct run *r, int signo)
{
	ASSERT_OK(LINK_SEND(r->link, r->channel, signal, &(struct msg_signal){.signo = signo}, NULL, 0));
}

void rig_reset(struct run *r, bool kill)
{
	ASSERT_OK(LINK_SEND(r->link, r->channel, reset, &(struct msg_reset){.kill = kill}, NULL, 0));
}

void rig_commit(struct run *r)
{
	ASSERT_OK(LINK_SEND(r->link, r->channel, commit, &(struct msg_commit){}, NULL, 0));
}

void rig_run(struct run *r, const struct msg_open_exec *m)
{
	rig_start(r, m);
	rig_until(run_ended, r);
}

/* ---- other links ---- */

static bool hello_or_lost(const struct run *r)
{
	(void)r;
	return rig.hello_came || rig.front_lost;
}

struct link *rig_connect(const char *cookie, enum wire_role role)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	struct msg_hello m = {.version = WIRE_VERSION,
			      .oldest = WIRE_OLDEST,
			      .role = (uint8_t)role,
			      .cookie = wire_text_of(cookie),
			      .build = wire_text_of("test")};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct link *before = rig.front, *l;
	bool was_lost = rig.front_lost;

	memcpy(to.sun_path, rig.socket, sizeof rig.socket);
	ASSERT_OK(connect(fd, (struct sockaddr *)&to, sizeof to));
	l = rig.front = link_new(fd);
	rig.front_lost = rig.hello_came = false;
	ASSERT_OK(LINK_SEND(l, 0, hello, &m, NULL, 0));
	rig_until(hello_or_lost, NULL);
	if (rig.front_lost) l = link_free(l);
	rig.front = before;
	rig.front_lost = was_lost;
	return l;
}

void rig_use_front(struct link *l)
{
	rig.front = link_free(rig.front);
	rig.front = l;
	rig.front_lost = false;
}

void rig_drop_bond(void)
{
	rig.bond = link_free(rig.bond);
}

void rig_take_bond(struct link *l)
{
	rig.bond = l;
}

/* rig_front.c - playing the front: what it says to the keeper, and what it hears. */
#include "rig_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "unit.h"

void rig_hang_up(struct rig *r)
{
	r->control = link_free(r->control);
	r->front_fd = fd_close(r->front_fd);
}

static int receive_fd(int socket_fd)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec io = {.iov_base = &byte, .iov_len = 1};
	struct msghdr msg = {.msg_iov = &io,
			     .msg_iovlen = 1,
			     .msg_control = control.room,
			     .msg_controllen = sizeof control.room};
	int fd;

	ASSERT_EQ(recvmsg(socket_fd, &msg, MSG_CMSG_CLOEXEC), 1);
	ASSERT_TRUE(CMSG_FIRSTHDR(&msg) != NULL);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof fd);
	return fd;
}

static void say_hello(struct link *l, enum wire_role role)
{
	struct msg_hello m = {.version = WIRE_VERSION, .oldest = WIRE_OLDEST, .role = (uint8_t)role};

	ASSERT_OK(LINK_SEND(l, 0, hello, &m, NULL, 0));
}

unsigned rig_meet_front(struct rig *r, char *runs, size_t size)
{
	unsigned attached = 0;
	size_t len = 0;

	rig_hang_up(r);
	rig_wait_for_input(r->front_listen_fd, "a front");
	r->front_fd = accept4(r->front_listen_fd, NULL, NULL, SOCK_CLOEXEC);
	ASSERT_TRUE(r->front_fd >= 0);
	rig_wait_for_input(r->front_fd, "the control link");
	r->control = link_new(receive_fd(r->front_fd));
	say_hello(r->control, ROLE_FRONT);
	for (;;) {
		struct said s = rig_hear(r);

		if (s.type == MSG_ready) return attached;
		/* What an earlier front knew is told, too: tests that care look for it in RUNS. */
		if (s.type == MSG_asleep || s.type == MSG_gone || s.type == MSG_issued) {
			if (runs)
				len += (size_t)snprintf(runs + len, size - len, "%s %s\n",
							message_name(s.type), s.id);
			continue;
		}
		ASSERT_EQ(s.type, MSG_attached);
		rig_greet_agent(s.fd);
		if (runs) len += (size_t)snprintf(runs + len, size - len, "%s %s\n", s.id, s.run);
		fd_close(s.fd);
		attached++;
	}
}

#define COPY(to, from) (void)snprintf(to, sizeof(to), "%s", (from).at)

static int on_said(void *ctx, const uint8_t *bytes, size_t len, int *fds, size_t fd_count)
{
	struct frame_reader reader = frame_reader_of(bytes, len);
	struct said *s = ctx;
	struct msg_attached attached;
	struct msg_refused refused;
	struct msg_ready ready;
	struct msg_usage usage;
	struct msg_gone gone;
	struct msg_parked parked;
	struct msg_asleep asleep;
	struct msg_issued issued;
	struct frame f;

	ASSERT_EQ(frame_reader_next(&reader, &f), 1);
	s->type = f.type;
	if (msg_attached_parse(&f, &attached) == 0) {
		COPY(s->id, attached.id);
		COPY(s->run, attached.run);
		ASSERT_EQ(fd_count, 1);
		s->fd = take_fd(&fds[0]);
	} else if (msg_refused_parse(&f, &refused) == 0) {
		COPY(s->id, refused.id);
		COPY(s->text, refused.text);
		s->why = refused.why;
	} else if (msg_gone_parse(&f, &gone) == 0) {
		COPY(s->id, gone.id);
		COPY(s->text, gone.text);
		s->why = gone.why;
	} else if (f.type == MSG_asleep && msg_asleep_parse(&f, &asleep) == 0) {
		COPY(s->id, asleep.id);
		COPY(s->run, asleep.run);
	} else if (f.type == MSG_issued && msg_issued_parse(&f, &issued) == 0) {
		COPY(s->id, issued.id);
	} else if (msg_ready_parse(&f, &ready) == 0) {
		s->limit = ready.limit;
	} else if (msg_usage_parse(&f, &usage) == 0) {
		COPY(s->id, usage.id);
		s->why = usage.known;
		s->pids = usage.pids;
	} else if (msg_parked_parse(&f, &parked) == 0) {
		s->ready = parked.ready;
		s->why = parked.full;
	}
	return 0;
}

struct said rig_hear(struct rig *r)
{
	struct said s;

	do {
		s = (struct said){.fd = -1};
		/* What the kernel did not take at once, when many wishes were sent. */
		ASSERT_OK(link_flush(r->control));
		rig_wait_for_input(link_fd(r->control), "the keeper's next message");
		ASSERT_OK(link_read(r->control, 1, on_said, &s));
	} while (s.type == MSG_hello);
	return s;
}

struct said rig_expect(struct rig *r, uint16_t type, const char *id)
{
	struct said s = rig_hear(r);

	if (s.type != type)
		fail_msg("heard %s of '%s' (%s), expected %s", message_name(s.type), s.id, s.text,
			 message_name(type));
	if (id) ASSERT_STR(s.id, id);
	return s;
}

void rig_create(struct rig *r, const char *id, const char *instance)
{
	struct msg_create m = {.id = wire_text_of(id), .instance = wire_text_of(instance)};

	ASSERT_OK(LINK_SEND(r->control, 0, create, &m, NULL, 0));
}

void rig_remove(struct rig *r, const char *id)
{
	struct msg_remove m = {.id = wire_text_of(id)};

	ASSERT_OK(LINK_SEND(r->control, 0, remove, &m, NULL, 0));
}

void rig_inspect(struct rig *r, const char *id)
{
	struct msg_inspect m = {.id = wire_text_of(id)};

	ASSERT_OK(LINK_SEND(r->control, 0, inspect, &m, NULL, 0));
}

void rig_park(struct rig *r, unsigned want)
{
	struct msg_park m = {.want = want};

	ASSERT_OK(LINK_SEND(r->control, 0, park, &m, NULL, 0));
}

void rig_send_garbage(struct rig *r)
{
	ASSERT_EQ(send(link_fd(r->control), "what is this?", 13, MSG_NOSIGNAL), 13);
}

static int on_agent_hello(void *ctx, const uint8_t *bytes, size_t len, int *fds, size_t fd_count)
{
	struct frame_reader reader = frame_reader_of(bytes, len);
	struct msg_hello m;
	struct frame f;

	(void)fds;
	(void)fd_count;
	ASSERT_EQ(frame_reader_next(&reader, &f), 1);
	ASSERT_OK(msg_hello_parse(&f, &m));
	*(unsigned *)ctx = m.role;
	return 0;
}

void rig_greet_agent(int fd)
{
	struct link *l = link_new(fcntl(fd, F_DUPFD_CLOEXEC, 3));
	unsigned role = 0;

	say_hello(l, ROLE_FRONT);
	rig_wait_for_input(fd, "an agent's hello");
	ASSERT_OK(link_read(l, 1, on_agent_hello, &role));
	ASSERT_EQ(role, ROLE_AGENT);
	link_free(l);
}

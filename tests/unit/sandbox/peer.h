/*
 * peer.h - the other end of a link, played by a test: it sends what the test says and sees what is sent to
 * it.
 */
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "loop/loop.h"
#include "unit.h"
#include "wire/link.h"

static struct loop *loop;
static struct link *peer;
static int ours; /* the descriptor for the code under test */

#define GUARD_MS 10000 /* never reached by a test that passes */

static void on_guard(void *ctx)
{
	(void)ctx;
	fail_msg("what the test waits for does not come");
}

/* Runs the loop until *DONE. A callback of the test sets it and calls loop_stop(). */
static void run_until(const bool *done)
{
	struct timer *guard = timer_new(loop, on_guard, NULL);

	timer_set(guard, GUARD_MS);
	while (!*done)
		loop_run(loop);
	timer_free(guard);
}

static void on_settled(void *ctx)
{
	*(bool *)ctx = true;
	loop_stop(loop);
}

/* Runs the loop for what is under way: everything sent so far has been read and answered. */
static void settle(void)
{
	for (int turns = 0; turns < 3; turns++) {
		bool settled = false;

		loop_defer(loop, on_settled, &settled);
		run_until(&settled);
	}
}

static void peer_open(enum wire_role role)
{
	struct msg_hello hello = {
		.version = WIRE_VERSION, .oldest = WIRE_OLDEST, .role = role, .build = wire_text_of("test")};
	int pair[2];

	ASSERT_OK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	ours = pair[0];
	peer = link_new(pair[1]);
	ASSERT_OK(LINK_SEND(peer, 0, hello, &hello, NULL, 0));
}

static void peer_close(void)
{
	peer = link_free(peer);
}

/* The last frame of type TYPE that came since the last look; its parts live in LAST. */
static uint8_t last_packet[WIRE_PACKET_MAX];
static struct frame last;
static unsigned frames_seen, frames_wanted;
static uint16_t wanted_type;

static int on_peer_packet(void *ctx, const uint8_t *bytes, size_t len, int *fds, size_t fd_count)
{
	struct frame_reader reader = frame_reader_of(bytes, len);
	struct frame f;

	(void)ctx, (void)fds, (void)fd_count;
	while (frame_reader_next(&reader, &f) == 1) {
		frames_seen++;
		if (f.type != wanted_type) continue;
		frames_wanted++;
		memcpy(last_packet, bytes, len);
		last = f;
		last.payload = last_packet + (f.payload - bytes);
	}
	return 0;
}

/* How many frames of TYPE have come since the last look; LAST is the last of them. */
static unsigned peer_saw(uint16_t type)
{
	settle();
	wanted_type = type;
	frames_seen = frames_wanted = 0;
	(void)link_read(peer, 1000, on_peer_packet, NULL);
	return frames_wanted;
}

#define PEER_SENDS(channel, name, ...) PEER_SENDS_FDS(channel, name, NULL, 0, __VA_ARGS__)
#define PEER_SENDS_FDS(channel, name, fds, count, ...) \
	do { \
		struct msg_##name m_ = {__VA_ARGS__}; \
		ASSERT_OK(LINK_SEND(peer, channel, name, &m_, fds, count)); \
	} while (0)

static void loop_begin(void)
{
	struct err e = ERR_NONE;

	ASSERT_OK(loop_new(&loop, &e));
}

static void loop_end(void)
{
	loop = loop_free(loop);
}

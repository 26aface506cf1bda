/*
 * link.h - one end of a SOCK_SEQPACKET connection between two of our processes.
 *
 * Theory of operation: the link owns the socket and a queue of packets that the kernel would not take yet. It
 * runs in no loop of its own (the front and the keeper have libuv, the agent its reactor): the owner watches
 * link_fd() for input, and for output while link_wants_out(), and calls link_read() and link_flush(). Data
 * messages never pile up here, because credit bounds them; what can pile up are control messages to a peer
 * that does not read, and at LINK_QUEUE_MAX bytes the peer is judged dead: -ENOBUFS.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "wire/message.h"

#define LINK_QUEUE_MAX ((size_t)8 << 20) /* bytes of packets waiting for the kernel */

struct link;

/* Takes FD, makes it non-blocking. */
struct link *link_new(int fd);
struct link *link_free(struct link *l);
int link_fd(const struct link *l);

/*
 * One packet, to be handled during the call. FDS are the callee's to keep: take_fd() those it wants, the rest
 * is closed afterwards. Negative: the peer broke the protocol; link_read() returns it.
 */
typedef int on_packet(void *ctx, const uint8_t *bytes, size_t len, int *fds, size_t fd_count);

/*
 * Reads packets until there is none, or BUDGET packets were read. 0: the link lives. -EPIPE: the peer closed.
 * -EPROTO: a packet that was cut, too large, or refused by HANDLE. The callback may free nothing of the link.
 */
int link_read(struct link *l, unsigned budget, on_packet *handle, void *ctx);

/*
 * Sends P (and duplicates of FDS, which stay the caller's) or queues it. 0; -EPIPE: the peer is gone;
 * -ENOBUFS: it does not read. P may be reused after the call.
 */
int link_send(struct link *l, const struct packet *p, const int *fds, size_t fd_count);

/* Like link_send() for one data frame whose bytes lie elsewhere: they are copied only when the kernel is
 * full. */
int link_send_data(struct link *l, uint32_t channel, enum wire_stream stream, const struct iovec *parts,
		   size_t count);

/* The same for a `log` frame. */
int link_send_log(struct link *l, uint32_t channel, uint64_t seq, uint64_t at_ms, enum wire_stream stream,
		  const struct iovec *parts, size_t count);

/* Sends what is queued. As link_send(). */
int link_flush(struct link *l);
bool link_wants_out(const struct link *l);

/* Builds a packet of one message and sends it: LINK_SEND(link, channel, open_read, &m, fds, count). */
#define LINK_SEND(l, channel, name, m, fds, fd_count) \
	({ \
		uint8_t room_[WIRE_PACKET_MAX_SMALL]; \
		struct packet p_ = {.bytes = room_, .room = sizeof room_}; \
		int r_ = msg_##name##_add(&p_, channel, m); \
		r_ < 0 ? r_ : link_send(l, &p_, fds, fd_count); \
	})
#define WIRE_PACKET_MAX_SMALL (16u << 10) /* of messages sent with LINK_SEND */

/*
 * Messages larger than a packet travel in a sealed memory file: the frame has FRAME_SPILLED and no payload,
 * and the packet's first descriptor holds the payload.
 *
 * _spill sends the one message in P, which is larger than WIRE_PACKET_MAX (a packet with its own big room),
 * that way. _unspill turns such a frame into an ordinary one whose payload lies in *RET_MEMORY (the caller
 * frees it). -E2BIG above WIRE_SPILL_MAX; -EPROTO for a file that is not sealed against change.
 */
int link_send_spilled(struct link *l, const struct packet *p);
int frame_unspill(struct frame *f, int fd, void **ret_memory);

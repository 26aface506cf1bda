/*
 * peers.h - who talks to us: the keeper over the bond, fronts over links, and strangers until they prove
 * themselves.
 *
 * Theory of operation: the bond and the first front's link are given at bind. Everyone else connects to the
 * listening socket and must begin with `hello` and the sandbox's cookie; the role it names is what it then
 * is. One bond counts, the newest. A front's link carries channels; a peer that breaks the protocol is cut
 * off, which costs nobody else.
 *
 * Messages go into one *outbox* and leave at the end of the reactor's turn, so that output and end of a short
 * command are one packet; what says only that a command began may wait a little longer, for most commands end
 * within that time and each packet wakes a front. A link that fails while something is sent is only marked;
 * it is torn down at the end of the turn.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "wire/message.h"

struct channel;
struct link;
struct log_event;
struct peer;

#define CHANNELS_MAX 4096 /* of one link */
#define COOKIE_MAX   64

struct channel_ops {
	/* A frame for this channel. Negative: the peer broke the protocol. May close the channel. */
	int (*on_frame)(struct channel *c, const struct frame *f);
	/* The link is gone; the channel is closed already and sends nothing any more. */
	void (*on_lost)(struct channel *c);
};

/* Embedded in what it is a channel of. */
struct channel {
	struct channel *next; /* private */
	struct peer *peer;    /* NULL: closed */
	uint32_t id;
	const struct channel_ops *ops;
};

/* Opens channels: one function a kind of opening message. Negative: the peer broke the protocol. */
typedef int channel_opener(struct peer *p, const struct frame *f);
struct channel_kind {
	uint16_t type;
	channel_opener *open;
};

/* What comes over the bond. */
struct bond_events {
	/* A new keeper's bond has taken the old one's place. */
	void (*on_renewed)(void);
	/* FDS are closed afterwards unless taken. */
	void (*on_limits)(const struct msg_limits *m, int *fds, size_t fd_count);
};

/*
 * LISTEN_FD is listened on from here on. BOND and FRONT (may be NULL) are taken. KINDS ends with type 0; it
 * and EVENTS outlive us. 0 or -errno.
 */
int peers_open(int listen_fd, struct link *bond, struct link *front, const void *cookie, size_t cookie_len,
	       const struct channel_kind *kinds, const struct bond_events *events);

/* At the end of a reactor's turn: sends what waits, tears down what failed. */
void peers_turn(void);

/* -EPROTO: the id is in use, is 0, or the link has too many channels. */
int channel_open(struct channel *c, struct peer *p, uint32_t id, const struct channel_ops *ops);
void channel_close(struct channel *c); /* fine when closed */

/* A descriptor that came with the frame that is being handled, the caller's from here on; -1: none (any
 * more). */
int peer_take_fd(void);

/* The outbox of P with room for NEED bytes: at most OUTBOX_SIZE. Never NULL. */
#define OUTBOX_SIZE ((size_t)16 << 10)
struct packet *peer_outbox(struct peer *p, size_t need);

/* The same for what may wait OUTBOX_WAIT_MS for company. */
#define OUTBOX_WAIT_MS 2
struct packet *peer_outbox_patient(struct peer *p, size_t need);

#define CHANNEL_SEND(c, name, m) \
	(void)msg_##name##_add(peer_outbox((c)->peer, msg_##name##_size(m) + WIRE_HEADER), (c)->id, m)

void channel_send_data(struct channel *c, enum wire_stream stream, const struct iovec parts[2]);

/* Event SEQ of a log that is followed. */
void channel_send_log(struct channel *c, uint64_t seq, const struct log_event *event,
		      const struct iovec parts[2]);

/* `opened` with a descriptor (duplicated) and, in the same packet, END (unless NULL): at most OUTBOX_SIZE. */
void channel_send_opened(struct channel *c, const struct msg_opened *m, int fd, const struct msg_end *end);

/* The one closing message, for channels that never got further: reason END_FAILED. */
void peer_refuse(struct peer *p, uint32_t channel, int error, const char *text);

/* Over the bond; dropped without one. Whether it was sent. */
bool bond_send_limits_wanted(void);
bool bond_send_limits_idle(void);

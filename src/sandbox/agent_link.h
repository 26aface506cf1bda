/*
 * agent_link.h - the front's link to the agent of one sandbox, and the channels on it.
 *
 * Theory of operation: an operation embeds a *channel*, opens it, sends its opening message on it and gets
 * the agent's messages by number. The agent runs beside a stranger's program, so it is a stranger too: what
 * it may not say now is answered by cutting the link (-EPROTO from on_message), which costs its own sandbox
 * and nobody else.
 *
 * A channel ends in one of three ways: the operation closes it (after the agent's `end`, or because nobody
 * listens any more), or the link is freed: then on_lost is its last callback. A send that fails never ends
 * anything from inside the call: the link is marked broken and reports it from the loop.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "sandbox/hash.h"
#include "wire/link.h"

struct agent_link;
struct channel;
struct loop;

struct channel_class {
	/*
	 * One message. FDS as in on_packet. Negative: it must not come now; the link is then cut. May close
	 * the channel.
	 */
	int (*on_message)(struct channel *c, const struct frame *f, int *fds, size_t fd_count);
	/* The link is over. The channel is closed already. */
	void (*on_lost)(struct channel *c, enum end_reason reason, const char *text);
};

struct channel {
	const struct channel_class *class;
	struct agent_link *link; /* NULL: closed */
	uint32_t number;
	bool awaits; /* an answer; see channel_await() */
	UT_hash_handle hh;
};

/* ON_LOST(ctx, why) once when the link no longer works; the owner then frees it. */
typedef void on_link_lost(void *ctx, const char *why);

/* Takes FD and greets. */
struct agent_link *agent_link_new(struct loop *loop, int fd, on_link_lost *on_lost, void *ctx);

/* Ends every channel with REASON (END_LOST or END_DELETED) and TEXT. NULL is fine. */
struct agent_link *agent_link_free(struct agent_link *l, enum end_reason reason, const char *text);

/* An agent carries 4096 channels a link and takes more for a breach of the protocol. */
#define CHANNELS_OPEN_MAX 4000

/* C gets the next number. It must be closed, or lost, before its memory goes. -EMFILE: too many are open. */
int channel_open(struct channel *c, struct agent_link *l, const struct channel_class *class);
void channel_close(struct channel *c);

/* Tells the agent that nobody listens any more, and closes. KILL: what a command runs ends, too. A closed one
 * is fine. */
void channel_reset(struct channel *c, bool kill);

/*
 * The agent owes C a message, as it does after every opening. An agent that owes one and says nothing at all
 * for AGENT_SILENCE_MAX_MS is stuck or stopped: the link is given up, so that nobody waits for ever.
 */
#define AGENT_SILENCE_MAX_MS 20000
void channel_await(struct channel *c);

/* For the sends below: the wire, and what became of a send on it. */
struct link *agent_link_wire(struct agent_link *l);
void agent_link_sent(struct agent_link *l, int result);

/* Sends a small message on channel C: CHANNEL_SEND(&x->channel, credit, &m). */
#define CHANNEL_SEND(c, name, m) \
	agent_link_sent((c)->link, LINK_SEND(agent_link_wire((c)->link), (c)->number, name, m, NULL, 0))

/*
 * Sends the one message in P, of any size: in a packet when it fits, otherwise in a memory file. -E2BIG above
 * WIRE_SPILL_MAX, or what made the memory file fail: then nothing was sent.
 */
int channel_send_large(struct channel *c, const struct packet *p);

/* The same for a message NAME in M, which is built here. */
#define CHANNEL_SEND_LARGE(c, name, m) \
	({ \
		size_t size_ = WIRE_HEADER + msg_##name##_size(m); \
		uint8_t *room_ = size_ <= WIRE_SPILL_MAX ? malloc(size_) : NULL; \
		struct packet large_ = {.bytes = room_, .room = size_}; \
		int sent_ = size_ > WIRE_SPILL_MAX ? -E2BIG : !room_ ? -ENOMEM : 0; \
\
		if (sent_ == 0) sent_ = msg_##name##_add(&large_, (c)->number, m); \
		if (sent_ == 0) sent_ = channel_send_large(c, &large_); \
		free(room_); \
		sent_; \
	})

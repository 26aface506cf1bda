#include "agent/process_signal.h"

#include <errno.h>

#include "agent/peers.h"
#include "agent/process.h"
#include "base/mem.h"

/* A channel that waits for the end of what it terminates. */
struct termination {
	struct channel channel;
	struct process_follower follower;
	struct process *process;
};

static void answer_done(struct peer *peer, uint32_t channel)
{
	struct msg_end m = {.reason = END_DONE, .text = wire_text_of("")};

	(void)msg_end_add(peer_outbox(peer, msg_end_size(&m) + WIRE_HEADER), channel, &m);
}

static void termination_free(struct termination *t)
{
	process_unfollow(t->process, &t->follower);
	channel_close(&t->channel);
	free(t);
}

static void on_news(struct process_follower *f)
{
	struct termination *t = container_of(f, struct termination, follower);

	if (!process_facts(t->process)->ended) return;
	answer_done(t->channel.peer, t->channel.id);
	termination_free(t);
}

static int on_frame(struct channel *c, const struct frame *f)
{
	struct msg_reset m;

	if (f->type != MSG_reset || msg_reset_parse(f, &m) < 0) return -EPROTO;
	termination_free(container_of(c, struct termination, channel));
	return 0;
}

static void on_lost(struct channel *c)
{
	termination_free(container_of(c, struct termination, channel));
}

static const struct channel_ops ops = {.on_frame = on_frame, .on_lost = on_lost};

static int terminate(struct process *p, struct peer *peer, uint32_t channel)
{
	struct termination *t = mem_new(sizeof *t);

	if (channel_open(&t->channel, peer, channel, &ops) < 0) {
		free(t);
		return -EPROTO;
	}
	t->process = p;
	t->follower.on_news = on_news;
	process_follow(p, &t->follower);
	process_terminate(p, TERMINATE_MS);
	return 0;
}

int signal_open(struct peer *peer, const struct frame *f)
{
	struct msg_open_signal m;
	struct process *p;

	if (msg_open_signal_parse(f, &m) < 0 || m.kind > KIND_TERMINAL || m.how > SIGNAL_TERMINATE)
		return -EPROTO;
	if (m.how == SIGNAL_SEND && (m.signo < 1 || m.signo > 64)) return -EPROTO;
	p = process_find((enum process_kind)m.kind, m.name.at);
	if (!p) {
		peer_refuse(peer, f->channel, ESRCH, "there is none of that name");
		return 0;
	}
	if (m.how == SIGNAL_TERMINATE && !process_facts(p)->ended) return terminate(p, peer, f->channel);
	if (m.how == SIGNAL_SEND) process_signal(p, m.signo);
	answer_done(peer, f->channel);
	return 0;
}

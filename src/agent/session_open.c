/*
 * session_open.c - open_session: a session is made at once. The end of one waits for the commands that it
 * terminates: those of which somebody still reads the output; what was left running in the background stays.
 */
#include "agent/session_open.h"

#include <errno.h>
#include <string.h>

#include "agent/peers.h"
#include "agent/process.h"
#include "agent/session.h"
#include "base/id.h"
#include "base/mem.h"

#define GRACE_MS 5000 /* between SIGTERM and SIGKILL */

/* One command of a session that is being ended. */
struct victim {
	struct victim *next;
	struct ending *ending;
	struct process *process;
	struct process_follower follower;
};

struct ending {
	struct channel channel;
	struct victim *first;
};

static void answer_done(struct peer *peer, uint32_t channel)
{
	struct msg_end m = {.reason = END_DONE, .text = wire_text_of("")};

	(void)msg_end_add(peer_outbox(peer, msg_end_size(&m) + WIRE_HEADER), channel, &m);
}

static void victim_free(struct victim *v)
{
	process_unfollow(v->process, &v->follower);
	free(v);
}

static void victim_remove(struct victim *v)
{
	struct victim **at = &v->ending->first;

	while (*at != v)
		at = &(*at)->next;
	*at = v->next;
	victim_free(v);
}

static void ending_free(struct ending *x)
{
	for (struct victim *v = x->first, *next; v; v = next) {
		next = v->next;
		victim_free(v);
	}
	channel_close(&x->channel);
	free(x);
}

static void on_news(struct process_follower *f)
{
	struct victim *v = container_of(f, struct victim, follower);
	struct ending *x = v->ending;

	if (!process_facts(v->process)->ended) return;
	victim_remove(v);
	if (x->first) return;
	answer_done(x->channel.peer, x->channel.id);
	ending_free(x);
}

static int on_frame(struct channel *c, const struct frame *f)
{
	if (f->type != MSG_reset) return -EPROTO;
	ending_free(container_of(c, struct ending, channel));
	return 0;
}

static void on_lost(struct channel *c)
{
	ending_free(container_of(c, struct ending, channel));
}

static const struct channel_ops ops = {.on_frame = on_frame, .on_lost = on_lost};

static void collect(struct ending *x, const char *name)
{
	for (struct process *p = process_first(); p; p = process_next(p)) {
		const struct process_facts *facts = process_facts(p);
		struct victim *v;

		if (facts->ended || facts->kind != KIND_PROCESS || !process_is_watched(p)) continue;
		if (strcmp(facts->session, name) != 0) continue;
		v = mem_new(sizeof *v);
		v->ending = x;
		v->process = p;
		v->follower.on_news = on_news;
		v->next = x->first;
		x->first = v;
		process_follow(p, &v->follower);
	}
}

static int end(struct peer *peer, uint32_t channel, const char *name)
{
	struct ending *x;

	if (session_forget(name) < 0) {
		peer_refuse(peer, channel, ENOENT, "there is no session of that name");
		return 0;
	}
	x = mem_new(sizeof *x);
	if (channel_open(&x->channel, peer, channel, &ops) < 0) {
		free(x);
		return -EPROTO;
	}
	collect(x, name);
	if (!x->first) {
		answer_done(peer, channel);
		ending_free(x);
		return 0;
	}
	/* A signal ends nothing from within the call: those below are all still there. */
	for (struct victim *v = x->first; v; v = v->next)
		process_terminate(v->process, GRACE_MS);
	return 0;
}

static const char *why_not_made(int r)
{
	switch (r) {
	case -EEXIST: return "there is a session of that name already";
	case -E2BIG: return "too many variables";
	default: return "there is no memory for its variables";
	}
}

static int make(struct peer *peer, const struct frame *f, const struct msg_open_session *m)
{
	int r = session_make(m);

	if (r == 0) answer_done(peer, f->channel);
	else peer_refuse(peer, f->channel, r, why_not_made(r));
	return 0;
}

int session_open(struct peer *peer, const struct frame *f)
{
	struct msg_open_session m;

	if (msg_open_session_parse(f, &m) < 0 || m.how > SESSION_END || !id_is_name(m.name.at, m.name.len))
		return -EPROTO;
	return m.how == SESSION_MAKE ? make(peer, f, &m) : end(peer, f->channel, m.name.at);
}

#include "agent/grant.h"

#include <errno.h>
#include <stdbool.h>

#include "agent/limits.h"
#include "agent/peers.h"
#include "agent/reactor.h"
#include "agent/rehearsal.h"
#include "agent/tree.h"
#include "agent/view.h"
#include "wire/message.h"

static void on_wait_over(struct timer *t);
static void on_linger_over(struct timer *t);

static struct {
	void (*on_decided)(int error, const char *text);
	bool asked;
	bool in_use; /* there are trees */
	struct timer wait, linger;
} grant = {.wait = {.on_time = on_wait_over}, .linger = {.on_time = on_linger_over}};

/* ---- asking ---- */

static void ask(void)
{
	bond_send_limits_wanted();
}

int grant_want(void)
{
	if (limits_held()) return 0;
	if (!grant.asked) {
		grant.asked = true;
		timer_start(&grant.wait, GRANT_WAIT_MS);
		ask();
	}
	return -EAGAIN;
}

void grant_bond_renewed(void)
{
	if (grant.asked) ask();
}

/* ---- the answer ---- */

static void decide(int error, const char *text)
{
	grant.asked = false;
	timer_stop(&grant.wait);
	grant.on_decided(error, text);
}

static void on_wait_over(struct timer *t)
{
	(void)t;
	decide(-ETIMEDOUT, "the keeper did not answer: no control groups");
}

void grant_received(const struct msg_limits *m, int *fds, size_t fd_count)
{
	if (m->error == 0) limits_set(m);
	/* Numbers alone: what was made ahead has become somebody's, who wished for others. */
	if (m->error == 0 && fd_count == 0) {
		view_limits_changed();
		return;
	}
	/* Too late: the descriptors are closed by the link. */
	if (!grant.asked && (m->error || limits_held())) return;
	if (m->error) {
		decide(m->error < 0 ? m->error : -m->error, m->text.at);
		return;
	}
	limits_hold(m, fds, fd_count);
	view_limits_changed();
	/* Unasked: we were made ahead of need. */
	if (!grant.asked) {
		rehearse();
		return;
	}
	decide(0, "");
	if (!grant.in_use) timer_start(&grant.linger, GRANT_LINGER_MS);
}

/* ---- giving back ---- */

static void on_use(bool in_use)
{
	grant.in_use = in_use;
	if (in_use) {
		view_begin();
		timer_stop(&grant.linger);
	} else {
		view_end();
		timer_start(&grant.linger, GRANT_LINGER_MS);
	}
}

static void on_linger_over(struct timer *t)
{
	trees_forget();
	/* Without a keeper nobody would take the cgroups back: keep them until there is one. */
	if (bond_send_limits_idle()) limits_let_go();
	else timer_start(t, GRANT_LINGER_MS);
}

void grant_init(void (*on_decided)(int error, const char *text))
{
	grant.on_decided = on_decided;
	trees_init(on_use);
}

#include "agent/limits.h"

#include <errno.h>
#include <string.h>

#include "agent/peers.h"
#include "agent/reactor.h"
#include "agent/rehearsal.h"
#include "agent/tree.h"
#include "base/fd.h"
#include "wire/message.h"

static void on_wait_over(struct timer *t);
static void on_linger_over(struct timer *t);

static struct {
	void (*on_decided)(int error, const char *text);
	bool asked;
	unsigned version;
	int fds[LIMITS_FDS];
	unsigned users;
	struct timer wait, linger;
} limits = {.fds = {-1, -1, -1}, .wait = {.on_time = on_wait_over}, .linger = {.on_time = on_linger_over}};

void limits_init(void (*on_decided)(int error, const char *text))
{
	limits.on_decided = on_decided;
}

bool limits_held(void)
{
	return limits.fds[LIMITS_PIDS_DIR] >= 0;
}

int limits_dir(void)
{
	return limits.fds[LIMITS_PIDS_DIR];
}

static void let_go(void)
{
	for (size_t i = 0; i < LIMITS_FDS; i++)
		limits.fds[i] = fd_close(limits.fds[i]);
}

static void ask(void)
{
	bond_send_limits_wanted();
}

int limits_want(void)
{
	if (limits_held()) return 0;
	/* Unasked: we were made ahead of need. */
	if (!limits.asked) {
		limits.asked = true;
		timer_start(&limits.wait, LIMITS_WAIT_MS);
		ask();
	}
	return -EAGAIN;
}

void limits_bond_renewed(void)
{
	if (limits.asked) ask();
}

static void decide(int error, const char *text)
{
	limits.asked = false;
	timer_stop(&limits.wait);
	limits.on_decided(error, text);
}

static void on_wait_over(struct timer *t)
{
	(void)t;
	decide(-ETIMEDOUT, "the keeper did not answer: no control groups");
}

void limits_received(const struct msg_limits *m, int *fds, size_t fd_count)
{
	if (m->error == 0 && fd_count == 0) return;
	/* Too late: the descriptors are closed by the link. */
	if (!limits.asked && (m->error || limits_held())) return;
	if (m->error) {
		decide(m->error < 0 ? m->error : -m->error, m->text.at);
		return;
	}
	limits.version = m->cgroup_version;
	for (size_t i = 0; i < LIMITS_FDS && i < fd_count; i++)
		limits.fds[i] = take_fd(&fds[i]);
	/* Unasked: we were made ahead of need. */
	if (!limits.asked) {
		rehearse();
		return;
	}
	decide(0, "");
	if (!limits.users) timer_start(&limits.linger, LIMITS_LINGER_MS);
}

const char *limits_entry(void)
{
	return limits.version == 2 ? "cgroup.procs" : "tasks";
}

size_t limits_attach_order(int own, int attach_fds[SPAWN_ATTACH_MAX])
{
	size_t count = 0;

	/*
	 * v1: three hierarchies, the leaf in that of pids. v2: one; the way into it from where we live leads
	 * through a file that the keeper opened (if it is needed there), and from there on into our leaf.
	 */
	if (limits.version != 2) attach_fds[count++] = own;
	if (limits.fds[LIMITS_MEMORY_PROCS] >= 0) attach_fds[count++] = limits.fds[LIMITS_MEMORY_PROCS];
	if (limits.version == 2) attach_fds[count++] = own;
	else if (limits.fds[LIMITS_CPU_PROCS] >= 0) attach_fds[count++] = limits.fds[LIMITS_CPU_PROCS];
	return count;
}

void limits_use(void)
{
	limits.users++;
	timer_stop(&limits.linger);
}

void limits_unuse(void)
{
	if (--limits.users == 0) timer_start(&limits.linger, LIMITS_LINGER_MS);
}

static void on_linger_over(struct timer *t)
{
	trees_forget();
	/* Without a keeper nobody would take the cgroups back: keep them until there is one. */
	if (bond_send_limits_idle()) let_go();
	else timer_start(t, LIMITS_LINGER_MS);
}

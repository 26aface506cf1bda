#include "keeper/parking.h"

#include <errno.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "keeper/process.h"
#include "keeper/zygote.h"
#include "loop/loop.h"

#define RETRY_MS 200

/* A parked agent and the eye on it: it says nothing while parked, so anything to read is its end. */
struct berth {
	struct berth *next;
	struct parking *parking;
	struct parked agent;
	struct watch *watch;
};

struct parking {
	struct loop *loop;
	struct parking_events events;
	struct zygote *zygote;
	struct timer *retry;
	struct berth *first;
	unsigned ready, coming, target;
	unsigned waiting; /* as last told */
};

static void discard(struct parked *a)
{
	process_kill(a->pidfd);
	process_reap(a->pidfd);
	fd_close(a->pidfd);
	fd_close(a->bond_fd);
}

static void berth_unlink(struct berth *gone)
{
	struct berth **at = &gone->parking->first;

	while (*at != gone)
		at = &(*at)->next;
	*at = gone->next;
	gone->parking->ready--;
	watch_free(gone->watch);
	free(gone);
}

static void on_berth_ready(void *ctx, unsigned events)
{
	struct berth *b = ctx;
	struct parking *p = b->parking;

	(void)events;
	log_event(LOG_WARN, "parked_agent_died", "pid", LOG_U(b->agent.pid), NULL);
	discard(&b->agent);
	berth_unlink(b);
	parking_refill(p, p->waiting);
}

static int admit(struct parking *p, pid_t pid, int bond_fd)
{
	int pidfd = process_open_child(pid);
	struct berth *b;

	if (pidfd < 0) return pidfd;
	b = mem_new(sizeof *b);
	b->parking = p;
	b->agent =
		(struct parked){.pid = pid, .start = process_start(pid), .pidfd = pidfd, .bond_fd = bond_fd};
	(void)fd_set_nonblocking(bond_fd);
	b->watch = watch_new(p->loop, bond_fd, on_berth_ready, b);
	watch_want(b->watch, WATCH_IN);
	b->next = p->first;
	p->first = b;
	p->ready++;
	return 0;
}

static void on_spawned_agent(void *ctx, pid_t pid, int bond_fd, const struct err *e)
{
	struct parking *p = ctx;
	struct err own = ERR_NONE;
	int r = 0;

	p->coming--;
	if (!e) {
		r = admit(p, pid, bond_fd);
		if (r < 0) {
			(void)err_set(&own, r, "meet the new agent %d", pid);
			fd_close(bond_fd);
			e = &own;
		}
	}
	if (!e) {
		p->events.on_ready(p->events.ctx);
		return;
	}
	log_event(LOG_WARN, "agent_not_parked", "why", e->text, NULL);
	p->events.on_failed(p->events.ctx, e);
	timer_set(p->retry, RETRY_MS);
}

static void on_retry(void *ctx)
{
	struct parking *p = ctx;

	parking_refill(p, p->waiting);
}

int parking_new(struct loop *loop, struct cgroups *cgroups, unsigned target, struct parking_events events,
		struct parking **ret, struct err *e)
{
	struct parking *p = mem_new(sizeof *p);
	int r;

	p->loop = loop;
	p->target = target;
	p->events = events;
	p->retry = timer_new(loop, on_retry, p);
	r = zygote_new(loop, cgroups, on_spawned_agent, p, &p->zygote, e);
	if (r < 0) {
		parking_free(p);
		return r;
	}
	parking_refill(p, 0);
	*ret = p;
	return 0;
}

struct parking *parking_free(struct parking *p)
{
	if (!p) return NULL;
	zygote_free(p->zygote);
	timer_free(p->retry);
	while (p->first) {
		discard(&p->first->agent);
		berth_unlink(p->first);
	}
	free(p);
	return NULL;
}

unsigned parking_ready(const struct parking *p)
{
	return p->ready;
}

void parking_take(struct parking *p, struct parked *ret)
{
	*ret = p->first->agent;
	berth_unlink(p->first);
}

void parking_refill(struct parking *p, unsigned waiting)
{
	p->waiting = waiting;
	while (p->ready + p->coming < p->target + waiting) {
		if (zygote_spawn(p->zygote) < 0) {
			timer_set(p->retry, RETRY_MS);
			return;
		}
		p->coming++;
	}
}

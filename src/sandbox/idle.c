#include "sandbox/idle.h"

#include <stdlib.h>

#include <utlist.h>

#include "base/clock.h"
#include "base/mem.h"
#include "loop/loop.h"

struct idlers {
	uint64_t after_ms;
	struct idler *first;
	struct timer *due;
	on_idle *on_due;
	void *ctx;
};

static void set_timer(struct idlers *all)
{
	uint64_t now = clock_ms(), due;

	if (!all->after_ms || !all->first) {
		timer_clear(all->due);
		return;
	}
	due = all->first->since_ms + all->after_ms;
	timer_set(all->due, due > now ? due - now : 0);
}

static void list(struct idlers *all, struct idler *i)
{
	if (i->listed || !i->watched || i->users) return;
	i->since_ms = clock_ms();
	i->listed = true;
	DL_APPEND(all->first, i);
	if (all->first == i) set_timer(all);
}

/* The timer may come too early then; it looks again. */
static void unlist(struct idlers *all, struct idler *i)
{
	if (!i->listed) return;
	DL_DELETE(all->first, i);
	i->listed = false;
}

static void on_timer_due(void *ctx)
{
	struct idlers *all = ctx;
	uint64_t now = clock_ms();

	while (all->first && all->after_ms && all->first->since_ms + all->after_ms <= now) {
		struct idler *i = all->first;

		idler_unwatch(all, i);
		all->on_due(all->ctx, i);
	}
	set_timer(all);
}

struct idlers *idlers_new(struct loop *loop, on_idle *on_due, void *ctx)
{
	struct idlers *all = mem_new(sizeof *all);

	all->due = timer_new(loop, on_timer_due, all);
	all->on_due = on_due;
	all->ctx = ctx;
	return all;
}

struct idlers *idlers_free(struct idlers *all)
{
	if (!all) return NULL;
	timer_free(all->due);
	free(all);
	return NULL;
}

void idlers_set_after(struct idlers *all, uint64_t after_ms)
{
	all->after_ms = after_ms;
	set_timer(all);
}

void idler_use(struct idlers *all, struct idler *i)
{
	i->users++;
	unlist(all, i);
}

void idler_unuse(struct idlers *all, struct idler *i)
{
	i->users--;
	list(all, i);
}

void idler_watch(struct idlers *all, struct idler *i)
{
	i->watched = true;
	list(all, i);
}

void idler_unwatch(struct idlers *all, struct idler *i)
{
	i->watched = false;
	unlist(all, i);
}

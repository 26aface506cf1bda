#include "keeper/syncing.h"

#include <stdlib.h>

#include "base/fd.h"
#include "base/mem.h"
#include "keeper/record.h"
#include "loop/loop.h"

#define AT_ONCE     2
#define WAITING_MAX 128 /* descriptors */

struct sync {
	struct sync *next;
	struct syncing *all;
	int dir_fd;
};

struct syncing {
	struct loop *loop;
	struct sync *first, **last;
	unsigned waiting, running;
};

struct syncing *syncing_new(struct loop *loop)
{
	struct syncing *s = mem_new(sizeof *s);

	s->loop = loop;
	s->last = &s->first;
	return s;
}

static struct sync *take_first(struct syncing *s)
{
	struct sync *one = s->first;

	s->first = one->next;
	if (!s->first) s->last = &s->first;
	s->waiting--;
	return one;
}

static void drop(struct sync *one)
{
	fd_close(one->dir_fd);
	free(one);
}

/* On a work thread. A failure here leaves what a power cut would: an older record, or none. */
static void sync_record(void *ctx)
{
	const struct sync *one = ctx;

	(void)record_sync(one->dir_fd);
}

static void run_next(struct syncing *s);

static void on_synced(void *ctx)
{
	struct sync *one = ctx;
	struct syncing *s = one->all;

	s->running--;
	drop(one);
	run_next(s);
}

static void run_next(struct syncing *s)
{
	while (s->running < AT_ONCE && s->first) {
		s->running++;
		loop_work(s->loop, sync_record, on_synced, take_first(s));
	}
}

void syncing_add(struct syncing *s, int dir_fd)
{
	struct sync *one;

	if (dir_fd < 0) return;
	if (s->waiting >= WAITING_MAX) drop(take_first(s));
	one = mem_new(sizeof *one);
	one->all = s;
	one->dir_fd = dir_fd;
	*s->last = one;
	s->last = &one->next;
	s->waiting++;
	run_next(s);
}

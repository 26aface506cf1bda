#include "keeper/slots.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "isolation/quota.h"
#include "keeper/blocks.h"
#include "keeper/state.h"
#include "loop/loop.h"

#define RETRY_MS 200
#define AT_ONCE  2 /* of the pool's four threads: creations need the others */

struct prepared {
	struct prepared *next;
	struct slots *slots;
	struct slot slot;
	struct err e; /* code 0: it is ready */
};

struct slots {
	struct loop *loop;
	const struct state *state;
	const struct image *image;
	struct blocks *blocks;
	struct quota *quota;
	uint64_t disk_bytes;
	struct slots_events events;
	struct timer *retry;
	struct prepared *first;
	unsigned ready, coming, target;
	unsigned waiting; /* as last told */
	bool stopped;
};

/* What an attempt that failed half way left there is empty and as good as new. */
static int open_spare(const struct state *state, const char *name)
{
	if (mkdirat(state->spare_fd, name, 0700) < 0 && errno != EEXIST) return -errno;
	return openat(state->spare_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int slot_make_disk(struct slot *slot, struct quota *quota, int dir_fd, uint64_t bytes, struct err *e)
{
	int r = quota_make(quota, dir_fd, bytes, &slot->disk_fd, e);

	if (r == 0) r = data_tree_open(slot->disk_fd, slot->kit.userns_fd, &slot->data_tree_fd, e);
	slot->disk_bytes = bytes;
	return r;
}

/* On a work thread. */
static void prepare(void *ctx)
{
	struct prepared *p = ctx;
	struct slot *slot = &p->slot;
	auto_close int dir_fd = -1;
	int r;

	(void)snprintf(slot->spare, sizeof slot->spare, "%08x", slot->base_id);
	r = slot_kit_make(slot->base_id, p->slots->image, &slot->kit, &p->e);
	if (r == 0) {
		dir_fd = open_spare(p->slots->state, slot->spare);
		if (dir_fd < 0) r = err_set(&p->e, -errno, "make a directory for a sandbox");
	}
	if (r == 0) r = slot_make_disk(slot, p->slots->quota, dir_fd, p->slots->disk_bytes, &p->e);
	if (r < 0) {
		slot_close(slot);
		slot->disk_fd = fd_close(slot->disk_fd);
	}
	p->e.code = r;
}

static void on_prepared(void *ctx)
{
	struct prepared *p = ctx;
	struct slots *s = p->slots;

	s->coming--;
	if (p->e.code == 0) {
		p->next = s->first;
		s->first = p;
		s->ready++;
		(void)slots_refill(s, s->waiting);
		s->events.on_ready(s->events.ctx);
		return;
	}
	log_event(LOG_WARN, "slot_not_prepared", "why", p->e.text, NULL);
	blocks_give(s->blocks, p->slot.base_id);
	s->events.on_failed(s->events.ctx, &p->e);
	timer_set(s->retry, RETRY_MS);
	free(p);
}

static int begin(struct slots *s)
{
	struct prepared *p;
	uint32_t base_id;
	int r = blocks_take(s->blocks, &base_id);

	if (r < 0) return r;
	p = mem_new(sizeof *p);
	p->slots = s;
	p->slot = (struct slot){.base_id = base_id, .kit = SLOT_KIT_EMPTY, .data_tree_fd = -1, .disk_fd = -1};
	s->coming++;
	loop_work(s->loop, prepare, on_prepared, p);
	return 0;
}

static void on_retry(void *ctx)
{
	struct slots *s = ctx;

	(void)slots_refill(s, s->waiting);
}

struct slots *slots_new(struct loop *loop, const struct state *state, const struct image *image,
			struct blocks *blocks, struct quota *quota, uint64_t disk_bytes, unsigned target,
			struct slots_events events)
{
	struct slots *s = mem_new(sizeof *s);

	s->loop = loop;
	s->state = state;
	s->image = image;
	s->blocks = blocks;
	s->quota = quota;
	s->disk_bytes = disk_bytes;
	s->target = target;
	s->events = events;
	s->retry = timer_new(loop, on_retry, s);
	(void)slots_refill(s, 0);
	return s;
}

struct slots *slots_free(struct slots *s)
{
	if (!s) return NULL;
	timer_free(s->retry);
	while (s->first) {
		struct prepared *p = s->first;

		s->first = p->next;
		slot_close(&p->slot);
		fd_close(p->slot.disk_fd);
		blocks_give(s->blocks, p->slot.base_id);
		free(p);
	}
	free(s);
	return NULL;
}

void slots_stop(struct slots *s)
{
	s->stopped = true;
}

unsigned slots_busy(const struct slots *s)
{
	return s->coming;
}

unsigned slots_ready(const struct slots *s)
{
	return s->ready;
}

void slots_take(struct slots *s, struct slot *ret)
{
	struct prepared *p = s->first;

	s->first = p->next;
	s->ready--;
	*ret = p->slot;
	free(p);
}

int slots_refill(struct slots *s, unsigned waiting)
{
	int r = 0;

	s->waiting = waiting;
	while (r == 0 && !s->stopped && s->coming < AT_ONCE && s->ready + s->coming < s->target + waiting)
		r = begin(s);
	if (r < 0) timer_set(s->retry, RETRY_MS);
	return s->ready + s->coming ? 0 : r;
}

void slot_close(struct slot *slot)
{
	slot_kit_done(&slot->kit);
	slot->kit = SLOT_KIT_EMPTY;
	slot->data_tree_fd = fd_close(slot->data_tree_fd);
}

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
	struct slots_events events;
	struct timer *retry;
	struct prepared *first;
	unsigned ready, coming, target;
	unsigned waiting; /* as last told */
	bool stopped;
};

/* What an attempt that failed half way left there is empty and as good as new. */
static int open_made(int dir_fd, const char *name, mode_t mode, int *ret_fd)
{
	if (mkdirat(dir_fd, name, mode) < 0 && errno != EEXIST) return -errno;
	*ret_fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *ret_fd < 0 ? -errno : 0;
}

/* spare/NAME/data with upper/ and work/. The upper directory becomes the root: everybody may look into it. */
static int make_dirs(const struct state *state, const char *name, int *ret_data_fd, struct err *e)
{
	auto_close int dir_fd = -1, data_fd = -1, upper_fd = -1, work_fd = -1;
	int r = open_made(state->spare_fd, name, 0700, &dir_fd);

	if (r == 0) r = open_made(dir_fd, "data", 0700, &data_fd);
	if (r == 0) r = open_made(data_fd, "upper", 0755, &upper_fd);
	if (r == 0) r = open_made(data_fd, "work", 0755, &work_fd);
	if (r < 0) return err_set(e, r, "make directories for a sandbox");
	*ret_data_fd = take_fd(&data_fd);
	return 0;
}

/* On a work thread. */
static void prepare(void *ctx)
{
	struct prepared *p = ctx;
	struct slot *slot = &p->slot;
	auto_close int data_fd = -1;
	int r;

	(void)snprintf(slot->spare, sizeof slot->spare, "%08x", slot->base_id);
	r = slot_kit_make(slot->base_id, p->slots->image, &slot->kit, &p->e);
	if (r == 0) r = make_dirs(p->slots->state, slot->spare, &data_fd, &p->e);
	if (r == 0) r = data_tree_open(data_fd, slot->kit.userns_fd, &slot->data_tree_fd, &p->e);
	if (r < 0) slot_close(slot);
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
	p->slot = (struct slot){.base_id = base_id, .kit = SLOT_KIT_EMPTY, .data_tree_fd = -1};
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
			struct blocks *blocks, unsigned target, struct slots_events events)
{
	struct slots *s = mem_new(sizeof *s);

	s->loop = loop;
	s->state = state;
	s->image = image;
	s->blocks = blocks;
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

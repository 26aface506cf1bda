#include "loop/loop.h"

#include <assert.h>
#include <uv.h>

#include "base/err.h"
#include "base/mem.h"

struct loop {
	uv_loop_t uv;
};

struct watch {
	uv_poll_t poll;     /* first: a close callback gets its address */
	on_watch *on_ready; /* NULL once freed */
	void *ctx;
	unsigned wanted;
};

struct timer {
	uv_timer_t uv;
	on_timer *on_due;
	void *ctx;
};

struct listen_signal {
	uv_signal_t uv;
	on_timer *on_signal;
	void *ctx;
};

struct before_wait {
	uv_prepare_t uv;
	on_timer *on_wait;
	void *ctx;
};

struct work {
	uv_work_t uv;
	void (*work)(void *ctx);
	void (*on_done)(void *ctx);
	void *ctx;
};

int loop_new(struct loop **ret, struct err *e)
{
	struct loop *loop = mem_new(sizeof *loop);
	int r = uv_loop_init(&loop->uv);

	if (r < 0) {
		free(loop);
		return err_set(e, r, "make an event loop");
	}
	*ret = loop;
	return 0;
}

struct loop *loop_free(struct loop *loop)
{
	if (!loop) return NULL;
	/* Handles freed before us still owe their close callbacks: let them come. */
	while (uv_loop_close(&loop->uv) == UV_EBUSY)
		uv_run(&loop->uv, UV_RUN_ONCE);
	free(loop);
	return NULL;
}

void loop_run(struct loop *loop)
{
	uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *loop)
{
	uv_stop(&loop->uv);
}

static void on_closed(uv_handle_t *handle)
{
	free(handle);
}

/* ---- descriptors ---- */

static void on_poll(uv_poll_t *poll, int status, int events);

static void start_poll(struct watch *w)
{
	int mask = (w->wanted & WATCH_IN ? UV_READABLE : 0) | (w->wanted & WATCH_OUT ? UV_WRITABLE : 0) |
		   (w->wanted & WATCH_GONE ? UV_DISCONNECT : 0);

	uv_poll_start(&w->poll, mask, on_poll);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct watch *w = container_of(poll, struct watch, poll);
	unsigned got = 0;

	if (status < 0) {
		/* libuv gives up on a descriptor with an error; but there may be bytes to read in front of
		 * it. */
		got = w->wanted;
		start_poll(w);
	}
	if (events & UV_READABLE) got |= WATCH_IN;
	if (events & UV_WRITABLE) got |= WATCH_OUT;
	if (events & UV_DISCONNECT) got |= WATCH_GONE;
	if (got && w->on_ready) w->on_ready(w->ctx, got);
}

struct watch *watch_new(struct loop *loop, int fd, on_watch *on_ready, void *ctx)
{
	struct watch *w = mem_new(sizeof *w);

	w->on_ready = on_ready;
	w->ctx = ctx;
	/* Fails only for a descriptor that epoll cannot take or that is watched already: our own mistake. */
	int r = uv_poll_init(&loop->uv, &w->poll, fd);
	assert(r == 0);
	(void)r;
	return w;
}

struct watch *watch_free(struct watch *w)
{
	if (!w) return NULL;
	w->on_ready = NULL;
	uv_close((uv_handle_t *)&w->poll, on_closed);
	return NULL;
}

void watch_want(struct watch *w, unsigned events)
{
	if (w->wanted == events) return;
	w->wanted = events;
	if (!events) {
		uv_poll_stop(&w->poll);
		return;
	}
	start_poll(w);
}

/* ---- time ---- */

static void on_uv_timer(uv_timer_t *uv)
{
	struct timer *t = container_of(uv, struct timer, uv);

	if (t->on_due) t->on_due(t->ctx);
}

struct timer *timer_new(struct loop *loop, on_timer *on_due, void *ctx)
{
	struct timer *t = mem_new(sizeof *t);

	t->on_due = on_due;
	t->ctx = ctx;
	uv_timer_init(&loop->uv, &t->uv);
	return t;
}

struct timer *timer_free(struct timer *t)
{
	if (!t) return NULL;
	t->on_due = NULL;
	uv_close((uv_handle_t *)&t->uv, on_closed);
	return NULL;
}

void timer_set(struct timer *t, uint64_t ms)
{
	/* The loop's idea of "now" is as old as its last wait: a long callback must not shorten the time. */
	uv_update_time(t->uv.loop);
	uv_timer_start(&t->uv, on_uv_timer, ms, 0);
}

void timer_clear(struct timer *t)
{
	uv_timer_stop(&t->uv);
}

/* ---- later, elsewhere ---- */

static void on_turn_due(void *ctx)
{
	struct timer *t = ctx;
	struct work *later = t->uv.data;

	later->on_done(later->ctx);
	free(later);
	timer_free(t);
}

void loop_defer(struct loop *loop, on_timer *on_turn, void *ctx)
{
	struct work *later = mem_new(sizeof *later);
	struct timer *t = timer_new(loop, on_turn_due, NULL);

	later->on_done = on_turn;
	later->ctx = ctx;
	t->ctx = t;
	t->uv.data = later;
	uv_timer_start(&t->uv, on_uv_timer, 0, 0);
}

static void run_work(uv_work_t *uv)
{
	struct work *w = container_of(uv, struct work, uv);

	w->work(w->ctx);
}

static void on_work_done(uv_work_t *uv, int status)
{
	struct work *w = container_of(uv, struct work, uv);

	(void)status;
	w->on_done(w->ctx);
	free(w);
}

void loop_work(struct loop *loop, void (*work)(void *ctx), void (*on_done)(void *ctx), void *ctx)
{
	struct work *w = mem_new(sizeof *w);

	w->work = work;
	w->on_done = on_done;
	w->ctx = ctx;
	uv_queue_work(&loop->uv, &w->uv, run_work, on_work_done);
}

static void on_uv_signal(uv_signal_t *uv, int signo)
{
	struct listen_signal *s = container_of(uv, struct listen_signal, uv);

	(void)signo;
	if (s->on_signal) s->on_signal(s->ctx);
}

struct listen_signal *signal_new(struct loop *loop, int signo, on_timer *on_signal, void *ctx)
{
	struct listen_signal *s = mem_new(sizeof *s);

	s->on_signal = on_signal;
	s->ctx = ctx;
	uv_signal_init(&loop->uv, &s->uv);
	uv_signal_start(&s->uv, on_uv_signal, signo);
	return s;
}

struct listen_signal *signal_free(struct listen_signal *s)
{
	if (!s) return NULL;
	s->on_signal = NULL;
	uv_close((uv_handle_t *)&s->uv, on_closed);
	return NULL;
}

static void on_uv_prepare(uv_prepare_t *uv)
{
	struct before_wait *b = container_of(uv, struct before_wait, uv);

	if (b->on_wait) b->on_wait(b->ctx);
}

struct before_wait *before_wait_new(struct loop *loop, on_timer *on_wait, void *ctx)
{
	struct before_wait *b = mem_new(sizeof *b);

	b->on_wait = on_wait;
	b->ctx = ctx;
	uv_prepare_init(&loop->uv, &b->uv);
	uv_prepare_start(&b->uv, on_uv_prepare);
	uv_unref((uv_handle_t *)&b->uv); /* it waits for nothing: a loop with nothing else to do may end */
	return b;
}

struct before_wait *before_wait_free(struct before_wait *b)
{
	if (!b) return NULL;
	b->on_wait = NULL;
	uv_close((uv_handle_t *)&b->uv, on_closed);
	return NULL;
}

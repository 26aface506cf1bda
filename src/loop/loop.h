/*
 * loop.h - time and events for the front and the keeper: a thin face on libuv, so that no other room deals
 * with its handles' close callbacks. (The agent has a reactor of its own: see agent/reactor.h.)
 *
 * Every callback is `on_…`, runs from loop_run() on the loop's thread, and never from inside the call that
 * armed it. Everything here may be freed at any time, also from its own callback: after the free no callback
 * comes any more.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;
struct loop;
struct watch;
struct timer;
struct listen_signal;
struct before_wait;

int loop_new(struct loop **ret, struct err *e);
struct loop *loop_free(struct loop *loop);

/* Runs until loop_stop(). */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* ---- descriptors ---- */

enum {
	WATCH_IN = 1,   /* readable, or at its end */
	WATCH_OUT = 2,  /* writable */
	WATCH_GONE = 4, /* the peer closed its half (EPOLLRDHUP); asked for explicitly */
};

/* EVENTS is what happened; errors of the descriptor are reported as all that was wanted. */
typedef void on_watch(void *ctx, unsigned events);

/* Borrows FD, which must be non-blocking and stay open until watch_free(). Wants nothing at first. */
struct watch *watch_new(struct loop *loop, int fd, on_watch *on_ready, void *ctx);
struct watch *watch_free(struct watch *w);

/* Replaces what is wanted. Costs a system call only when it changes. */
void watch_want(struct watch *w, unsigned events);

/* ---- time ---- */

typedef void on_timer(void *ctx);

struct timer *timer_new(struct loop *loop, on_timer *on_due, void *ctx);
struct timer *timer_free(struct timer *t);

/* Due once, MS milliseconds from now; replaces an earlier setting. */
void timer_set(struct timer *t, uint64_t ms);
void timer_clear(struct timer *t);

/* ---- later, elsewhere ---- */

/* ON_TURN(ctx) once, on the next turn of the loop. Cannot be taken back: CTX must live until then. */
void loop_defer(struct loop *loop, on_timer *on_turn, void *ctx);

/*
 * WORK(ctx) on a thread of the pool, then ON_DONE(ctx) on the loop's thread. For what may block: files,
 * namespaces. Cannot be taken back: CTX must live until ON_DONE. WORK must not touch the loop.
 */
void loop_work(struct loop *loop, void (*work)(void *ctx), void (*on_done)(void *ctx), void *ctx);

/* ON_SIGNAL(ctx) from the loop at each SIGNO until freed. */
struct listen_signal *signal_new(struct loop *loop, int signo, on_timer *on_signal, void *ctx);
struct listen_signal *signal_free(struct listen_signal *s);

/*
 * ON_WAIT(ctx) before each wait of the loop, after the callbacks of a turn: to send in one go what they
 * gathered. It costs no system call, and does not keep the loop from waiting.
 */
struct before_wait *before_wait_new(struct loop *loop, on_timer *on_wait, void *ctx);
struct before_wait *before_wait_free(struct before_wait *b);

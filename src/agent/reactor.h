/*
 * reactor.h - the agent's event loop: descriptors, timers, dead children. No threads, no allocation of its
 * own.
 *
 * Watches and timers are embedded in their owners, who may stop any of them from any callback: an event that
 * was already fetched for a stopped watch is dropped.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct watch {
	int fd;                     /* borrowed; -1: not watched */
	uint32_t events;            /* EPOLLIN, EPOLLOUT asked for */
	struct watch *next_refused; /* private */
	void (*on_event)(struct watch *w, uint32_t events);
};

struct timer {
	struct timer *next; /* private, as is all but on_time */
	uint64_t due_ms;
	bool armed;
	void (*on_time)(struct timer *t);
};

#define WATCH_NONE ((struct watch){.fd = -1})

/* Blocks every signal; ON_CHILDREN is called when children have died, with the first of them (0: not known).
 * One reactor a process. 0 or -errno. */
int reactor_open(void (*on_children)(pid_t named));

/* ON_TURN runs after each batch of events, before the next sleep: the place to flush what the batch produced.
 */
void reactor_on_turn(void (*on_turn)(void));

/* Never returns. */
_Noreturn void reactor_run(void);

/* Starts to watch FD, or changes what is asked for. EVENTS 0 is fine: only errors and hang-ups are reported.
 * 0 or -errno. */
int watch_start(struct watch *w, int fd, uint32_t events);
int watch_change(struct watch *w, uint32_t events);
void watch_stop(struct watch *w); /* fine when not watched */

/* As watch_start(), for an owner who cannot do without: what the kernel refuses is asked for again until it
 * is granted. */
void watch_insist(struct watch *w, int fd, uint32_t events);

/* Instead of watch_stop() when the descriptor, which has no copies, is closed next: that spares a system
 * call. */
void watch_forget(struct watch *w);

/* Arms, or arms anew. */
void timer_start(struct timer *t, uint64_t delay_ms);
void timer_stop(struct timer *t);

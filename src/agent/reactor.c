#include "agent/reactor.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"

#define BATCH    16
#define AGAIN_MS 10 /* until the kernel is asked again for what it refused */

static struct {
	int epoll_fd;
	struct watch children;
	void (*on_children)(pid_t named);
	void (*on_turn)(void);
	struct timer *timers;  /* sorted: the next one first */
	struct watch *refused; /* those that are insisted on */
	struct timer again;
	struct epoll_event batch[BATCH];
	int batch_at, batch_count;
} reactor = {.epoll_fd = -1, .children = {.fd = -1}};

/* ---- descriptors ---- */

int watch_start(struct watch *w, int fd, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = w};

	if (epoll_ctl(reactor.epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0) return -errno;
	w->fd = fd;
	w->events = events;
	return 0;
}

static void ask_again(struct timer *t)
{
	struct watch *w = take_ptr(reactor.refused), *next;

	(void)t;
	for (; w; w = next) {
		next = w->next_refused;
		watch_insist(w, w->fd, w->events);
	}
}

void watch_insist(struct watch *w, int fd, uint32_t events)
{
	if (watch_start(w, fd, events) == 0) return;
	w->fd = fd;
	w->events = events;
	w->next_refused = reactor.refused;
	reactor.refused = w;
	reactor.again.on_time = ask_again;
	timer_start(&reactor.again, AGAIN_MS);
}

int watch_change(struct watch *w, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = w};

	if (w->fd < 0 || w->events == events) return 0;
	if (epoll_ctl(reactor.epoll_fd, EPOLL_CTL_MOD, w->fd, &ev) < 0) return -errno;
	w->events = events;
	return 0;
}

void watch_forget(struct watch *w)
{
	if (w->fd < 0) return;
	w->fd = -1;
	for (struct watch **at = &reactor.refused; *at; at = &(*at)->next_refused) {
		if (*at != w) continue;
		*at = w->next_refused;
		break;
	}
	for (int i = reactor.batch_at; i < reactor.batch_count; i++) {
		if (reactor.batch[i].data.ptr == w) reactor.batch[i].data.ptr = NULL;
	}
}

void watch_stop(struct watch *w)
{
	if (w->fd < 0) return;
	(void)epoll_ctl(reactor.epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
	watch_forget(w);
}

/* ---- timers: a sorted list, for there are few and most are stopped before their time ---- */

void timer_start(struct timer *t, uint64_t delay_ms)
{
	struct timer **at = &reactor.timers;
	uint64_t now = clock_ms();

	timer_stop(t);
	t->due_ms = delay_ms > UINT64_MAX - now ? UINT64_MAX : now + delay_ms;
	while (*at && (*at)->due_ms <= t->due_ms)
		at = &(*at)->next;
	t->next = *at;
	t->armed = true;
	*at = t;
}

void timer_stop(struct timer *t)
{
	if (!t->armed) return;
	for (struct timer **at = &reactor.timers; *at; at = &(*at)->next) {
		if (*at != t) continue;
		*at = t->next;
		break;
	}
	t->armed = false;
}

static void run_timers(void)
{
	uint64_t now;

	if (!reactor.timers) return;
	now = clock_ms();
	while (reactor.timers && reactor.timers->due_ms <= now) {
		struct timer *t = reactor.timers;

		timer_stop(t);
		t->on_time(t);
	}
}

static int sleep_ms(void)
{
	uint64_t now;

	if (!reactor.timers) return -1;
	now = clock_ms();
	if (reactor.timers->due_ms <= now) return 0;
	if (reactor.timers->due_ms - now > 3600000) return 3600000;
	return (int)(reactor.timers->due_ms - now);
}

/* ---- children ---- */

static void on_sigchld(struct watch *w, uint32_t events)
{
	struct signalfd_siginfo info = {0};

	(void)events;
	/* Of a signal that is already pending no second one is queued: one read takes all there is. */
	(void)!read(w->fd, &info, sizeof info);
	reactor.on_children((pid_t)info.ssi_pid);
}

int reactor_open(void (*on_children)(pid_t named))
{
	sigset_t all, chld;

	sigfillset(&all);
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_SETMASK, &all, NULL);
	auto_close int signals = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0) return -errno;
	reactor.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (reactor.epoll_fd < 0) return -errno;
	reactor.on_children = on_children;
	reactor.children.on_event = on_sigchld;
	return watch_start(&reactor.children, take_fd(&signals), EPOLLIN);
}

void reactor_on_turn(void (*on_turn)(void))
{
	reactor.on_turn = on_turn;
}

void reactor_run(void)
{
	for (;;) {
		int n = epoll_wait(reactor.epoll_fd, reactor.batch, BATCH, sleep_ms());

		reactor.batch_count = n > 0 ? n : 0;
		for (reactor.batch_at = 0; reactor.batch_at < reactor.batch_count;) {
			struct epoll_event *ev = &reactor.batch[reactor.batch_at++];
			struct watch *w = ev->data.ptr;

			if (w) w->on_event(w, ev->events);
		}
		run_timers();
		if (reactor.on_turn) reactor.on_turn();
	}
}

#include "loop/loop.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "unit.h"

struct seen {
	struct loop *loop;
	struct watch *watch;
	struct timer *timer;
	int calls;
	unsigned events;
	int wanted;
};

static void stop(struct seen *s)
{
	if (++s->calls >= s->wanted) loop_stop(s->loop);
}

static void on_event(void *ctx, unsigned events)
{
	struct seen *s = ctx;

	s->events |= events;
	watch_want(s->watch, 0);
	stop(s);
}

static void on_time(void *ctx)
{
	stop(ctx);
}

TEST(a_watch_tells_of_bytes_room_and_a_peer_that_left)
{
	struct seen s = {.wanted = 1};
	int fds[2];

	ASSERT_OK(loop_new(&s.loop, NULL));
	ASSERT_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds));
	s.watch = watch_new(s.loop, fds[0], on_event, &s);
	watch_want(s.watch, WATCH_OUT);
	loop_run(s.loop);
	ASSERT_EQ(s.events, WATCH_OUT);
	s = (struct seen){.loop = s.loop, .watch = s.watch, .wanted = 1};
	ASSERT_EQ(write(fds[1], "x", 1), 1);
	watch_want(s.watch, WATCH_IN);
	loop_run(s.loop);
	ASSERT_EQ(s.events, WATCH_IN);
	s = (struct seen){.loop = s.loop, .watch = s.watch, .wanted = 1};
	close(fds[1]);
	watch_want(s.watch, WATCH_GONE);
	loop_run(s.loop);
	ASSERT_TRUE(s.events & WATCH_GONE);
	watch_free(s.watch);
	close(fds[0]);
	loop_free(s.loop);
}

static void on_event_free(void *ctx, unsigned events)
{
	struct seen *s = ctx;

	(void)events;
	s->calls++;
	s->watch = watch_free(s->watch);
	s->timer = timer_free(s->timer);
}

TEST(what_was_freed_never_calls_also_from_its_own_callback)
{
	struct seen s = {.wanted = 1};
	struct seen end = {.wanted = 1};
	int fds[2];

	ASSERT_OK(loop_new(&s.loop, NULL));
	end.loop = s.loop;
	ASSERT_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds));
	ASSERT_EQ(write(fds[1], "x", 1), 1);
	s.watch = watch_new(s.loop, fds[0], on_event_free, &s);
	s.timer = timer_new(s.loop, on_time, &s);
	watch_want(s.watch, WATCH_IN);
	timer_set(s.timer, 20);
	struct timer *last = timer_new(s.loop, on_time, &end);
	timer_set(last, 60);
	loop_run(s.loop);
	ASSERT_EQ(s.calls, 1); /* the byte is still there, and the timer was due */
	timer_free(last);
	close(fds[0]);
	close(fds[1]);
	loop_free(s.loop);
}

static void do_work(void *ctx)
{
	*(int *)ctx += 1;
}

struct job {
	struct seen *seen;
	int worked;
};

static void on_worked(void *ctx)
{
	struct job *job = ctx;

	stop(job->seen);
}

static void work(void *ctx)
{
	do_work(&((struct job *)ctx)->worked);
}

TEST(work_is_done_elsewhere_and_told_here)
{
	struct seen s = {.wanted = 3};
	struct job jobs[3] = {{.seen = &s}, {.seen = &s}, {.seen = &s}};

	ASSERT_OK(loop_new(&s.loop, NULL));
	for (int i = 0; i < 3; i++)
		loop_work(s.loop, work, on_worked, &jobs[i]);
	loop_run(s.loop);
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(jobs[i].worked, 1);
	loop_free(s.loop);
}

TEST(later_is_not_now_and_signals_come_to_the_loop)
{
	struct seen s = {.wanted = 2};

	ASSERT_OK(loop_new(&s.loop, NULL));
	struct listen_signal *usr1 = signal_new(s.loop, SIGUSR1, on_time, &s);
	loop_defer(s.loop, on_time, &s);
	ASSERT_EQ(s.calls, 0);
	ASSERT_OK(kill(getpid(), SIGUSR1));
	loop_run(s.loop);
	ASSERT_EQ(s.calls, 2);
	signal_free(usr1);
	loop_free(s.loop);
}

static void on_one_byte(void *ctx, unsigned events)
{
	struct seen *s = ctx;
	char c;

	(void)events;
	s->calls++;
	if (read(s->wanted, &c, 1) <= 0) loop_stop(s->loop);
	watch_want(s->watch, WATCH_IN);
}

/* A peer that leaves bytes of ours unread makes an error of its end; what it said before is still there. */
TEST(an_error_is_told_until_somebody_takes_it)
{
	struct seen s = {0};
	int fds[2];

	ASSERT_OK(loop_new(&s.loop, NULL));
	ASSERT_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds));
	ASSERT_EQ(write(fds[0], "x", 1), 1);
	ASSERT_EQ(write(fds[1], "abc", 3), 3);
	close(fds[1]);
	s.wanted = fds[0];
	s.watch = watch_new(s.loop, fds[0], on_one_byte, &s);
	watch_want(s.watch, WATCH_IN);
	(void)alarm(20);
	loop_run(s.loop);
	(void)alarm(0);
	ASSERT_EQ(s.calls, 4);
	watch_free(s.watch);
	close(fds[0]);
	loop_free(s.loop);
}

TESTS(RUN(an_error_is_told_until_somebody_takes_it), RUN(a_watch_tells_of_bytes_room_and_a_peer_that_left),
      RUN(what_was_freed_never_calls_also_from_its_own_callback), RUN(work_is_done_elsewhere_and_told_here),
      RUN(later_is_not_now_and_signals_come_to_the_loop))

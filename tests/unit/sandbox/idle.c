#include "sandbox/idle.h"

#include "base/clock.h"
#include "base/err.h"
#include "loop/loop.h"
#include "unit.h"

static struct loop *loop;
static struct idlers *all;
static unsigned slept;
static struct idler *latest;
static bool done;

static void on_due(void *ctx, struct idler *i)
{
	(void)ctx;
	slept++;
	latest = i;
	done = true;
	loop_stop(loop);
}

static void run_until(const bool *true_then)
{
	while (!*true_then)
		loop_run(loop);
}

static void on_settled(void *ctx)
{
	*(bool *)ctx = true;
	loop_stop(loop);
}

/* Long after everything that was due. */
static void settle(void)
{
	bool settled = false;
	struct timer *t = timer_new(loop, on_settled, &settled);

	timer_set(t, 60);
	run_until(&settled);
	timer_free(t);
}

static void begin(uint64_t after_ms)
{
	struct err e = ERR_NONE;

	ASSERT_OK(loop_new(&loop, &e));
	all = idlers_new(loop, on_due, NULL);
	idlers_set_after(all, after_ms);
	slept = 0;
	done = false;
}

static void end(void)
{
	all = idlers_free(all);
	loop = loop_free(loop);
}

TEST(one_without_a_user_is_due_after_its_time_and_once)
{
	struct idler a = {0};
	uint64_t begun = clock_ms();

	begin(30);
	idler_watch(all, &a);
	idler_watch(all, &a);
	run_until(&done);
	ASSERT_TRUE(clock_ms() - begun >= 30);
	assert_ptr_equal(latest, &a);
	settle();
	ASSERT_EQ(slept, 1);
	ASSERT_FALSE(a.watched);
	end();
}

TEST(a_user_keeps_it_awake_and_its_leaving_begins_the_time_anew)
{
	struct idler a = {0}, b = {0};

	begin(30);
	idler_use(all, &a);
	idler_watch(all, &a);
	idler_watch(all, &b);
	run_until(&done);
	assert_ptr_equal(latest, &b);
	uint64_t left = clock_ms();
	idler_unuse(all, &a);
	done = false;
	run_until(&done);
	assert_ptr_equal(latest, &a);
	ASSERT_TRUE(clock_ms() - left >= 30);
	end();
}

TEST(those_that_are_not_watched_or_whose_time_is_none_are_never_due)
{
	struct idler a = {0}, b = {0};

	begin(0);
	idler_watch(all, &a);
	settle();
	ASSERT_EQ(slept, 0);
	idlers_set_after(all, 1);
	idler_unwatch(all, &a);
	idler_use(all, &b);
	idler_unuse(all, &b);
	settle();
	ASSERT_EQ(slept, 0);
	ASSERT_EQ(a.listed + b.listed, 0);
	end();
}

TESTS(RUN(one_without_a_user_is_due_after_its_time_and_once),
      RUN(a_user_keeps_it_awake_and_its_leaving_begins_the_time_anew),
      RUN(those_that_are_not_watched_or_whose_time_is_none_are_never_due))

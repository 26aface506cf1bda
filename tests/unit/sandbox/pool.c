#include "sandbox/pool.h"

#include "base/err.h"
#include "loop/loop.h"
#include "unit.h"

/* A keeper that makes sandboxes when the test says so. */
static struct loop *loop;
static struct pool *pool;
static unsigned wanted, wishes, assigned, ready;

static void on_wish(void *ctx, unsigned want)
{
	(void)ctx;
	wanted = want;
	wishes++;
	if (ready > want) ready = want;
	loop_stop(loop);
}

static unsigned count_assigned(void *ctx)
{
	(void)ctx;
	return assigned;
}

static const struct pool_events events = {.on_wish = on_wish, .assigned = count_assigned};

static void begin(struct pool_policy policy)
{
	struct err e = ERR_NONE;

	ASSERT_OK(loop_new(&loop, &e));
	wanted = wishes = assigned = ready = 0;
	if (!policy.refresh_ms) policy.refresh_ms = 1000000;
	if (!policy.batch) policy.batch = 5;
	pool = pool_new(loop, &policy, &events, NULL);
}

static void end(void)
{
	pool = pool_free(pool);
	loop = loop_free(loop);
}

/* The keeper has made all that was wished for. */
static void make_all(void)
{
	ready = wanted;
	pool_told(pool, ready, false);
}

static void make_until_full(unsigned limit)
{
	while (ready < wanted && ready + assigned < limit)
		pool_told(pool, ++ready, false);
	pool_told(pool, ready, ready < wanted);
}

TEST(nothing_is_wished_before_the_pool_is_primed)
{
	begin((struct pool_policy){.target = 3});
	ASSERT_EQ(wishes, 0);
	pool_prime(pool);
	ASSERT_EQ(wanted, 3);
	end();
}

TEST(a_pool_without_a_target_wishes_for_none)
{
	begin((struct pool_policy){.target = 0});
	pool_prime(pool);
	ASSERT_EQ(wanted, 0);
	ASSERT_EQ(wishes, 1); /* what an earlier server left is to go */
	end();
}

TEST(it_fills_in_batches_and_the_next_waits_for_the_last)
{
	begin((struct pool_policy){.target = 12, .batch = 5});
	pool_prime(pool);
	ASSERT_EQ(wanted, 5);
	pool_told(pool, 4, false);
	ASSERT_EQ(wanted, 5);
	make_all();
	ASSERT_EQ(wanted, 10);
	make_all();
	ASSERT_EQ(wanted, 12);
	make_all();
	ASSERT_EQ(wanted, 12);
	ASSERT_EQ(pool_stats(pool).warm, 12);
	end();
}

TEST(a_claim_is_made_up_for)
{
	begin((struct pool_policy){.target = 3});
	pool_prime(pool);
	make_all();
	assigned = 1;
	pool_told(pool, 2, false);
	ASSERT_EQ(wanted, 3);
	ASSERT_EQ(pool_stats(pool).warm, 2);
	ASSERT_EQ(pool_stats(pool).assigned, 1);
	end();
}

TEST(a_full_host_teaches_a_limit_and_one_probe_unlearns_it)
{
	begin((struct pool_policy){.target = 8, .batch = 5});
	assigned = 2;
	pool_prime(pool);
	make_until_full(6);
	ASSERT_EQ(ready, 4);
	ASSERT_EQ(pool_stats(pool).limit, 6);
	pool_prime(pool);     /* as a refresh */
	ASSERT_EQ(wanted, 5); /* one more, to see */
	pool_told(pool, 4, true);
	ASSERT_EQ(pool_stats(pool).limit, 6);
	make_all(); /* there is room again */
	ASSERT_EQ(pool_stats(pool).limit, 0);
	ASSERT_EQ(wanted, 8);
	end();
}

TEST(the_lower_of_the_known_limits_holds)
{
	begin((struct pool_policy){.target = 10, .batch = 20, .max_instances = 4});
	pool_told_limit(pool, 7);
	assigned = 1;
	pool_prime(pool);
	ASSERT_EQ(pool_stats(pool).limit, 4);
	ASSERT_EQ(wanted, 3);
	end();
}

TEST(a_shutdown_ends_the_ready_ones_until_the_next_refresh)
{
	begin((struct pool_policy){.target = 3, .refresh_ms = 1});
	pool_prime(pool);
	make_all();
	pool_shutdown(pool);
	ASSERT_EQ(wanted, 0);
	ASSERT_EQ(pool_stats(pool).warm, 0);
	pool_told(pool, 0, false);
	ASSERT_EQ(wanted, 0);
	while (wanted != 3)
		loop_run(loop);
	end();
}

TEST(every_refresh_says_it_again)
{
	begin((struct pool_policy){.target = 2, .refresh_ms = 1});
	pool_prime(pool);
	make_all();
	while (wishes < 4)
		loop_run(loop);
	ASSERT_EQ(wanted, 2);
	end();
}

TESTS(RUN(nothing_is_wished_before_the_pool_is_primed), RUN(a_pool_without_a_target_wishes_for_none),
      RUN(it_fills_in_batches_and_the_next_waits_for_the_last), RUN(a_claim_is_made_up_for),
      RUN(a_full_host_teaches_a_limit_and_one_probe_unlearns_it), RUN(the_lower_of_the_known_limits_holds),
      RUN(a_shutdown_ends_the_ready_ones_until_the_next_refresh), RUN(every_refresh_says_it_again))

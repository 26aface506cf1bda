/* ahead.c - sandboxes made ahead, as the front asks for them, gets them, and loses none of them. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "rig.h"
#include "unit.h"

/* What the keeper told last of those made ahead; no type: nothing since the last wish. */
static struct said told;

/* A wish is always answered. */
static void park(struct rig *r, unsigned want)
{
	told = (struct said){0};
	rig_park(r, want);
}

/* Waits until READY are told, and that it is (not) FULL. It may have been told already. */
static void await_parked(struct rig *r, unsigned ready, bool full)
{
	while (!told.type || told.ready != ready || (told.why != 0) != full)
		told = rig_expect(r, MSG_parked, NULL);
}

/* What is told meanwhile of those made ahead is for await_parked(): a successor may be ready before a claim
 * is written. */
static struct said await(struct rig *r, uint16_t type, const char *id)
{
	struct said s;

	while ((s = rig_hear(r)).type == MSG_parked)
		told = s;
	ASSERT_EQ(s.type, type);
	ASSERT_STR(s.id, id);
	return s;
}

static unsigned directories(const struct rig *r)
{
	char path[128];
	struct dirent *entry;
	unsigned count = 0;
	DIR *dir;

	(void)snprintf(path, sizeof path, "%s/state/sandboxes", r->dir);
	dir = opendir(path);
	while ((entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

TEST(as_many_as_wished_are_made_and_a_claim_takes_one_of_them)
{
	struct rig r;
	struct said s;

	rig_init(&r);
	(void)rig_start(&r);
	park(&r, 3);
	await_parked(&r, 3, false);
	ASSERT_EQ(directories(&r), 3);
	park(&r, 0); /* from here on none is made */
	await_parked(&r, 0, false);
	park(&r, 1);
	await_parked(&r, 1, false);
	rig_create(&r, "a", "");
	s = await(&r, MSG_attached, "a");
	rig_greet_agent(s.fd);
	fd_close(s.fd);
	await_parked(&r, 1, false); /* its successor */
	rig_remove(&r, "a");
	(void)await(&r, MSG_gone, "a");
	rig_done(&r);
}

TEST(a_claimed_one_never_comes_back_and_the_id_gets_another)
{
	char first[37];
	struct rig r;
	struct said s;

	rig_init(&r);
	(void)rig_start(&r);
	park(&r, 2);
	await_parked(&r, 2, false);
	rig_create(&r, "a", "");
	s = await(&r, MSG_attached, "a");
	memcpy(first, s.run, sizeof first);
	fd_close(s.fd);
	rig_remove(&r, "a");
	(void)await(&r, MSG_gone, "a");
	rig_create(&r, "a", "");
	s = await(&r, MSG_attached, "a");
	ASSERT_TRUE(strcmp(s.run, first) != 0);
	fd_close(s.fd);
	rig_done(&r);
}

TEST(one_that_dies_is_dropped_and_made_again_and_nobody_hears_of_it)
{
	struct rig r;

	rig_init(&r);
	(void)rig_start(&r);
	park(&r, 1);
	await_parked(&r, 1, false);
	ASSERT_OK(kill((pid_t)rig_record_number(&r, "-", "pid "), SIGKILL));
	await_parked(&r, 0, false);
	await_parked(&r, 1, false);
	rig_done(&r);
}

TEST(a_full_host_says_so_and_makes_room_for_who_asks)
{
	struct rig r;
	struct said s;

	rig_init(&r);
	(void)rig_start(&r, "--max-sandboxes", "2");
	park(&r, 3);
	await_parked(&r, 2, true);
	rig_create(&r, "a", "");
	fd_close(await(&r, MSG_attached, "a").fd);
	rig_create(&r, "b", "");
	fd_close(await(&r, MSG_attached, "b").fd);
	rig_create(&r, "c", "");
	s = await(&r, MSG_refused, "c");
	ASSERT_EQ(s.why, REFUSED_CAPACITY);
	/* Room again: one is on its way, and gives way. */
	rig_remove(&r, "a");
	rig_create(&r, "c", "");
	for (bool here = false; !here;) {
		s = rig_hear(&r);
		here = s.type == MSG_attached && strcmp(s.id, "c") == 0;
		/* Before the place was free it may have been refused once. */
		if (s.type == MSG_refused) rig_create(&r, "c", "");
		fd_close(s.fd);
	}
	rig_done(&r);
}

TEST(a_full_host_gives_up_one_that_was_made_for_another_type)
{
	struct rig r;

	rig_init(&r);
	(void)rig_start(&r, "--max-sandboxes", "1");
	park(&r, 1);
	await_parked(&r, 1, false);
	rig_create(&r, "a", "lite");
	fd_close(await(&r, MSG_attached, "a").fd);
	rig_done(&r);
}

TEST(a_new_front_and_a_new_keeper_find_what_was_made_ahead)
{
	struct rig r;
	pid_t agent;

	rig_init(&r);
	(void)rig_start(&r);
	park(&r, 1);
	await_parked(&r, 1, false);
	agent = (pid_t)rig_record_number(&r, "-", "pid ");
	ASSERT_EQ(rig_meet_front(&r, NULL, 0), 0);
	park(&r, 1);
	await_parked(&r, 1, false);
	ASSERT_OK(kill(rig_keeper(&r), SIGKILL));
	ASSERT_EQ(rig_meet_front(&r, NULL, 0), 0);
	park(&r, 1);
	await_parked(&r, 1, false);
	rig_create(&r, "a", "");
	struct said s = await(&r, MSG_attached, "a");
	rig_greet_agent(s.fd);
	fd_close(s.fd);
	ASSERT_EQ(rig_record_number(&r, "a", "pid "), agent);
	/* What is claimed is claimed for the next keeper, too. */
	ASSERT_OK(kill(rig_keeper(&r), SIGKILL));
	ASSERT_TRUE(rig_meet_front(&r, NULL, 0) == 1);
	ASSERT_EQ(rig_record_number(&r, "a", "pid "), agent);
	park(&r, 0);
	await_parked(&r, 0, false);
	rig_done(&r);
}

TESTS(RUN(as_many_as_wished_are_made_and_a_claim_takes_one_of_them),
      RUN(a_claimed_one_never_comes_back_and_the_id_gets_another),
      RUN(one_that_dies_is_dropped_and_made_again_and_nobody_hears_of_it),
      RUN(a_full_host_says_so_and_makes_room_for_who_asks),
      RUN(a_full_host_gives_up_one_that_was_made_for_another_type),
      RUN(a_new_front_and_a_new_keeper_find_what_was_made_ahead))

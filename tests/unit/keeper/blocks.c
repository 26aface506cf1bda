#include "keeper/blocks.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "unit.h"

static char dir[64], one[96], two[96];

static void begin(void)
{
	(void)snprintf(dir, sizeof dir, "/tmp/tombolo-unit-blocks-XXXXXX");
	ASSERT_TRUE(mkdtemp(dir) != NULL);
	(void)snprintf(one, sizeof one, "%s/one", dir);
	(void)snprintf(two, sizeof two, "%s/two", dir);
}

static void end(void)
{
	char command[128];

	(void)snprintf(command, sizeof command, "rm -rf %s", dir);
	ASSERT_OK(system(command));
}

static struct blocks *open_as(const char *owner)
{
	struct blocks *b = NULL;
	char ids[96];

	(void)snprintf(ids, sizeof ids, "%s/ids", dir);
	ASSERT_OK(blocks_open(ids, owner, &b, NULL));
	return b;
}

/* A server that was killed: its locks are gone, its name stands there. */
static uint32_t die_holding_one(const char *owner)
{
	uint32_t base_id = 0;
	int ends[2];

	ASSERT_OK(pipe2(ends, O_CLOEXEC));
	pid_t pid = fork();
	if (pid == 0) {
		struct blocks *b = open_as(owner);

		if (blocks_take(b, &base_id) == 0) (void)!write(ends[1], &base_id, sizeof base_id);
		_exit(0);
	}
	close(ends[1]);
	ASSERT_EQ(read(ends[0], &base_id, sizeof base_id), sizeof base_id);
	close(ends[0]);
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
	return base_id;
}

/* As if a sandbox of OWNER were recorded on disk. */
static void leave_sandbox(const char *owner)
{
	char path[160];

	ASSERT_OK(mkdir(owner, 0700));
	(void)snprintf(path, sizeof path, "%s/sandboxes", owner);
	ASSERT_OK(mkdir(path, 0700));
	(void)snprintf(path, sizeof path, "%s/sandboxes/demo", owner);
	ASSERT_OK(mkdir(path, 0700));
}

TEST(slots_are_65536_ids_each_and_none_is_handed_out_twice)
{
	static bool seen[1u << 16];
	struct blocks *b;

	begin();
	b = open_as(one);
	for (unsigned i = 0; i < 2 * BLOCK_SLOTS + 1; i++) {
		uint32_t base_id;

		ASSERT_OK(blocks_take(b, &base_id));
		ASSERT_EQ(base_id & 0xFFFF, 0);
		ASSERT_TRUE(base_id >= 1u << 28);
		ASSERT_FALSE(seen[base_id >> 16]);
		seen[base_id >> 16] = true;
	}
	blocks_free(b);
	end();
}

TEST(a_slot_given_back_is_the_last_to_be_taken_again)
{
	uint32_t first, next;
	struct blocks *b;

	begin();
	b = open_as(one);
	ASSERT_OK(blocks_take(b, &first));
	blocks_give(b, first);
	for (unsigned i = 0; i < BLOCK_SLOTS - 1; i++) {
		ASSERT_OK(blocks_take(b, &next));
		ASSERT_TRUE(next != first);
	}
	ASSERT_OK(blocks_take(b, &next));
	ASSERT_EQ(next, first);
	blocks_free(b);
	end();
}

TEST(two_servers_share_no_block)
{
	struct blocks *a, *b;
	uint32_t of_a, of_b;

	begin();
	a = open_as(one);
	b = open_as(two);
	ASSERT_OK(blocks_take(a, &of_a));
	ASSERT_OK(blocks_take(b, &of_b));
	ASSERT_TRUE(of_a >> 24 != of_b >> 24);
	ASSERT_EQ(blocks_take_this(b, of_a), -ENOENT);
	ASSERT_EQ(blocks_take_this(a, of_a), -EBUSY);
	blocks_free(a);
	blocks_free(b);
	end();
}

TEST(a_killed_server_gets_its_blocks_back_and_its_sandboxes_slots)
{
	struct blocks *b;
	uint32_t old, fresh;

	begin();
	leave_sandbox(one);
	old = die_holding_one(one);
	b = open_as(one);
	ASSERT_OK(blocks_take_this(b, old));
	ASSERT_OK(blocks_take(b, &fresh));
	ASSERT_EQ(fresh >> 24, old >> 24);
	ASSERT_TRUE(fresh != old);
	blocks_free(b);
	end();
}

TEST(ids_of_a_killed_server_are_left_alone_while_it_has_sandboxes_and_taken_after)
{
	struct blocks *b;
	uint32_t old, taken;
	char sandbox[160];

	begin();
	leave_sandbox(one);
	old = die_holding_one(one);
	b = open_as(two);
	ASSERT_OK(blocks_take(b, &taken));
	ASSERT_TRUE(taken >> 24 != old >> 24);
	blocks_give(b, taken);
	blocks_free(b);

	(void)snprintf(sandbox, sizeof sandbox, "%s/sandboxes/demo", one);
	ASSERT_OK(rmdir(sandbox));
	b = open_as(two);
	ASSERT_OK(blocks_take(b, &taken));
	ASSERT_EQ(taken >> 24, old >> 24);
	blocks_free(b);
	end();
}

TEST(all_blocks_in_use_is_an_answer)
{
	unsigned slots = (BLOCK_LAST - BLOCK_FIRST + 1) * BLOCK_SLOTS;
	struct blocks *b;
	uint32_t base_id = 0;

	begin();
	b = open_as(one);
	for (unsigned i = 0; i < slots; i++)
		ASSERT_OK(blocks_take(b, &base_id));
	ASSERT_TRUE(base_id <= UINT32_MAX - (2u << 16));
	ASSERT_EQ(blocks_take(b, &base_id), -ENOSPC);
	blocks_give(b, base_id);
	ASSERT_OK(blocks_take(b, &base_id));
	blocks_free(b);
	end();
}

TESTS(RUN(slots_are_65536_ids_each_and_none_is_handed_out_twice),
      RUN(a_slot_given_back_is_the_last_to_be_taken_again), RUN(two_servers_share_no_block),
      RUN(a_killed_server_gets_its_blocks_back_and_its_sandboxes_slots),
      RUN(ids_of_a_killed_server_are_left_alone_while_it_has_sandboxes_and_taken_after),
      RUN(all_blocks_in_use_is_an_answer))

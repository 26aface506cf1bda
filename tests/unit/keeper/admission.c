#include "keeper/admission.h"

#include <fcntl.h>

#include "base/fd.h"
#include "unit.h"

#define MIB ((uint64_t)1 << 20)

static const struct reserves reserves = {
	.memory_bytes = 128 * MIB, .disk_bytes = 256 * MIB, .processes = 256};

static struct room plenty(void)
{
	return (struct room){.memory_bytes = 1024 * MIB,
			     .disk_bytes = 1024 * MIB,
			     .inodes = 100000,
			     .processes = 10000,
			     .descriptors = 10000};
}

static void assert_refused(struct room room, const char *piece)
{
	char text[200] = "";

	ASSERT_FALSE(room_is_enough(&room, &reserves, text, sizeof text));
	if (!strstr(text, piece)) fail_msg("'%s' does not say '%s'", text, piece);
}

TEST(each_thing_that_is_short_is_named_with_its_setting)
{
	struct room room = plenty();
	char text[200];

	ASSERT_TRUE(room_is_enough(&room, &reserves, text, sizeof text));
	room.memory_bytes = 127 * MIB;
	assert_refused(room, "127 MiB available, memory-reserve is 128 MiB");
	room = plenty();
	room.disk_bytes = 0;
	assert_refused(room, "0 MiB free, disk-reserve is 256 MiB");
	room = plenty();
	room.inodes = 12;
	assert_refused(room, "out of inodes (12 free)");
	room = plenty();
	room.processes = 255;
	assert_refused(room, "process-reserve is 256");
	room = plenty();
	room.descriptors = 3;
	assert_refused(room, "file descriptors");
}

TEST(a_reserve_of_zero_is_no_matter)
{
	struct room room = {.descriptors = 10000};
	struct reserves none = {0};
	char text[200];

	ASSERT_TRUE(room_is_enough(&room, &none, text, sizeof text));
}

TEST(what_is_not_known_is_enough)
{
	struct room room = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
	char text[200];

	ASSERT_TRUE(room_is_enough(&room, &reserves, text, sizeof text));
}

TEST(this_host_is_looked_at_once_in_a_moment)
{
	auto_close int dir_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct admission a = {.reserves = {.memory_bytes = 1}, .dir_fd = dir_fd};
	char text[200];

	ASSERT_TRUE(admission_allows(&a, 1000, text, sizeof text));
	ASSERT_TRUE(a.room.memory_bytes > MIB && a.room.memory_bytes != UINT64_MAX);
	ASSERT_TRUE(a.room.processes != UINT64_MAX && a.room.disk_bytes != UINT64_MAX);
	a.room.memory_bytes = 0;
	ASSERT_FALSE(admission_allows(&a, 1001, text, sizeof text));
	ASSERT_TRUE(admission_allows(&a, 5000, text, sizeof text));
}

TESTS(RUN(each_thing_that_is_short_is_named_with_its_setting), RUN(a_reserve_of_zero_is_no_matter),
      RUN(what_is_not_known_is_enough), RUN(this_host_is_looked_at_once_in_a_moment))

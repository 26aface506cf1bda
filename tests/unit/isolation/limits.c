#include "isolation/limits.h"

#include "unit.h"

#define MIB (UINT64_C(1) << 20)

TEST(small_disks_have_fewer_files)
{
	ASSERT_EQ(limits_inodes(64 * MIB), 16384);
	ASSERT_EQ(limits_inodes(256 * MIB), 65536);
	ASSERT_EQ(limits_inodes(16384 * MIB), 1048576);
}

TEST(each_number_is_judged_by_itself_and_0_is_always_within)
{
	static const struct limits least = {10, 10, 10, 10}, most = {20, 20, 20, 20};

	ASSERT_TRUE(limits_are_within(&(struct limits){0}, &least, &most));
	ASSERT_TRUE(limits_are_within(&(struct limits){10, 20, 15, 0}, &least, &most));
	ASSERT_FALSE(limits_are_within(&(struct limits){.memory_bytes = 21}, &least, &most));
	ASSERT_FALSE(limits_are_within(&(struct limits){.pids = 9}, &least, &most));
	ASSERT_FALSE(limits_are_within(&(struct limits){.cpu_milli = 21}, &least, &most));
	ASSERT_FALSE(limits_are_within(&(struct limits){.disk_bytes = 9}, &least, &most));
}

TESTS(RUN(small_disks_have_fewer_files), RUN(each_number_is_judged_by_itself_and_0_is_always_within))

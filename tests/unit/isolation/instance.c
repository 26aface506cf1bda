#include "isolation/instance.h"

#include "unit.h"

TEST(a_type_has_its_limits)
{
	struct limits l;

	ASSERT_OK(instance_limits("lite", &l));
	ASSERT_EQ(l.cpu_milli, 63);
	ASSERT_EQ(l.memory_bytes, 256u << 20);
	ASSERT_EQ(l.disk_bytes, 2048ull << 20);
	ASSERT_EQ(l.pids, 512);
}

TEST(no_name_is_the_default)
{
	struct limits unnamed, named;

	ASSERT_OK(instance_limits("", &unnamed));
	ASSERT_OK(instance_limits(INSTANCE_DEFAULT, &named));
	ASSERT_MEM(&unnamed, &named, sizeof named);
}

TEST(a_stranger_is_refused_and_touches_nothing)
{
	struct limits l = {.pids = 7};

	ASSERT_EQ(instance_limits("standard-9", &l), -EINVAL);
	ASSERT_EQ(instance_limits("Lite", &l), -EINVAL);
	ASSERT_EQ(l.pids, 7);
}

TESTS(RUN(a_type_has_its_limits), RUN(no_name_is_the_default), RUN(a_stranger_is_refused_and_touches_nothing))

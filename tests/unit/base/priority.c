#include "base/priority.h"

#include <sys/resource.h>

#include "unit.h"

/* Whoever may not go up may still go down; that is all there is to see from outside. */
TEST(priority_is_set_and_taken_back_by_who_may)
{
	int r;

	ASSERT_OK(priority_set(5, 100));
	ASSERT_EQ(getpriority(PRIO_PROCESS, 0), 5);
	r = priority_set(0, 0);
	ASSERT_EQ(getpriority(PRIO_PROCESS, 0), r == 0 ? 0 : 5);
}

TESTS(RUN(priority_is_set_and_taken_back_by_who_may))

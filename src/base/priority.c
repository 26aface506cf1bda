#include "base/priority.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's struct sched_attr, as far as it was from the beginning; libc has none yet. */
struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

int priority_set(int nice, uint32_t slice_us)
{
	struct attributes a = {.size = sizeof a, .nice = nice, .runtime_ns = (uint64_t)slice_us * 1000};

	/* Policy 0 is the ordinary one. */
	return syscall(SYS_sched_setattr, 0, &a, 0) < 0 ? -errno : 0;
}

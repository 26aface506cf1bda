#include "isolation/instance.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"

#define MIB (UINT64_C(1) << 20)

static const struct instance {
	const char *name;
	struct limits limits;
} instances[] = {
#define INSTANCE(name, cpu, memory, disk, most_pids) \
	{name, \
	 {.memory_bytes = (memory)*MIB, .pids = (most_pids), .cpu_milli = (cpu), .disk_bytes = (disk)*MIB}},
#include "isolation/instance.def"
};

int instance_limits(const char *name, struct limits *ret)
{
	if (!name[0]) name = INSTANCE_DEFAULT;
	for (unsigned i = 0; i < ARRAY_LEN(instances); i++) {
		if (strcmp(instances[i].name, name) != 0) continue;
		*ret = instances[i].limits;
		return 0;
	}
	return -EINVAL;
}

#define LEAST_MEMORY (16 * MIB)
#define LEAST_PIDS   8
#define LEAST_CPU    10
#define LEAST_DISK   (64 * MIB)

void instance_bounds(struct limits *ret_least, struct limits *ret_most)
{
	struct limits most = {0};

	for (unsigned i = 0; i < ARRAY_LEN(instances); i++) {
		const struct limits *l = &instances[i].limits;

		most.memory_bytes = MAX(most.memory_bytes, l->memory_bytes);
		most.pids = MAX(most.pids, l->pids);
		most.cpu_milli = MAX(most.cpu_milli, l->cpu_milli);
		most.disk_bytes = MAX(most.disk_bytes, l->disk_bytes);
	}
	*ret_least = (struct limits){LEAST_MEMORY, LEAST_PIDS, LEAST_CPU, LEAST_DISK};
	*ret_most = most;
}

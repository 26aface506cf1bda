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

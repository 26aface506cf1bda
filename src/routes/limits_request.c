#include "routes/limits_request.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "isolation/instance.h"

#define MIB 1048576.0

enum { MEMORY, PIDS, CPU, DISK };

/* One unit of each, in ours. */
static const struct {
	const char *name;
	double unit;
	bool whole;
} fields[] = {
	[MEMORY] = {"memory_mb", MIB, true},
	[PIDS] = {"pids", 1, true},
	[CPU] = {"cpu", 1000, false},
	[DISK] = {"disk_mb", MIB, true},
};

static bool is_known(const char *name)
{
	for (unsigned i = 0; i < ARRAY_LEN(fields); i++)
		if (strcmp(fields[i].name, name) == 0) return true;
	return false;
}

static int unknown_field(const json_t *json, char wrong[LIMITS_REQUEST_WRONG])
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)json, name, value)
	{
		if (is_known(name)) continue;
		(void)snprintf(wrong, LIMITS_REQUEST_WRONG,
			       "limits must hold memory_mb, pids, cpu and disk_mb only");
		return -EINVAL;
	}
	return 0;
}

static int one(const json_t *json, unsigned i, double least, double most, uint64_t *ret,
	       char wrong[LIMITS_REQUEST_WRONG])
{
	const json_t *value = json_object_get(json, fields[i].name);
	double number = json_number_value(value), in_ours = number * fields[i].unit;

	*ret = 0;
	if (!value || json_is_null(value)) return 0;
	if (json_is_number(value) && (json_is_integer(value) || !fields[i].whole) && in_ours >= least &&
	    in_ours <= most) {
		*ret = (uint64_t)(in_ours + 0.5);
		return 0;
	}
	(void)snprintf(wrong, LIMITS_REQUEST_WRONG, "limits.%s must be %s from %g to %g", fields[i].name,
		       fields[i].whole ? "a whole number" : "a number", least / fields[i].unit,
		       most / fields[i].unit);
	return -EINVAL;
}

int limits_request(const json_t *json, struct limits *ret, char wrong[LIMITS_REQUEST_WRONG])
{
	uint64_t pids = 0, cpu = 0;
	struct limits least, most, own = {0};
	int r;

	if (!json || json_is_null(json)) {
		*ret = own;
		return 0;
	}
	if (!json_is_object(json)) {
		(void)snprintf(wrong, LIMITS_REQUEST_WRONG, "limits must be an object");
		return -EINVAL;
	}
	instance_bounds(&least, &most);
	r = unknown_field(json, wrong);
	if (r == 0)
		r = one(json, MEMORY, (double)least.memory_bytes, (double)most.memory_bytes,
			&own.memory_bytes, wrong);
	if (r == 0) r = one(json, PIDS, least.pids, most.pids, &pids, wrong);
	if (r == 0) r = one(json, CPU, least.cpu_milli, most.cpu_milli, &cpu, wrong);
	if (r == 0)
		r = one(json, DISK, (double)least.disk_bytes, (double)most.disk_bytes, &own.disk_bytes,
			wrong);
	if (r < 0) return r;
	own.pids = (uint32_t)pids;
	own.cpu_milli = (uint32_t)cpu;
	*ret = own;
	return 0;
}

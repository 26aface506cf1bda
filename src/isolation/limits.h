/* limits.h - what one sandbox may use, as numbers; who enforces which: cgroup.h, quota.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct limits {
	uint64_t memory_bytes; /* 0: none */
	uint32_t pids;         /* 0: none */
	uint32_t cpu_milli;    /* thousandths of a core; 0, or not below the host's cores: none */
	uint64_t disk_bytes;   /* 0: none */
};

/* Whether each number of L is 0 or within. */
bool limits_are_within(const struct limits *l, const struct limits *least, const struct limits *most);

/* How many inodes come with so much disk. */
uint64_t limits_inodes(uint64_t disk_bytes);

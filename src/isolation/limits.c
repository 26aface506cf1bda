#include "isolation/limits.h"

#include "base/mem.h"

#define BYTES_AN_INODE 16384
#define INODES_LEAST   65536
#define BYTES_LEAST    4096 /* an inode, where the disk is small */

static bool is_within(uint64_t n, uint64_t least, uint64_t most)
{
	return n == 0 || (n >= least && n <= most);
}

bool limits_are_within(const struct limits *l, const struct limits *least, const struct limits *most)
{
	return is_within(l->memory_bytes, least->memory_bytes, most->memory_bytes) &&
	       is_within(l->pids, least->pids, most->pids) &&
	       is_within(l->cpu_milli, least->cpu_milli, most->cpu_milli) &&
	       is_within(l->disk_bytes, least->disk_bytes, most->disk_bytes);
}

uint64_t limits_inodes(uint64_t disk_bytes)
{
	return MAX(disk_bytes / BYTES_AN_INODE, MIN((uint64_t)INODES_LEAST, disk_bytes / BYTES_LEAST));
}

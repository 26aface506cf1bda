#include "agent/cause.h"

#include <signal.h>
#include <sys/statfs.h>

#include "agent/limits.h"
#include "agent/tree.h"
#include "base/mem.h"

#define CODE_KILLED (128 + SIGKILL)

/*
 * Each of the kernel's kills explains one end. The kernel takes the largest process, so whoever dies beyond
 * that number can only be one that was meant if it is larger than the last one we thought was.
 */
static struct {
	uint64_t kills;
	uint64_t size; /* of the last one */
} explained;

void cause_begin(struct cause *c, const struct tree *t)
{
	*c = (struct cause){.reason = END_EXITED,
			    .oom_before = limits_oom_kills(),
			    .refused_before = tree_forks_refused(t)};
	/* Of these, and of a count that began anew, nobody who starts now dies. */
	if (c->oom_before != explained.kills) explained.kills = c->oom_before, explained.size = 0;
}

static uint32_t risen(uint64_t before, uint64_t now)
{
	return now > before ? (uint32_t)MIN(now - before, (uint64_t)UINT32_MAX) : 0;
}

/*
 * The kernel refuses before the last block is gone, by up to the size of one write. Less than this is full: a
 * 128th of the disk, between 64 KiB and 4 MiB.
 */
static uint64_t least_free(uint64_t size)
{
	return MIN(MAX(size / 128, (uint64_t)64 << 10), (uint64_t)4 << 20);
}

/* The root is where everything that the sandbox writes goes. */
static bool disk_is_full(uint64_t *ret_size)
{
	struct statfs fs;

	if (statfs("/", &fs) < 0) return false;
	*ret_size = (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize;
	return (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize < least_free(*ret_size) ||
	       (fs.f_files && !fs.f_ffree);
}

static bool kernel_meant(uint64_t kills, uint64_t size)
{
	if (explained.kills < kills) explained.kills++;
	else if (size <= explained.size) return false;
	explained.size = size;
	return true;
}

void cause_find(struct cause *c, const struct tree *t, int code, uint64_t max_memory, bool killed_by_us)
{
	if (!code) return;
	c->oom_kills = risen(c->oom_before, limits_oom_kills());
	c->forks_refused = risen(c->refused_before, tree_forks_refused(t));
	if (c->oom_kills && code == CODE_KILLED && !killed_by_us &&
	    kernel_meant(c->oom_before + c->oom_kills, max_memory)) {
		c->reason = END_OOM;
		c->limit = limits_memory();
	} else if (c->forks_refused) {
		c->reason = END_PIDS;
		c->limit = limits_pids();
	} else if (disk_is_full(&c->limit)) {
		c->reason = END_DISK;
	} else {
		c->limit = 0;
	}
}

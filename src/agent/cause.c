#include "agent/cause.h"

#include <signal.h>
#include <sys/statfs.h>

#include "agent/limits.h"
#include "agent/tree.h"
#include "base/mem.h"

#define CODE_KILLED (128 + SIGKILL)

void cause_begin(struct cause *c, const struct tree *t)
{
	*c = (struct cause){.reason = END_EXITED,
			    .oom_before = limits_oom_kills(),
			    .refused_before = tree_forks_refused(t)};
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

void cause_find(struct cause *c, const struct tree *t, int code, bool killed_by_us)
{
	if (!code) return;
	c->oom_kills = risen(c->oom_before, limits_oom_kills());
	c->forks_refused = risen(c->refused_before, tree_forks_refused(t));
	if (c->oom_kills && code == CODE_KILLED && !killed_by_us) {
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

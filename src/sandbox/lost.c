#include "sandbox/lost.h"

#include <stdio.h>

#include "base/id.h"
#include "base/mem.h"
#include "sandbox/hash.h"

struct lost_one {
	char id[SANDBOX_ID_MAX + 1];
	char why[160];
	UT_hash_handle hh;
};

struct lost {
	struct lost_one *first; /* a uthash keeps the order of addition */
	size_t most;
};

struct lost *lost_new(size_t most)
{
	struct lost *all = mem_new(sizeof *all);

	all->most = most;
	return all;
}

static void drop(struct lost *all, struct lost_one *one)
{
	HASH_DEL(all->first, one);
	free(one);
}

struct lost *lost_free(struct lost *all)
{
	if (!all) return NULL;
	while (all->first)
		drop(all, all->first); /* NOLINT(clang-analyzer-unix.Malloc): it does not follow HASH_DEL */
	free(all);
	return NULL;
}

static struct lost_one *find(const struct lost *all, const char *id)
{
	struct lost_one *one;

	HASH_FIND_STR(all->first, id, one);
	return one;
}

void lost_forget(struct lost *all, const char *id)
{
	struct lost_one *one = find(all, id);

	if (one) drop(all, one);
}

void lost_add(struct lost *all, const char *id, const char *why)
{
	lost_forget(all, id);
	if (all->first && HASH_COUNT(all->first) >= all->most) drop(all, all->first);
	struct lost_one *one = mem_new(sizeof *one);
	(void)snprintf(one->id, sizeof one->id, "%s", id);
	(void)snprintf(one->why, sizeof one->why, "%s", why);
	HASH_ADD_STR(all->first, id, one); /* NOLINT(clang-analyzer-unix.Malloc): as above */
}

const char *lost_why(const struct lost *all, const char *id)
{
	const struct lost_one *one = find(all, id);

	return one ? one->why : NULL;
}

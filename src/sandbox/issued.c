#include "sandbox/issued.h"

#include <stdio.h>

#include "base/id.h"
#include "base/mem.h"
#include "sandbox/hash.h"

struct issued_id {
	char id[SANDBOX_ID_MAX + 1];
	char instance[ISSUED_INSTANCE_MAX + 1];
	struct limits own;
	UT_hash_handle hh;
};

struct issued {
	struct issued_id *first; /* a uthash keeps the order of addition */
	size_t most;
};

struct issued *issued_new(size_t most)
{
	struct issued *all = mem_new(sizeof *all);

	all->most = most;
	return all;
}

static void forget(struct issued *all, struct issued_id *one)
{
	HASH_DEL(all->first, one);
	free(one);
}

struct issued *issued_free(struct issued *all)
{
	if (!all) return NULL;
	while (all->first)
		forget(all, all->first); /* NOLINT(clang-analyzer-unix.Malloc): it does not follow HASH_DEL */
	free(all);
	return NULL;
}

static struct issued_id *find(const struct issued *all, const char *id)
{
	struct issued_id *one;

	HASH_FIND_STR(all->first, id, one);
	return one;
}

void issued_add(struct issued *all, const char *id, const char *instance, const struct limits *own)
{
	issued_forget(all, id);
	if (all->first && HASH_COUNT(all->first) >= all->most) forget(all, all->first);
	struct issued_id *one = mem_new(sizeof *one);
	(void)snprintf(one->id, sizeof one->id, "%s", id);
	(void)snprintf(one->instance, sizeof one->instance, "%s", instance);
	one->own = *own;
	HASH_ADD_STR(all->first, id, one); /* NOLINT(clang-analyzer-unix.Malloc): as above */
}

bool issued_has(const struct issued *all, const char *id)
{
	return find(all, id) != NULL;
}

const char *issued_instance(const struct issued *all, const char *id)
{
	const struct issued_id *one = find(all, id);

	return one ? one->instance : "";
}

struct limits issued_limits(const struct issued *all, const char *id)
{
	const struct issued_id *one = find(all, id);

	return one ? one->own : (struct limits){0};
}

void issued_forget(struct issued *all, const char *id)
{
	struct issued_id *one = find(all, id);

	if (one) forget(all, one);
}

#include "sandbox/notes.h"

#include <stdio.h>

#include "base/id.h"
#include "base/mem.h"
#include "sandbox/hash.h"

struct note {
	char id[SANDBOX_ID_MAX + 1];
	UT_hash_handle hh;
	_Alignas(max_align_t) unsigned char bytes[];
};

struct notes {
	struct note *first; /* a uthash keeps the order of addition */
	size_t most, size;
};

struct notes *notes_new(size_t most, size_t size)
{
	struct notes *all = mem_new(sizeof *all);

	all->most = most;
	all->size = size;
	return all;
}

static void drop(struct notes *all, struct note *one)
{
	HASH_DEL(all->first, one);
	free(one);
}

struct notes *notes_free(struct notes *all)
{
	if (!all) return NULL;
	while (all->first)
		drop(all, all->first); /* NOLINT(clang-analyzer-unix.Malloc): it does not follow HASH_DEL */
	free(all);
	return NULL;
}

static struct note *find(const struct notes *all, const char *id)
{
	struct note *one;

	HASH_FIND_STR(all->first, id, one);
	return one;
}

void notes_put(struct notes *all, const char *id, const void *note)
{
	notes_forget(all, id);
	if (all->first && HASH_COUNT(all->first) >= all->most) drop(all, all->first);
	struct note *one = mem_new(sizeof *one + all->size);
	(void)snprintf(one->id, sizeof one->id, "%s", id);
	memcpy(one->bytes, note, all->size);
	HASH_ADD_STR(all->first, id, one); /* NOLINT(clang-analyzer-unix.Malloc): as above */
}

const void *notes_of(const struct notes *all, const char *id)
{
	const struct note *one = find(all, id);

	return one ? one->bytes : NULL;
}

void notes_forget(struct notes *all, const char *id)
{
	struct note *one = find(all, id);

	if (one) drop(all, one);
}

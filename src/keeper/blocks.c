#include "keeper/blocks.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"

#define SLOT_SHIFT  16
#define BLOCK_SHIFT 24

#define RECLAIM_TRIES   500
#define RECLAIM_WAIT_US 4000

struct block {
	unsigned number;
	int fd; /* holds the lock */
	unsigned used;
	bool taken[BLOCK_SLOTS];
	unsigned next; /* where to look first: a slot just given back rests for a while */
};

struct blocks {
	int dir_fd;
	char *owner;
	struct block *list[BLOCK_LAST + 1]; /* by number; NULL: not ours */
};

/* A server whose state directory holds no sandbox (or is gone) has no use for its ids. */
static bool owner_is_gone(const char *owner)
{
	char path[PATH_MAX];
	struct dirent *entry;
	bool empty = true;
	DIR *dir;

	if (snprintf(path, sizeof path, "%s/sandboxes", owner) >= (int)sizeof path) return false;
	dir = opendir(path);
	if (!dir) return errno == ENOENT;
	while (empty && (entry = readdir(dir)))
		empty = entry->d_name[0] == '.';
	closedir(dir);
	return empty;
}

static int open_block(const struct blocks *b, unsigned number)
{
	char file[16];
	int fd;

	(void)snprintf(file, sizeof file, "%u", number);
	fd = openat(b->dir_fd, file, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

/* Whose it is or was; "" for nobody's. */
static int read_name(int fd, char name[PATH_MAX])
{
	ssize_t n = pread(fd, name, PATH_MAX - 1, 0);

	if (n < 0) return -errno;
	name[n] = '\0';
	return 0;
}

static int set_name(int fd, const char *name)
{
	if (ftruncate(fd, 0) < 0) return -errno;
	return pwrite(fd, name, strlen(name), 0) < 0 ? -errno : 0;
}

static void keep(struct blocks *b, unsigned number, int fd)
{
	b->list[number] = mem_new(sizeof *b->list[number]);
	b->list[number]->number = number;
	b->list[number]->fd = fd;
}

/* Nobody's, or that of a server which is gone. */
static int claim(struct blocks *b, unsigned number)
{
	auto_close int fd = open_block(b, number);
	char name[PATH_MAX];
	int r;

	if (fd < 0) return fd;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) return -errno;
	r = read_name(fd, name);
	if (r == 0 && name[0] && !owner_is_gone(name)) r = -EBUSY;
	if (r == 0) r = set_name(fd, b->owner);
	if (r == 0) keep(b, number, take_fd(&fd));
	return r;
}

/*
 * One with our name. Its lock can only be held by what a killed predecessor of ours was starting just then: a
 * child before its exec has the parent's descriptors. It ends in a moment.
 */
static void reclaim(struct blocks *b, unsigned number)
{
	auto_close int fd = open_block(b, number);
	char name[PATH_MAX];

	if (fd < 0 || read_name(fd, name) < 0 || strcmp(name, b->owner) != 0) return;
	for (int i = 0; i < RECLAIM_TRIES; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
			keep(b, number, take_fd(&fd));
			return;
		}
		(void)usleep(RECLAIM_WAIT_US);
	}
}

static int open_dir(const char *dir, int *ret_fd, struct err *e)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof path, "%s", dir);
	for (char *slash = path + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		(void)mkdir(path, 0755);
	}
	(void)mkdir(dir, 0700);
	*ret_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *ret_fd < 0 ? err_set(e, -errno, "open '%s', where servers share out user ids", dir) : 0;
}

int blocks_open(const char *dir, const char *owner, struct blocks **ret, struct err *e)
{
	struct blocks *b = mem_new(sizeof *b);
	int r = open_dir(dir, &b->dir_fd, e);

	if (r < 0) {
		free(b);
		return r;
	}
	b->owner = mem_strdup(owner);
	for (unsigned n = BLOCK_FIRST; n <= BLOCK_LAST; n++) {
		char file[16];

		(void)snprintf(file, sizeof file, "%u", n);
		if (faccessat(b->dir_fd, file, F_OK, 0) == 0) reclaim(b, n);
	}
	*ret = b;
	return 0;
}

struct blocks *blocks_free(struct blocks *b)
{
	if (!b) return NULL;
	for (unsigned n = BLOCK_FIRST; n <= BLOCK_LAST; n++) {
		struct block *block = b->list[n];

		if (!block) continue;
		if (!block->used) (void)set_name(block->fd, "");
		fd_close(block->fd);
		free(block);
	}
	fd_close(b->dir_fd);
	free(b->owner);
	free(b);
	return NULL;
}

static uint32_t take_in(struct block *block)
{
	while (block->taken[block->next % BLOCK_SLOTS])
		block->next++;
	unsigned slot = block->next++ % BLOCK_SLOTS;
	block->taken[slot] = true;
	block->used++;
	return (uint32_t)block->number << BLOCK_SHIFT | slot << SLOT_SHIFT;
}

int blocks_take(struct blocks *b, uint32_t *ret_base_id)
{
	for (unsigned n = BLOCK_FIRST; n <= BLOCK_LAST; n++) {
		if (!b->list[n] || b->list[n]->used == BLOCK_SLOTS) continue;
		*ret_base_id = take_in(b->list[n]);
		return 0;
	}
	for (unsigned n = BLOCK_FIRST; n <= BLOCK_LAST; n++) {
		if (b->list[n] || claim(b, n) < 0) continue;
		*ret_base_id = take_in(b->list[n]);
		return 0;
	}
	return -ENOSPC;
}

static struct block *block_of(struct blocks *b, uint32_t base_id)
{
	unsigned number = base_id >> BLOCK_SHIFT;

	return number <= BLOCK_LAST ? b->list[number] : NULL;
}

int blocks_take_this(struct blocks *b, uint32_t base_id)
{
	struct block *block = block_of(b, base_id);
	unsigned slot = base_id >> SLOT_SHIFT & (BLOCK_SLOTS - 1);

	if (!block) return -ENOENT;
	if (block->taken[slot]) return -EBUSY;
	block->taken[slot] = true;
	block->used++;
	return 0;
}

void blocks_give(struct blocks *b, uint32_t base_id)
{
	struct block *block = block_of(b, base_id);
	unsigned slot = base_id >> SLOT_SHIFT & (BLOCK_SLOTS - 1);

	assert(block && block->taken[slot]);
	block->taken[slot] = false;
	block->used--;
}

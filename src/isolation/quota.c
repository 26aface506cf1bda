#include "isolation/quota.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "isolation/quota_backend.h"

#define BYTES_AN_INODE 16384
#define INODES_LEAST   65536
#define BYTES_LEAST    4096 /* an inode, where the disk is small */

/* ---- directories ---- */

/* What an attempt that failed half way left there is empty and as good as new. */
static int open_made(int dir_fd, const char *name, mode_t mode, int *ret_fd)
{
	if (mkdirat(dir_fd, name, mode) < 0 && errno != EEXIST) return -errno;
	*ret_fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *ret_fd < 0 ? -errno : 0;
}

/* The upper directory becomes the root: everybody may look into it. */
int quota_layers_make(int data_fd, struct err *e)
{
	auto_close int upper_fd = -1, work_fd = -1;
	int r = open_made(data_fd, "upper", 0755, &upper_fd);

	if (r == 0) r = open_made(data_fd, "work", 0755, &work_fd);
	return r < 0 ? err_set(e, r, "make directories for a sandbox") : 0;
}

int quota_dirs_make(int dir_fd, int *ret_data_fd, struct err *e)
{
	auto_close int data_fd = -1;
	int r = open_made(dir_fd, QUOTA_DATA, 0700, &data_fd);

	r = r < 0 ? err_set(e, r, "make directories for a sandbox") : quota_layers_make(data_fd, e);
	if (r < 0) return r;
	*ret_data_fd = take_fd(&data_fd);
	return 0;
}

int quota_try(const struct quota *q, quota_use *use, uint64_t bytes, struct err *e)
{
	static const char *const leavings[] = {"disk", "device", "trial", "data/upper", "data/work", "data"};
	static atomic_uint last; /* a trial may need another one, and each thread its own */
	auto_close int dir_fd = -1;
	char name[48];
	int r;

	(void)snprintf(name, sizeof name, ".trial-%d-%u", (int)getpid(), atomic_fetch_add(&last, 1));
	r = open_made(q->images_fd, name, 0700, &dir_fd);
	if (r < 0) return err_set(e, r, "make a directory for a trial");
	r = use(q, dir_fd, bytes, e);
	for (unsigned i = 0; i < ARRAY_LEN(leavings); i++)
		if (fd_remove(dir_fd, leavings[i], 0) < 0) (void)fd_remove(dir_fd, leavings[i], AT_REMOVEDIR);
	(void)fd_remove(q->images_fd, name, AT_REMOVEDIR);
	return r;
}

/* ---- no limit at all ---- */

static int off_probe(const struct quota *q, struct err *e)
{
	(void)q, (void)e;
	return 0;
}

static int off_make(const struct quota *q, int dir_fd, uint64_t bytes, int *ret_data_fd, struct err *e)
{
	(void)q, (void)bytes;
	return quota_dirs_make(dir_fd, ret_data_fd, e);
}

static const struct quota_backend quota_off = {.name = "off", .probe = off_probe, .make = off_make};

/* ---- the choice ---- */

static const struct quota_backend *const backends[] = {&quota_project, &quota_image, &quota_tmpfs,
						       &quota_off};

static int take(struct quota *q, const char *wish, struct err *e)
{
	for (unsigned i = 0; i < ARRAY_LEN(backends); i++) {
		if (strcmp(backends[i]->name, wish) != 0) continue;
		q->backend = backends[i];
		return backends[i]->probe(q, e);
	}
	return err_say(e, -EINVAL, "there is no disk quota called '%s'", wish);
}

static void take_best(struct quota *q)
{
	struct err of_project = ERR_NONE, of_image = ERR_NONE;

	if (take(q, "project", &of_project) == 0 || take(q, "image", &of_image) == 0) return;
	(void)snprintf(q->fault, sizeof q->fault,
		       "disk limits are not enforced: project: %.70s; image: %.70s", of_project.text,
		       of_image.text);
	q->backend = &quota_off;
}

int quota_open(const char *wish, int images_fd, struct quota **ret, struct err *e)
{
	struct quota *q = mem_new(sizeof *q);
	int r = 0;

	q->images_fd = images_fd;
	if (strcmp(wish, "auto") == 0) take_best(q);
	else r = take(q, wish, e);
	if (r < 0) {
		err_add(e, "disk-quota = %s", wish);
		free(q);
		return r;
	}
	*ret = q;
	return 0;
}

struct quota *quota_free(struct quota *q)
{
	free(q);
	return NULL;
}

const char *quota_name(const struct quota *q)
{
	return q->backend->name;
}

bool quota_is_enforced(const struct quota *q)
{
	return q->backend->enforced;
}

bool quota_is_fixed(const struct quota *q)
{
	return q->backend->fixed;
}

const char *quota_fault(const struct quota *q)
{
	return q->fault[0] ? q->fault : NULL;
}

uint64_t quota_inodes(uint64_t bytes)
{
	return MAX(bytes / BYTES_AN_INODE, MIN((uint64_t)INODES_LEAST, bytes / BYTES_LEAST));
}

int quota_make(struct quota *q, int dir_fd, uint64_t bytes, int *ret_data_fd, struct err *e)
{
	if (!bytes) return quota_dirs_make(dir_fd, ret_data_fd, e);
	return q->backend->make(q, dir_fd, bytes, ret_data_fd, e);
}

static int data_reopen(int dir_fd, int *ret_data_fd, struct err *e)
{
	int fd = openat(dir_fd, QUOTA_DATA, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0) return err_set(e, -errno, "open a sandbox's tree");
	*ret_data_fd = fd;
	return 0;
}

/*
 * The overlay was mounted `volatile` (isolation/contain.c) and left a mark that forbids a second mount,
 * because a crash of the host may have eaten what was not written yet. Whoever keeps a tree knows that, and
 * takes what there is.
 */
static int allow_overlay_again(int data_fd)
{
	static const char *const marks[] = {"work/work/incompat/volatile", "work/work/incompat"};

	int r = fd_remove(data_fd, "work/work/incompat/volatile/dirty", 0);

	for (unsigned i = 0; i < ARRAY_LEN(marks) && r == 0; i++)
		r = fd_remove(data_fd, marks[i], AT_REMOVEDIR);
	return r;
}

int quota_reopen(struct quota *q, int dir_fd, int *ret_data_fd, struct err *e)
{
	auto_close int fd = -1;
	int r = quota_image_is_in(dir_fd) ? quota_image_reopen(q, dir_fd, &fd, e)
					  : data_reopen(dir_fd, &fd, e);

	if (r < 0) return r;
	r = allow_overlay_again(fd);
	if (r < 0) return err_set(e, r, "make a sandbox's tree ready to be used again");
	*ret_data_fd = take_fd(&fd);
	return 0;
}

int quota_hold(struct quota *q, int dir_fd, int *ret_data_fd, struct err *e)
{
	*ret_data_fd = -1;
	return q->backend->hold ? q->backend->hold(q, dir_fd, ret_data_fd, e) : 0;
}

void quota_drop(struct quota *q, int dir_fd, int data_fd)
{
	if (q->backend->drop) q->backend->drop(dir_fd, data_fd);
}

uint64_t quota_used(const struct quota *q, int dir_fd)
{
	return q->backend->used ? q->backend->used(dir_fd) : 0;
}

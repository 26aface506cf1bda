#include "isolation/quota.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "isolation/quota_backend.h"

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

int quota_make(struct quota *q, int dir_fd, uint64_t bytes, int *ret_data_fd, struct err *e)
{
	if (!bytes) return quota_dirs_make(dir_fd, ret_data_fd, e);
	return q->backend->make(q, dir_fd, bytes, ret_data_fd, e);
}

/* Of what is no plain directory; NULL: it is one, or there is nothing. */
static const struct quota_backend *maker_of(int dir_fd)
{
	for (unsigned i = 0; i < ARRAY_LEN(backends); i++)
		if (backends[i]->is_in && backends[i]->is_in(dir_fd)) return backends[i];
	return NULL;
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
	const struct quota_backend *maker = maker_of(dir_fd);
	int r = maker ? maker->reopen(q, dir_fd, &fd, e) : data_reopen(dir_fd, &fd, e);

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

#include "isolation/quota_backend.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"

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

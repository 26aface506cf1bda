/*
 * quota_tmpfs.c - the sandbox's files in memory: fastest, counted in the memory limit of who writes them, and
 * gone with the last process that could see them. For limits that are small beside the memory limit.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/statfs.h>

#include "base/err.h"
#include "base/fd.h"
#include "isolation/limits.h"
#include "isolation/quota_backend.h"

static int set_number(int fs_fd, const char *name, uint64_t number)
{
	char text[24];

	(void)snprintf(text, sizeof text, "%" PRIu64, number);
	return fsconfig(fs_fd, FSCONFIG_SET_STRING, name, text, 0);
}

static int tmpfs_make(const struct quota *q, int dir_fd, uint64_t bytes, int *ret_data_fd, struct err *e)
{
	auto_close int fs_fd = fsopen("tmpfs", FSOPEN_CLOEXEC), fd = -1;
	int r;

	(void)q, (void)dir_fd;
	if (fs_fd < 0) return err_set(e, -errno, "begin a mount");
	if (set_number(fs_fd, "size", bytes) < 0 ||
	    set_number(fs_fd, "nr_inodes", limits_inodes(bytes)) < 0 ||
	    fsconfig(fs_fd, FSCONFIG_SET_STRING, "mode", "0700", 0) < 0 ||
	    fsconfig(fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return err_set(e, -errno, "make a tmpfs");
	fd = fsmount(fs_fd, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (fd < 0) return err_set(e, -errno, "mount a tmpfs");
	r = quota_layers_make(fd, e);
	if (r < 0) return r;
	*ret_data_fd = take_fd(&fd);
	return 0;
}

static int tmpfs_probe(const struct quota *q, struct err *e)
{
	int fd, r = tmpfs_make(q, -1, 1 << 20, &fd, e);

	if (r < 0) return r;
	fd_close(fd);
	return 0;
}

const struct quota_backend quota_tmpfs = {
	.name = "tmpfs", .enforced = true, .fixed = true, .probe = tmpfs_probe, .make = tmpfs_make};

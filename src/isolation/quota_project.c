/*
 * quota_project.c - a project of ext4 or XFS: everything below the sandbox's directory inherits its number,
 * and the kernel counts blocks and inodes by it.
 *
 * A number is drawn at random for each sandbox: a tree in the trash still counts for a while, and must not
 * count against who comes after it. Nobody inside can change it: the kernel allows that in the first user
 * namespace only. Overlay works with the mounter's credentials, but without CAP_SYS_RESOURCE, so the limits
 * hold there, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/quota.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/id.h"
#include "isolation/limits.h"
#include "isolation/quota_backend.h"

#ifndef PRJQUOTA
#define PRJQUOTA 2
#endif

#define FIRST_OF_OURS 0x40000000u /* numbers below are left to the host's administrator */
#define BLOCK         1024        /* of struct dqblk's limits */
#define TRIAL_BYTES   (64 << 10)

static int limit_set(int fd, uint32_t project, uint64_t bytes, uint64_t inodes)
{
	struct dqblk limits = {.dqb_bhardlimit = bytes / BLOCK,
			       .dqb_bsoftlimit = bytes / BLOCK,
			       .dqb_ihardlimit = inodes,
			       .dqb_isoftlimit = inodes,
			       .dqb_valid = QIF_LIMITS};

	return syscall(SYS_quotactl_fd, fd, QCMD(Q_SETQUOTA, PRJQUOTA), project, &limits) < 0 ? -errno : 0;
}

static uint32_t project_of(int fd)
{
	struct fsxattr attributes;

	if (ioctl(fd, FS_IOC_FSGETXATTR, &attributes) < 0) return 0;
	return attributes.fsx_projid >= FIRST_OF_OURS ? attributes.fsx_projid : 0;
}

/*
 * A directory that was made ahead of need has one already, for another limit: it keeps it, since what has
 * been made below it has inherited it.
 */
static int project_give(int fd, uint32_t *ret_project)
{
	struct fsxattr attributes;
	uint32_t project = project_of(fd);

	if (!project) {
		id_random(&project, sizeof project);
		project = FIRST_OF_OURS | project >> 2;
	}
	*ret_project = project;
	if (ioctl(fd, FS_IOC_FSGETXATTR, &attributes) < 0) return -errno;
	attributes.fsx_projid = project;
	attributes.fsx_xflags |= FS_XFLAG_PROJINHERIT;
	return ioctl(fd, FS_IOC_FSSETXATTR, &attributes) < 0 ? -errno : 0;
}

static int data_open(int dir_fd)
{
	return openat(dir_fd, QUOTA_DATA, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int project_make(const struct quota *q, int dir_fd, uint64_t bytes, int *ret_data_fd, struct err *e)
{
	auto_close int data_fd = -1;
	uint32_t project;
	int r;

	(void)q;
	/* The number comes first: only what is made afterwards inherits it. */
	if (mkdirat(dir_fd, QUOTA_DATA, 0700) < 0 && errno != EEXIST)
		return err_set(e, -errno, "make a directory for a sandbox");
	data_fd = data_open(dir_fd);
	if (data_fd < 0) return err_set(e, -errno, "open a sandbox's directory");
	r = project_give(data_fd, &project);
	if (r < 0) return err_set(e, r, "give a directory a project number");
	r = limit_set(data_fd, project, bytes, limits_inodes(bytes));
	if (r < 0) return err_set(e, r, "limit a project");
	r = quota_layers_make(data_fd, e);
	if (r < 0) return r;
	*ret_data_fd = take_fd(&data_fd);
	return 0;
}

/* A number without limits and, soon, without files is forgotten by the kernel. */
static void project_drop(int dir_fd, int given_fd)
{
	auto_close int data_fd = data_open(dir_fd);
	uint32_t project = data_fd < 0 ? 0 : project_of(data_fd);

	(void)given_fd;
	if (project) (void)limit_set(data_fd, project, 0, 0);
}

static uint64_t project_used(int dir_fd)
{
	auto_close int data_fd = data_open(dir_fd);
	uint32_t project = data_fd < 0 ? 0 : project_of(data_fd);
	struct dqblk usage;

	if (!project || syscall(SYS_quotactl_fd, data_fd, QCMD(Q_GETQUOTA, PRJQUOTA), project, &usage) < 0)
		return 0;
	return usage.dqb_curspace;
}

/* Many a file system takes the calls and counts nothing: only a write that is refused proves it. */
static int try_project(const struct quota *q, int dir_fd, uint64_t bytes, struct err *e)
{
	auto_close int data_fd = -1, fd = -1;
	int r = project_make(q, dir_fd, bytes, &data_fd, e);

	if (r < 0) return r;
	fd = openat(data_fd, "upper/trial", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0) return err_set(e, -errno, "make a file in a project");
	(void)unlinkat(data_fd, "upper/trial", 0);
	/* Root with CAP_SYS_RESOURCE is not refused; what it uses is counted all the same. */
	r = posix_fallocate(fd, 0, (off_t)bytes * 2);
	if (r != EDQUOT && r != ENOSPC && project_used(dir_fd) < bytes)
		r = err_say(e, -EOPNOTSUPP, "the file system does not count projects");
	else r = 0;
	project_drop(dir_fd, -1);
	return r;
}

static int project_probe(const struct quota *q, struct err *e)
{
	return quota_try(q, try_project, TRIAL_BYTES, e);
}

const struct quota_backend quota_project = {.name = "project",
					    .enforced = true,
					    .fixed = true,
					    .probe = project_probe,
					    .make = project_make,
					    .drop = project_drop,
					    .used = project_used};

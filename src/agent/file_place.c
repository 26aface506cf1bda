#include "agent/file_place.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/id.h"
#include "base/mem.h"
#include "base/path.h"

#define LINKS_MAX 40 /* the kernel's own limit */

/* ---- as the user ---- */

static void be(uint32_t uid)
{
	(void)setfsgid(uid);
	(void)setfsuid(uid); /* away from 0: CAP_DAC_OVERRIDE and the like go; back to 0: they return */
}

static int open_at(int dir_fd, const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC), .mode = mode, .resolve = RESOLVE_NO_MAGICLINKS};
	int fd = (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof how);

	return fd < 0 ? -errno : fd;
}

int file_place_open(uint32_t uid, const char *path, int flags)
{
	int fd;

	be(uid);
	fd = open_at(AT_FDCWD, path, flags, 0);
	be(0);
	return fd;
}

/* ---- finding ---- */

/* Opens the directory that the first LEN bytes of PATH name, making what is missing. */
static int open_directory(const char *path, size_t len)
{
	char part[PATH_LIMIT];
	auto_close int fd = open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0);

	for (size_t at = 0; fd >= 0 && at < len;) {
		size_t n = strcspn(path + at, "/");
		int next;

		n = MIN(n, len - at);
		if (n == 0) {
			at++;
			continue;
		}
		memcpy(part, path + at, n);
		part[n] = '\0';
		next = open_at(fd, part, O_PATH | O_DIRECTORY, 0);
		if (next == -ENOENT && (mkdirat(fd, part, 0755) == 0 || errno == EEXIST)) {
			next = open_at(fd, part, O_PATH | O_DIRECTORY, 0);
		} else if (next == -ENOENT) {
			next = -errno;
		}
		if (next < 0) return next;
		fd_close(fd);
		fd = next;
		at += n;
	}
	return take_fd(&fd);
}

/* PATH := where TARGET, LEN bytes that a link in the directory of PATH says, leads. BASE_LEN: length of that
 * directory's path. */
static int follow(char path[PATH_LIMIT], size_t base_len, const char *target, size_t len)
{
	char whole[PATH_LIMIT];
	size_t keep = target[0] == '/' ? 0 : base_len;

	if (keep + 1 + len >= sizeof whole) return -ENAMETOOLONG;
	memcpy(whole, path, keep);
	whole[keep] = '/';
	memcpy(whole + keep + 1, target, len + 1);
	memcpy(path, whole, keep + 1 + len + 1);
	return 0;
}

static int find(char path[PATH_LIMIT], struct file_place *ret)
{
	char target[PATH_LIMIT];

	for (int links = 0; links < LINKS_MAX; links++) {
		char *slash = strrchr(path, '/');
		size_t base_len = (size_t)(slash - path);
		auto_close int fd = open_directory(path, base_len);
		ssize_t n;
		int r;

		if (fd < 0) return fd;
		if (!slash[1] || strcmp(slash + 1, ".") == 0 || strcmp(slash + 1, "..") == 0) return -EISDIR;
		if (strlen(slash + 1) >= sizeof ret->name) return -ENAMETOOLONG;
		n = readlinkat(fd, slash + 1, target, sizeof target - 1);
		if (n < 0 && errno != EINVAL && errno != ENOENT) return -errno;
		if (n < 0) {
			strcpy(ret->name, slash + 1);
			ret->dir_fd = take_fd(&fd);
			return 0;
		}
		target[n] = '\0';
		r = follow(path, base_len, target, (size_t)n);
		if (r < 0) return r;
	}
	return -ELOOP;
}

int file_place_find(uint32_t uid, const char *path, struct file_place *ret)
{
	char copy[PATH_LIMIT];
	size_t len = strlen(path);
	int r;

	if (path[0] != '/') return -EINVAL;
	if (len >= sizeof copy) return -ENAMETOOLONG;
	memcpy(copy, path, len + 1);
	be(uid);
	r = find(copy, ret);
	be(0);
	return r;
}

void file_place_done(struct file_place *p)
{
	p->dir_fd = fd_close(p->dir_fd);
}

/* ---- at the place ---- */

int file_place_create(const struct file_place *p, uint32_t uid, char *name, size_t size)
{
	uint64_t number;
	int fd;

	id_random(&number, sizeof number);
	(void)snprintf(name, size, ".tombolo-%016llx", (unsigned long long)number);
	be(uid);
	fd = open_at(p->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	be(0);
	return fd;
}

int file_place_rename(const struct file_place *p, uint32_t uid, const char *name)
{
	int r;

	be(uid);
	r = renameat(p->dir_fd, name, p->dir_fd, p->name) < 0 ? -errno : 0;
	be(0);
	return r;
}

void file_place_unlink(const struct file_place *p, uint32_t uid, const char *name)
{
	be(uid);
	(void)unlinkat(p->dir_fd, name, 0);
	be(0);
}

/* The number of the mount that the file is seen through; 0: not to be had. */
static uint64_t mount_of(int dir_fd, const char *path, int flags)
{
	struct statx stx;

	if (statx(dir_fd, path, flags, STATX_MNT_ID, &stx) < 0 || !(stx.stx_mask & STATX_MNT_ID)) return 0;
	return stx.stx_mnt_id;
}

static bool is_below(const char *top, int fd, const struct stat *st)
{
	struct stat own;
	uint64_t mount;

	if (stat(top, &own) == 0 && own.st_dev == st->st_dev) return true;
	/* Where the layers of an overlay are not of one file system its files have other device numbers than
	 * its directories. */
	mount = mount_of(AT_FDCWD, top, 0);
	return mount != 0 && mount == mount_of(fd, "", AT_EMPTY_PATH);
}

bool file_place_is_ours(int fd, const struct stat *st)
{
	return is_below("/", fd, st) || is_below("/usr", fd, st);
}

#include "archive/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/id.h"
#include "base/mem.h"

#define HOLE_MIN 512 /* shorter runs of zeros are written */
#define PAGE     4096u

int place_clear(int dir_fd, const char *name)
{
	if (unlinkat(dir_fd, name, 0) == 0) return 0;
	if (errno != EISDIR && errno != EPERM) return -errno;
	return unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

int place_file(int dir_fd, const char *name, unsigned mode, int *ret_fd)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(dir_fd, name, flags, mode & 0777);

	if (fd < 0 && errno == EEXIST) {
		int r = place_clear(dir_fd, name);

		if (r < 0) return r;
		fd = openat(dir_fd, name, flags, mode & 0777);
	}
	if (fd < 0) return -errno;
	*ret_fd = fd;
	return 0;
}

int place_symlink(int dir_fd, const char *name, const char *target, const struct attrs *attrs)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, attrs->mtime};
	int r = symlinkat(target, dir_fd, name) < 0 ? -errno : 0;

	if (r == -EEXIST) {
		r = place_clear(dir_fd, name);
		if (r == 0 && symlinkat(target, dir_fd, name) < 0) r = -errno;
	}
	if (r < 0) return r;
	if (attrs->owned && fchownat(dir_fd, name, attrs->uid, attrs->gid, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	if (attrs->timed && utimensat(dir_fd, name, times, AT_SYMLINK_NOFOLLOW) < 0) r = -errno;
	/* Some file systems have no times of symlinks: that is no loss of content. */
	return r == -EOPNOTSUPP ? 0 : r;
}

int place_finish(int fd, const struct attrs *attrs)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, attrs->mtime};
	int r = 0;

	/* Writing and a new owner clear set-id bits: they are set last. */
	if (attrs->owned && fchown(fd, attrs->uid, attrs->gid) < 0) r = -errno;
	if (attrs->mode & 07000 && fchmod(fd, attrs->mode) < 0 && r == 0) r = -errno;
	if (attrs->timed && futimens(fd, times) < 0 && r == 0) r = -errno;
	return r;
}

static int write_at(int fd, const char *bytes, size_t len, uint64_t offset)
{
	while (len) {
		ssize_t n = pwrite(fd, bytes, len, (off_t)offset);

		if (n < 0 && errno == EINTR) continue;
		if (n < 0) return -errno;
		bytes += n;
		len -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}

static bool is_zero(const char *bytes, size_t len)
{
	return bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0;
}

/* From OFFSET to the next boundary of a page of the file, at most LEN. */
static size_t piece_len(uint64_t offset, size_t len)
{
	return MIN(len, PAGE - (size_t)(offset % PAGE));
}

/* Length of the longest run of pieces at BYTES that are all zero, or all not. */
static size_t run_len(const char *bytes, size_t len, uint64_t offset, bool zero)
{
	size_t run = 0;

	while (run < len) {
		size_t piece = piece_len(offset + run, len - run);

		if ((piece >= HOLE_MIN && is_zero(bytes + run, piece)) != zero) break;
		run += piece;
	}
	return run;
}

int place_write(int fd, const char *bytes, size_t len, uint64_t offset, uint64_t *end)
{
	while (len) {
		bool zero = len >= HOLE_MIN && is_zero(bytes, MAX((size_t)1, piece_len(offset, len)));
		size_t run = MAX(run_len(bytes, len, offset, zero), piece_len(offset, len));

		if (!zero) {
			int r = write_at(fd, bytes, run, offset);

			if (r < 0) return r;
			*end = MAX(*end, offset + run);
		}
		bytes += run;
		len -= run;
		offset += run;
	}
	return 0;
}

int place_link(int from_fd, const char *from, int dir_fd, const char *name)
{
	int r = linkat(from_fd, from, dir_fd, name, 0) < 0 ? -errno : 0;

	if (r == -EEXIST) {
		struct stat a, b;

		/* A link to itself: taking it away first would lose the file. */
		if (fstatat(from_fd, from, &a, AT_SYMLINK_NOFOLLOW) == 0 &&
		    fstatat(dir_fd, name, &b, AT_SYMLINK_NOFOLLOW) == 0 && a.st_dev == b.st_dev &&
		    a.st_ino == b.st_ino)
			return 0;
		r = place_clear(dir_fd, name);
		if (r == 0 && linkat(from_fd, from, dir_fd, name, 0) < 0) r = -errno;
	}
	if (r == -EPERM || r == -EMLINK || r == -EOPNOTSUPP) r = place_copy(from_fd, from, dir_fd, name);
	return r;
}

static struct attrs attrs_of(const struct stat *st)
{
	return (struct attrs){.mode = st->st_mode & 07777, .timed = true, .mtime = st->st_mtim};
}

static int copy_symlink(int from_fd, const char *from, int dir_fd, const char *name, const struct stat *st)
{
	char target[4097];
	ssize_t len = readlinkat(from_fd, from, target, sizeof target - 1);
	struct attrs attrs = attrs_of(st);

	if (len < 0) return -errno;
	target[len] = '\0';
	return place_symlink(dir_fd, name, target, &attrs);
}

static int copy_file(int from_fd, const char *from, int dir_fd, const char *name, const struct stat *st)
{
	auto_close int in = openat(from_fd, from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	auto_close int out = -1;
	struct attrs attrs = attrs_of(st);
	ssize_t n;

	if (in < 0) return -errno;
	int r = place_file(dir_fd, name, st->st_mode, &out);
	if (r < 0) return r;
	do
		n = sendfile(out, in, NULL, (size_t)1 << 30);
	while (n > 0 || (n < 0 && errno == EINTR));
	return n < 0 ? -errno : place_finish(out, &attrs);
}

int place_copy(int from_fd, const char *from, int dir_fd, const char *name)
{
	char temporary[48];
	uint64_t number;
	struct stat st;
	int r;

	id_random(&number, sizeof number);
	(void)snprintf(temporary, sizeof temporary, ".tombolo-copy-%016llx", (unsigned long long)number);
	if (fstatat(from_fd, from, &st, AT_SYMLINK_NOFOLLOW) < 0) return -errno;
	if (S_ISLNK(st.st_mode)) r = copy_symlink(from_fd, from, dir_fd, temporary, &st);
	else r = copy_file(from_fd, from, dir_fd, temporary, &st);
	if (r == 0 && renameat(dir_fd, temporary, dir_fd, name) < 0) r = -errno;
	if (r < 0) (void)unlinkat(dir_fd, temporary, 0);
	return r;
}

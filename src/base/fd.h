/* fd.h - ownership of descriptors, and the few system calls that everyone wraps the same way. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

/* A local marked auto_close is closed at the end of its scope, unless take_fd() gave it away. */
#define auto_close __attribute__((cleanup(close_at)))

static inline void close_at(int *fd)
{
	if (*fd >= 0) {
		int saved = errno;
		(void)close(*fd);
		errno = saved;
	}
}

static inline int take_fd(int *fd)
{
	int kept = *fd;
	*fd = -1;
	return kept;
}

/* Closes FD if it is one; returns -1, so that `x = fd_close(x);` is always right. */
int fd_close(int fd);

/* 0 or -errno. */
int fd_set_nonblocking(int fd);
int fd_set_cloexec(int fd, bool on);

/* Writes all of BYTES to a blocking descriptor. 0 or -errno. */
int fd_write_all(int fd, const void *bytes, size_t len);

/* Writes the text to the file PATH below DIR_FD (AT_FDCWD allowed) in one write: for /proc and cgroup files.
 */
int fd_write_file(int dir_fd, const char *path, const char *text);

/* Reads a small file into TEXT (always NUL-terminated, cut at SIZE-1). Length or -errno. */
ssize_t fd_read_file(int dir_fd, const char *path, char *text, size_t size);

/* unlinkat(), made again when it fails for no reason of the name's own. 0, also when there is none; or
 * -errno. */
int fd_remove(int dir_fd, const char *name, int flags);

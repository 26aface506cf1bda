#include "base/fd.h"

#include <fcntl.h>
#include <string.h>

#define REMOVE_TRIES 3

int fd_close(int fd)
{
	close_at(&fd);
	return -1;
}

int fd_set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) return -errno;
	return 0;
}

int fd_set_cloexec(int fd, bool on)
{
	return fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0) < 0 ? -errno : 0;
}

int fd_write_all(int fd, const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno == EINTR) continue;
		if (n < 0) return -errno;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

int fd_write_file(int dir_fd, const char *path, const char *text)
{
	size_t len = strlen(text);
	auto_close int fd = openat(dir_fd, path, O_WRONLY | O_CLOEXEC);

	if (fd < 0) return -errno;
	ssize_t n = write(fd, text, len);
	if (n < 0) return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

ssize_t fd_read_file(int dir_fd, const char *path, char *text, size_t size)
{
	size_t len = 0;
	auto_close int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);

	if (fd < 0) return -errno;
	while (len < size - 1) {
		ssize_t n = read(fd, text + len, size - 1 - len);

		if (n < 0 && errno == EINTR) continue;
		if (n < 0) return -errno;
		if (n == 0) break;
		len += (size_t)n;
	}
	text[len] = '\0';
	return (ssize_t)len;
}

int fd_remove(int dir_fd, const char *name, int flags)
{
	int r = -EIO;

	for (int i = 0; i < REMOVE_TRIES && (r == -EIO || r == -EBUSY); i++)
		r = unlinkat(dir_fd, name, flags) < 0 && errno != ENOENT ? -errno : 0;
	return r;
}

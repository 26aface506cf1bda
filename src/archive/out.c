#include "archive/out.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

#define BUFFER_SIZE ((size_t)512 << 10)
#define PIPE_SIZE   (1 << 20) /* what an ordinary user may ask for */

void out_init(struct out *o, int fd)
{
	struct stat st;

	*o = (struct out){.fd = fd, .data = mem_new(BUFFER_SIZE)};
	if (fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode)) return;
	o->splices = true;
	(void)fcntl(fd, F_SETPIPE_SZ, PIPE_SIZE);
}

void out_done(struct out *o)
{
	free(o->data);
	o->data = NULL;
}

int out_flush(struct out *o)
{
	size_t len = o->len;

	o->len = 0;
	return fd_write_all(o->fd, o->data, len);
}

int out_reserve(struct out *o, size_t len, char **ret)
{
	if (len > BUFFER_SIZE) return -E2BIG;
	if (len > BUFFER_SIZE - o->len) {
		int r = out_flush(o);
		if (r < 0) return r;
	}
	*ret = o->data + o->len;
	return 0;
}

int out_zeros(struct out *o, uint64_t count)
{
	while (count) {
		size_t n = (size_t)MIN(count, (uint64_t)OUT_SMALL);
		char *at;
		int r = out_reserve(o, n, &at);

		if (r < 0) return r;
		memset(at, 0, n);
		o->len += n;
		count -= n;
	}
	return 0;
}

/* The pages of the file go into the pipe as they are. Ends early at the end of the file or where splice() is
 * refused. */
static int splice_file(struct out *o, int file_fd, uint64_t size, uint64_t *done)
{
	while (o->splices && *done < size) {
		size_t want = (size_t)MIN(size - *done, (uint64_t)PIPE_SIZE);
		ssize_t n = splice(file_fd, NULL, o->fd, NULL, want, SPLICE_F_MOVE | SPLICE_F_MORE);

		if (n < 0 && errno == EINTR) continue;
		if (n < 0 && errno == EPIPE) return -EPIPE;
		if (n < 0) o->splices = errno != EINVAL;
		if (n <= 0) break;
		*done += (uint64_t)n;
	}
	return 0;
}

int out_copy(struct out *o, int file_fd, uint64_t size, uint64_t *ret, int *ret_read_error)
{
	int r = out_flush(o);

	*ret = 0;
	*ret_read_error = 0;
	if (r == 0) r = splice_file(o, file_fd, size, ret);
	while (r == 0 && *ret < size) {
		ssize_t n = read(file_fd, o->data, (size_t)MIN(size - *ret, (uint64_t)BUFFER_SIZE));

		if (n < 0 && errno == EINTR) continue;
		if (n < 0) *ret_read_error = -errno;
		if (n <= 0) break;
		r = fd_write_all(o->fd, o->data, (size_t)n);
		*ret += (uint64_t)n;
	}
	return r;
}

#include "archive/cursor.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/mem.h"

#define STEP (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct cursor cursor_at_root(int root_fd)
{
	return (struct cursor){.root_fd = root_fd, .fd = root_fd, .path = buf_with_cap((size_t)2 << 20)};
}

static void stand_in(struct cursor *c, int fd)
{
	if (c->fd != c->root_fd) (void)close(c->fd);
	c->fd = fd;
}

void cursor_done(struct cursor *c)
{
	stand_in(c, c->root_fd);
	buf_done(&c->path);
}

int cursor_down(struct cursor *c, const char *name, size_t len)
{
	char part[NAME_MAX + 1];
	int r = 0;

	if (len > NAME_MAX) return -ENAMETOOLONG;
	memcpy(part, name, len);
	part[len] = '\0';
	int fd = openat(c->fd, part, STEP);
	if (fd < 0) return -errno;
	if (c->path.len) r = buf_add(&c->path, "/", 1);
	if (r == 0) r = buf_add(&c->path, part, len);
	if (r < 0) {
		(void)close(fd);
		return -ENAMETOOLONG;
	}
	stand_in(c, fd);
	return 0;
}

int cursor_up(struct cursor *c)
{
	char *slash = memrchr(c->path.data, '/', c->path.len);

	assert(c->path.len);
	c->path.len = slash ? (size_t)(slash - c->path.data) : 0;
	if (c->path.len == 0) {
		stand_in(c, c->root_fd);
		return 0;
	}
	int fd = openat(c->fd, "..", STEP);
	if (fd < 0) return -errno;
	stand_in(c, fd);
	return 0;
}

/* Whether the cursor's directory is DIR or above it. */
static bool is_on_the_way(const struct cursor *c, const char *dir, size_t len)
{
	size_t n = c->path.len;

	return n == 0 || (n <= len && memcmp(c->path.data, dir, n) == 0 && (n == len || dir[n] == '/'));
}

static int make_and_down(struct cursor *c, const char *name, size_t len, unsigned make_mode)
{
	char part[NAME_MAX + 1];
	int r = cursor_down(c, name, len);

	if (r != -ENOENT || !make_mode) return r;
	memcpy(part, name, len);
	part[len] = '\0';
	if (mkdirat(c->fd, part, make_mode) < 0 && errno != EEXIST) return -errno;
	return cursor_down(c, name, len);
}

int cursor_go(struct cursor *c, const char *dir, size_t len, unsigned make_mode, struct err *e)
{
	int r = 0;

	while (r == 0 && !is_on_the_way(c, dir, len))
		r = cursor_up(c);
	while (r == 0 && c->path.len < len) {
		const char *name = dir + c->path.len + (c->path.len ? 1 : 0);
		const char *slash = memchr(name, '/', (size_t)(dir + len - name));

		r = make_and_down(c, name, (size_t)((slash ? slash : dir + len) - name), make_mode);
	}
	if (r == -ENOTDIR || r == -ELOOP)
		return err_say(e, r, "'%.*s' leads through something that is no directory",
			       (int)MIN(len, 150u), dir);
	return r < 0 ? err_set(e, r, "directory '%.*s'", (int)MIN(len, 150u), dir) : 0;
}

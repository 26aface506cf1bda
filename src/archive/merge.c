#include "archive/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "archive/cursor.h"
#include "archive/place.h"
#include "archive/verdict.h"
#include "archive/walk.h"
#include "base/fd.h"
#include "base/mem.h"

/* An old directory that its owner had shut, opened for the time of the merge. */
struct opened {
	size_t depth;  /* in the walk, of what is in it */
	unsigned mode; /* to set again */
};

struct merger {
	struct walk from; /* the staged tree */
	struct cursor to; /* the same directory in the old tree */
	struct opened *opened;
	size_t opened_count;
	bool apply;
	struct err *e;
};

static int fail(struct merger *m, int code, const char *what)
{
	return err_set(m->e, code, "%s './" PATH_SHOWN "'", what, m->from.path.data);
}

/* Whether the name is a directory with something in it. */
static bool is_full(int dir_fd, const char *name)
{
	enum walk_kind kind;
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0) return errno != ENOTDIR && errno != ENOENT && errno != ELOOP;
	auto_walk struct walk w;
	walk_init(&w, fd);
	return walk_next(&w, &kind, NULL) < 0 || kind != WALK_END;
}

static int check_file(struct merger *m)
{
	struct stat old;

	if (fstatat(m->to.fd, m->from.name, &old, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : fail(m, -errno, "look at");
	if (S_ISDIR(old.st_mode) && is_full(m->to.fd, m->from.name))
		return fail(m, -EISDIR, "a directory that is not empty stands in the way of");
	return 0;
}

/* A directory that we own can be opened for the merge; another must let us in as it is. */
static int check_access(struct merger *m, const struct stat *old)
{
	if (faccessat(m->to.fd, m->from.name, W_OK | X_OK, AT_EACCESS) == 0 || old->st_uid == geteuid())
		return 0;
	return fail(m, -EACCES, "change directory");
}

static int open_for_merge(struct merger *m, const struct stat *old)
{
	unsigned mode = old->st_mode & 07777;

	if ((mode & 0300) == 0300 || faccessat(m->to.fd, m->from.name, W_OK | X_OK, AT_EACCESS) == 0)
		return 0;
	if (fchmodat(m->to.fd, m->from.name, mode | 0700, 0) < 0)
		return fail(m, -errno, "change the mode of");
	m->opened = mem_grow(m->opened, m->opened_count + 1, sizeof *m->opened);
	m->opened[m->opened_count++] = (struct opened){.depth = m->from.depth + 1, .mode = mode};
	return 0;
}

/* Both trees: into the directory that the walk has just named. */
static int go_in(struct merger *m, const struct stat *old)
{
	int r = m->apply ? open_for_merge(m, old) : check_access(m, old);

	if (r == 0) {
		r = cursor_down(&m->to, m->from.name, strlen(m->from.name));
		if (r < 0) return fail(m, r, "go into");
		r = walk_enter(&m->from, NULL, m->e);
	}
	return r;
}

static int check_directory(struct merger *m)
{
	struct stat old;

	if (fstatat(m->to.fd, m->from.name, &old, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : fail(m, -errno, "look at");
	if (S_ISLNK(old.st_mode)) return fail(m, -ELOOP, "a symbolic link stands in the way of directory");
	return S_ISDIR(old.st_mode) ? go_in(m, &old) : 0;
}

static int apply_file(struct merger *m)
{
	const char *name = m->from.name;
	int r = renameat(m->from.fd, name, m->to.fd, name) < 0 ? -errno : 0;

	if (r == -EISDIR || r == -ENOTEMPTY || r == -EEXIST) {
		if (unlinkat(m->to.fd, name, AT_REMOVEDIR) < 0) return fail(m, -errno, "replace");
		r = renameat(m->from.fd, name, m->to.fd, name) < 0 ? -errno : 0;
	}
	if (r == -EXDEV) r = place_copy(m->from.fd, name, m->to.fd, name);
	return r < 0 ? fail(m, r, "put in place") : 0;
}

/* A directory that the old tree lacks, but that could not move there: another file system is mounted above
 * it. */
static int make_directory(struct merger *m, struct stat *ret_old)
{
	const char *name = m->from.name;
	struct stat staged;

	if (fstatat(m->from.fd, name, &staged, AT_SYMLINK_NOFOLLOW) < 0) return fail(m, -errno, "look at");
	if (mkdirat(m->to.fd, name, staged.st_mode & 07777) < 0) return fail(m, -errno, "make directory");
	if (fstatat(m->to.fd, name, ret_old, AT_SYMLINK_NOFOLLOW) < 0) return fail(m, -errno, "look at");
	return 0;
}

static int apply_directory(struct merger *m)
{
	const char *name = m->from.name;
	struct stat old;
	bool there;

	if (renameat2(m->from.fd, name, m->to.fd, name, RENAME_NOREPLACE) == 0) return 0;
	there = fstatat(m->to.fd, name, &old, AT_SYMLINK_NOFOLLOW) == 0;
	if (there && !S_ISDIR(old.st_mode)) {
		if (unlinkat(m->to.fd, name, 0) < 0) return fail(m, -errno, "replace");
		there = false;
	}
	if (!there) {
		/* Not every file system knows RENAME_NOREPLACE. */
		if (renameat(m->from.fd, name, m->to.fd, name) == 0) return 0;
		int r = make_directory(m, &old);
		if (r < 0) return r;
	}
	return go_in(m, &old);
}

static int leave(struct merger *m)
{
	int r = cursor_up(&m->to);

	if (r < 0) return fail(m, r, "leave");
	if (m->opened_count && m->opened[m->opened_count - 1].depth == m->from.depth + 1) {
		unsigned mode = m->opened[--m->opened_count].mode;

		if (fchmodat(m->to.fd, m->from.name, mode, 0) < 0) return fail(m, -errno, "set the mode of");
	}
	return 0;
}

static int merge(int staging_fd, int root_fd, bool apply, struct err *e)
{
	int fd = openat(staging_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct merger m = {.to = cursor_at_root(root_fd), .apply = apply, .e = e};
	enum walk_kind kind = WALK_FILE;
	int r = 0;

	if (fd < 0) return err_set(e, -errno, "read the new files");
	walk_init(&m.from, fd);
	while (r == 0 && kind != WALK_END) {
		r = walk_next(&m.from, &kind, e);
		if (r < 0) break;
		switch (kind) {
		case WALK_FILE: r = apply ? apply_file(&m) : check_file(&m); break;
		case WALK_DIRECTORY: r = apply ? apply_directory(&m) : check_directory(&m); break;
		case WALK_LEFT: r = leave(&m); break;
		case WALK_END: break;
		}
	}
	walk_done(&m.from);
	cursor_done(&m.to);
	free(m.opened);
	return r;
}

int merge_check(int staging_fd, int root_fd, struct err *e)
{
	return merge(staging_fd, root_fd, false, e);
}

int merge_apply(int staging_fd, int root_fd, struct err *e)
{
	return merge(staging_fd, root_fd, true, e);
}

#include "archive/staging.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "archive/walk.h"
#include "base/fd.h"
#include "base/id.h"

#define OURS   ".tombolo-"
#define PREFIX OURS "unpack-"

bool staging_is_name(const char *name)
{
	return strncmp(name, OURS, strlen(OURS)) == 0;
}

static int open_directory(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int remove_item(struct walk *w, enum walk_kind kind, struct err *e)
{
	int r = 0;

	switch (kind) {
	case WALK_FILE: r = unlinkat(w->fd, w->name, 0) < 0 ? -errno : 0; break;
	case WALK_DIRECTORY: return walk_enter(w, NULL, e);
	case WALK_LEFT: r = unlinkat(w->fd, w->name, AT_REMOVEDIR) < 0 ? -errno : 0; break;
	case WALK_END: break;
	}
	return r < 0 ? err_set(e, r, "remove '%.150s'", w->path.data) : 0;
}

int staging_remove(int dir_fd, const char *name, struct err *e)
{
	enum walk_kind kind = WALK_FILE;
	struct err ignored = ERR_NONE;
	int first = 0;
	int fd = open_directory(dir_fd, name);

	if (fd < 0) return err_set(e, fd, "open '%s'", name);
	auto_walk struct walk w;
	walk_init(&w, fd);
	while (kind != WALK_END) {
		struct err *say = first ? &ignored : e;
		int r = walk_next(&w, &kind, say);

		if (r == 0) r = remove_item(&w, kind, say);
		if (r < 0 && first == 0) first = r;
	}
	if (first) return first;
	return unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 ? err_set(e, -errno, "remove '%s'", name) : 0;
}

/* A stale one that cannot be removed (somebody else's) is no reason to fail. */
static void remove_if_stale(int root_fd, const char *name)
{
	auto_close int fd = open_directory(root_fd, name);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0) return;
	(void)staging_remove(root_fd, name, NULL);
}

static int remove_stale(int root_fd, struct err *e)
{
	int fd = open_directory(root_fd, ".");
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		(void)fd_close(fd);
		return err_set(e, fd < 0 ? fd : -ENOMEM, "read the root");
	}
	while ((entry = readdir(dir)))
		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) == 0)
			remove_if_stale(root_fd, entry->d_name);
	(void)closedir(dir);
	return 0;
}

/* Another run may take a fresh one for stale, until it is locked: one that is gone by then is made again. */
static int make_locked(int root_fd, char *name, int *ret_fd)
{
	auto_close int fd = -1;
	struct stat st;
	uint64_t number;

	id_random(&number, sizeof number);
	(void)snprintf(name, STAGING_NAME_SIZE, PREFIX "%016llx", (unsigned long long)number);
	if (mkdirat(root_fd, name, 0700) < 0) return errno == EEXIST ? -EAGAIN : -errno;
	fd = open_directory(root_fd, name);
	if (fd < 0) return fd == -ENOENT ? -EAGAIN : fd;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0 || st.st_nlink == 0) return -EAGAIN;
	*ret_fd = take_fd(&fd);
	return 0;
}

int staging_new(int root_fd, char ret_name[STAGING_NAME_SIZE], int *ret_fd, struct err *e)
{
	int r = remove_stale(root_fd, e);

	if (r < 0) return r;
	for (int tries = 0; tries < 8; tries++) {
		r = make_locked(root_fd, ret_name, ret_fd);
		if (r != -EAGAIN) break;
	}
	return r < 0 ? err_set(e, r, "make a directory for the new files") : 0;
}

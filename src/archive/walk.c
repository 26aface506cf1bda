#include "archive/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "archive/verdict.h"
#include "base/fd.h"
#include "base/mem.h"

#define ENTRIES_SIZE ((size_t)64 << 10)
#define LEVELS_OPEN  48                /* upper levels whose descriptors stay open */
#define PATH_CAP     ((size_t)1 << 20) /* no reader of archives takes longer ones */
#define NAMES_CAP    ((size_t)256 << 20)

struct walk_level {
	int fd; /* -1: current, or below the levels that stay open */
	dev_t dev;
	ino_t ino;
	size_t path_len;
	size_t names_start; /* its directories begin here in names … */
	size_t names_next;  /* … and this one is handed out next */
};

static struct walk_level *top(struct walk *w)
{
	return &w->levels[w->depth];
}

static void begin_reading(struct walk *w)
{
	w->reading = true;
	w->entries_len = w->entries_at = 0;
}

void walk_init(struct walk *w, int root_fd)
{
	*w = (struct walk){.fd = root_fd,
			   .path = buf_with_cap(PATH_CAP),
			   .names = buf_with_cap(NAMES_CAP),
			   .levels = mem_new_array(16, sizeof *w->levels),
			   .levels_room = 16,
			   .entries = mem_new(ENTRIES_SIZE)};
	w->levels[0].fd = -1;
	(void)buf_text(&w->path);
	begin_reading(w);
}

void walk_done(struct walk *w)
{
	for (size_t i = 0; i < w->depth; i++)
		w->levels[i].fd = fd_close(w->levels[i].fd);
	w->fd = fd_close(w->fd);
	free(w->levels);
	free(w->entries);
	buf_done(&w->path);
	buf_done(&w->names);
}

static int name_item(struct walk *w, const char *name, struct err *e)
{
	int r = 0;

	w->path.len = top(w)->path_len;
	if (w->path.len) r = buf_add(&w->path, "/", 1);
	if (r == 0) r = buf_add_text(&w->path, name);
	if (r < 0) return err_set(e, -ENAMETOOLONG, "'" PATH_SHOWN "'", buf_text(&w->path));
	(void)buf_text(&w->path);
	w->name = name;
	return 0;
}

/* DT_… of an entry, asked for where the file system did not say. */
static unsigned char type_of(struct walk *w, const struct dirent64 *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN) return entry->d_type;
	if (fstatat(w->fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0) return DT_UNKNOWN;
	return IFTODT(st.st_mode);
}

/* One entry of the current directory. 1: *RET is it, 0: no more. */
static int read_entry(struct walk *w, const struct dirent64 **ret, struct err *e)
{
	const struct dirent64 *entry;

	do {
		if (w->entries_at == w->entries_len) {
			ssize_t n = getdents64(w->fd, w->entries, ENTRIES_SIZE);

			if (n < 0)
				return err_set(e, -errno, "read directory './" PATH_SHOWN "'",
					       buf_text(&w->path));
			if (n == 0) return 0;
			w->entries_len = (size_t)n;
			w->entries_at = 0;
		}
		entry = (const struct dirent64 *)(w->entries + w->entries_at);
		w->entries_at += entry->d_reclen;
	} while (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0);
	*ret = entry;
	return 1;
}

/* The next file of the current directory; its directories go onto the stack. 1: there is one, 0: read to the
 * end. */
static int next_file(struct walk *w, struct err *e)
{
	const struct dirent64 *entry = NULL;
	int r;

	w->path.len = top(w)->path_len;
	while ((r = read_entry(w, &entry, e)) > 0) {
		unsigned char type = type_of(w, entry);

		if (type != DT_DIR) {
			w->type = type;
			r = name_item(w, entry->d_name, e);
			return r < 0 ? r : 1;
		}
		if (buf_add(&w->names, entry->d_name, strlen(entry->d_name) + 1) < 0)
			return err_set(e, -E2BIG, "directory './" PATH_SHOWN "'", buf_text(&w->path));
	}
	return r;
}

static int leave(struct walk *w, struct err *e)
{
	struct walk_level *left = top(w), *parent = left - 1;
	auto_close int fd = take_fd(&parent->fd);
	struct stat st;

	if (fd < 0) {
		fd = openat(w->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0) return err_set(e, -errno, "go up from './" PATH_SHOWN "'", buf_text(&w->path));
		if (fstat(fd, &st) < 0 || st.st_dev != parent->dev || st.st_ino != parent->ino)
			return err_set(e, -ESTALE, "'./" PATH_SHOWN "' was moved", buf_text(&w->path));
	}
	(void)close(w->fd);
	w->fd = take_fd(&fd);
	w->names.len = left->names_start;
	w->depth--;
	w->path.len = left->path_len;
	w->name = buf_text(&w->path) + parent->path_len + (parent->path_len ? 1 : 0);
	return 0;
}

int walk_next(struct walk *w, enum walk_kind *ret, struct err *e)
{
	struct walk_level *level = top(w);
	int r;

	if (w->reading) {
		r = next_file(w, e);
		if (r <= 0) w->reading = false;
		if (r < 0) return r;
		if (r > 0) {
			*ret = WALK_FILE;
			return 0;
		}
	}
	if (level->names_next < w->names.len) {
		const char *name = w->names.data + level->names_next;

		level->names_next += strlen(name) + 1;
		*ret = WALK_DIRECTORY;
		return name_item(w, name, e);
	}
	if (w->depth == 0 || w->lost) {
		*ret = WALK_END;
		return 0;
	}
	*ret = WALK_LEFT;
	r = leave(w, e);
	w->lost = r < 0;
	return r;
}

int walk_enter(struct walk *w, struct stat *ret_st, struct err *e)
{
	auto_close int fd = openat(w->fd, w->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0) return err_set(e, -errno, "open directory './" PATH_SHOWN "'", w->path.data);
	if (fstat(fd, &st) < 0) return err_set(e, -errno, "stat './" PATH_SHOWN "'", w->path.data);
	if (w->depth + 1 == w->levels_room) {
		w->levels_room *= 2;
		w->levels = mem_grow(w->levels, w->levels_room, sizeof *w->levels);
	}
	if (w->depth < LEVELS_OPEN) top(w)->fd = w->fd;
	else (void)close(w->fd);
	w->fd = take_fd(&fd);
	w->depth++;
	*top(w) = (struct walk_level){.fd = -1,
				      .dev = st.st_dev,
				      .ino = st.st_ino,
				      .path_len = w->path.len,
				      .names_start = w->names.len,
				      .names_next = w->names.len};
	begin_reading(w);
	if (ret_st) *ret_st = st;
	return 0;
}

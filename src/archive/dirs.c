#include "archive/dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "archive/cursor.h"
#include "archive/member.h"
#include "base/fd.h"
#include "base/mem.h"

#define PENDING_MAX ((size_t)64 << 10)
#define RECORD_CAP  ((size_t)4 << 20)

/* A record: this, the path, and the size of all again, by which the file can be read from its end. */
struct record {
	struct attrs attrs;
	size_t path_len;
};

int dirs_init(struct dirs *d, int dir_fd, struct err *e)
{
	static const char name[] = "dirs";
	int fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0) return err_set(e, -errno, "make a file for the directories' modes");
	(void)unlinkat(dir_fd, name, 0);
	*d = (struct dirs){.fd = fd, .pending = buf_with_cap(RECORD_CAP)};
	return 0;
}

void dirs_done(struct dirs *d)
{
	d->fd = fd_close(d->fd);
	buf_done(&d->pending);
}

static int write_pending(struct dirs *d)
{
	int r = fd_write_all(d->fd, d->pending.data, d->pending.len);

	d->size += d->pending.len;
	buf_clear(&d->pending);
	return r;
}

int dirs_add(struct dirs *d, const struct buf *path, const struct attrs *attrs, struct err *e)
{
	struct record record = {.attrs = *attrs, .path_len = path->len};
	size_t size = sizeof record + path->len + sizeof size;
	int r = d->pending.len + size > PENDING_MAX ? write_pending(d) : 0;

	if (r == 0) r = buf_add(&d->pending, &record, sizeof record);
	if (r == 0) r = buf_add(&d->pending, path->data, path->len);
	if (r == 0) r = buf_add(&d->pending, &size, sizeof size);
	if ((attrs->mode & 0700) != 0700) d->tight = true;
	return r < 0 ? err_set(e, r, "note the mode of a directory") : 0;
}

int attrs_set(int dir_fd, const char *name, const struct attrs *attrs, unsigned mode)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, attrs->mtime};
	int r = 0;

	/* The owner first: changing it clears set-id bits. */
	if (attrs->owned && fchownat(dir_fd, name, attrs->uid, attrs->gid, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	if (fchmodat(dir_fd, name, mode, 0) < 0 && r == 0) r = -errno;
	if (attrs->timed && utimensat(dir_fd, name, times, AT_SYMLINK_NOFOLLOW) < 0 && r == 0) r = -errno;
	return r;
}

/* Applies one record. SHUT: the mode it really asks for, else one that leaves the owner a way in. */
static void apply(struct cursor *c, const char *at, bool shut, struct verdict *v)
{
	auto_buf struct buf path = buf_with_cap(RECORD_CAP);
	struct err e = ERR_NONE;
	struct record record;
	const char *base;
	size_t dir_len;
	int r;

	memcpy(&record, at, sizeof record);
	if (shut && (record.attrs.mode & 0700) == 0700) return;
	(void)buf_add(&path, at + sizeof record, record.path_len);
	(void)buf_text(&path);
	base = member_base(&path, &dir_len);
	r = cursor_go(c, path.data, dir_len, 0, &e);
	if (r == 0) r = attrs_set(c->fd, base, &record.attrs, record.attrs.mode | (shut ? 0 : 0700));
	if (r < 0) verdict_warn(v, r, "set mode and time of './" PATH_SHOWN "'", path.data);
}

static void apply_forwards(struct cursor *c, const char *from, size_t size, struct verdict *v)
{
	size_t at = 0;

	while (at < size) {
		struct record record;

		memcpy(&record, from + at, sizeof record);
		apply(c, from + at, false, v);
		at += sizeof record + record.path_len + sizeof size;
	}
}

/* Children come before their parents: once a directory is shut, nothing below it can be reached. */
static void apply_shut_backwards(struct cursor *c, const char *from, size_t size, struct verdict *v)
{
	while (size) {
		size_t record_size;

		memcpy(&record_size, from + size - sizeof record_size, sizeof record_size);
		size -= record_size;
		apply(c, from + size, true, v);
	}
}

void dirs_apply(struct dirs *d, int root_fd, struct verdict *v)
{
	int r = write_pending(d);
	const char *records;

	if (r == 0 && d->size == 0) return;
	records = r < 0 ? MAP_FAILED : mmap(NULL, d->size, PROT_READ, MAP_SHARED, d->fd, 0);
	if (records == MAP_FAILED) {
		verdict_warn(v, r < 0 ? r : -errno, "set the modes and times of directories");
		return;
	}
	auto_cursor struct cursor c = cursor_at_root(root_fd);
	apply_forwards(&c, records, d->size, v);
	if (d->tight) apply_shut_backwards(&c, records, d->size, v);
	(void)munmap((void *)records, d->size);
}

#include "archive/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "archive/cursor.h"
#include "archive/dirs.h"
#include "archive/member.h"
#include "archive/merge.h"
#include "archive/place.h"
#include "archive/source.h"
#include "archive/staging.h"
#include "base/fd.h"
#include "base/mem.h"

#define PATH_CAP ((size_t)1 << 20) /* libarchive takes none longer */

struct unpacker {
	int root_fd;
	struct source *source;
	struct cursor at;     /* where members are made */
	struct cursor target; /* where hard links find what they link to */
	struct dirs dirs;
	struct buf path; /* of the member, judged */
	struct buf target_path;
	unsigned implied_mode; /* of directories that no member names */
	bool as_root;          /* owners are restored */
	bool root_named;       /* the archive has a member for the root, with these: */
	struct attrs root;
	struct verdict *v;
};

static int refuse(struct unpacker *u, const char *name, const char *why)
{
	return verdict_refuse(u->v, -EPERM, "member '" PATH_SHOWN "' %s", name, why);
}

/* A disk that is full may have room for bytes: how many files it takes is a limit of its own. Right after the
 * failure, because what is cleared away makes room. */
static int explain_full(struct unpacker *u, int code)
{
	struct statvfs st;

	if (u->v->failures > 1 || (code != -ENOSPC && code != -EDQUOT)) return code;
	if (fstatvfs(u->root_fd, &st) < 0 || st.f_files == 0 || st.f_ffree > 0) return code;
	return err_add(&u->v->failure, "the disk takes no more than %llu files and directories",
		       (unsigned long long)st.f_files);
}

static int member_failed(struct unpacker *u, int code, const char *what)
{
	return explain_full(u, verdict_fail(u->v, code, "%s './" PATH_SHOWN "'", what, u->path.data));
}

static int go_failed(struct unpacker *u, int code, const struct err *e)
{
	if (!u->v->failures++) u->v->failure = *e;
	return explain_full(u, code);
}

static struct attrs attrs_of(struct unpacker *u, struct archive_entry *entry)
{
	return (struct attrs){
		.mode = archive_entry_perm(entry) & 07777,
		.owned = u->as_root,
		.timed = archive_entry_mtime_is_set(entry),
		.uid = (uid_t)archive_entry_uid(entry),
		.gid = (gid_t)archive_entry_gid(entry),
		.mtime = {.tv_sec = archive_entry_mtime(entry), .tv_nsec = archive_entry_mtime_nsec(entry)}};
}

static int make_directory(struct unpacker *u, const char *base, const struct attrs *attrs)
{
	struct err e = ERR_NONE;
	struct stat st;
	int r = mkdirat(u->at.fd, base, 0700 | (attrs->mode & 0777)) < 0 ? -errno : 0;

	if (r == -EEXIST && fstatat(u->at.fd, base, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (S_ISLNK(st.st_mode))
			return refuse(u, u->path.data, "is a directory where there is a symbolic link");
		r = 0;
		if (!S_ISDIR(st.st_mode)) {
			r = place_clear(u->at.fd, base);
			if (r == 0 && mkdirat(u->at.fd, base, 0700) < 0) r = -errno;
		}
	}
	if (r < 0) return member_failed(u, r, "make directory");
	r = dirs_add(&u->dirs, &u->path, attrs, &e);
	return r < 0 ? go_failed(u, r, &e) : 0;
}

static int make_file(struct unpacker *u, const char *base, const struct attrs *attrs,
		     struct archive_entry *entry)
{
	auto_close int fd = -1;
	uint64_t end = 0, size = archive_entry_size_is_set(entry) ? (uint64_t)archive_entry_size(entry) : 0;
	int r = place_file(u->at.fd, base, attrs->mode, &fd);

	if (r < 0) return member_failed(u, r, "make");
	for (;;) {
		struct source_block block;
		struct err e = ERR_NONE;

		r = source_data(u->source, &block, &e);
		if (r < 0) return go_failed(u, r, &e);
		if (r == 0) break;
		r = place_write(fd, block.bytes, block.len, block.offset, &end);
		if (r < 0) return member_failed(u, r, "write");
	}
	if (size > end && ftruncate(fd, (off_t)size) < 0) return member_failed(u, -errno, "write");
	r = place_finish(fd, attrs);
	if (r < 0) verdict_warn(u->v, r, "set owner, mode and time of './" PATH_SHOWN "'", u->path.data);
	return 0;
}

static int make_link(struct unpacker *u, const char *base, const char *to)
{
	struct err e = ERR_NONE;
	const char *to_base;
	size_t dir_len;
	int r = member_path(to, &u->target_path);

	if (r == -EPERM || (r == 0 && u->target_path.len == 0))
		return refuse(u, to, "is linked to: outside of the archive");
	if (r < 0) return member_failed(u, r, "link");
	to_base = member_base(&u->target_path, &dir_len);
	r = cursor_go(&u->target, u->target_path.data, dir_len, 0, &e);
	if (r == 0) r = place_link(u->target.fd, to_base, u->at.fd, base);
	if (r == -ENOENT) return refuse(u, to, "is linked to, but was not in the archive before that");
	return r < 0 ? member_failed(u, r, "link") : 0;
}

static int make_symlink(struct unpacker *u, const char *base, const struct attrs *attrs, const char *to)
{
	int r = to ? place_symlink(u->at.fd, base, to, attrs) : -EINVAL;

	return r < 0 ? member_failed(u, r, "make symbolic link") : 0;
}

static int make_member(struct unpacker *u, struct archive_entry *entry)
{
	const struct attrs attrs = attrs_of(u, entry);
	const char *link = archive_entry_hardlink(entry);
	struct err e = ERR_NONE;
	size_t dir_len;
	const char *base = member_base(&u->path, &dir_len);
	int r = cursor_go(&u->at, u->path.data, dir_len, u->implied_mode, &e);

	if (r < 0) return go_failed(u, r, &e);
	if (link) return make_link(u, base, link);
	switch (archive_entry_filetype(entry)) {
	case AE_IFREG: return make_file(u, base, &attrs, entry);
	case AE_IFDIR: return make_directory(u, base, &attrs);
	case AE_IFLNK: return make_symlink(u, base, &attrs, archive_entry_symlink(entry));
	case AE_IFIFO:
	case AE_IFSOCK:
		verdict_remark(u->v, -EOPNOTSUPP, "'./" PATH_SHOWN "' is a fifo, left out", u->path.data);
		return 0;
	}
	return refuse(u, u->path.data, "is a device or of an unknown type");
}

/* Judges the name of a member, then makes it. */
static int take_member(struct unpacker *u, struct archive_entry *entry)
{
	const char *name = archive_entry_pathname(entry);
	int r;

	if (!name || !*name) return refuse(u, "", "has no name");
	r = member_path(name, &u->path);
	if (r == -EPERM) return refuse(u, name, *name == '/' ? "has an absolute name" : "leads out by '..'");
	if (r < 0) return verdict_fail(u->v, r, "member '" PATH_SHOWN "'", name);
	if (u->path.len) return make_member(u, entry);
	if (archive_entry_filetype(entry) != AE_IFDIR) return refuse(u, name, "would replace the root");
	u->root_named = true;
	u->root = attrs_of(u, entry);
	return 0;
}

static int take_all(struct unpacker *u)
{
	for (;;) {
		struct archive_entry *entry;
		struct err e = ERR_NONE;
		int r = source_next(u->source, &entry, &e);

		if (r < 0) return go_failed(u, r, &e);
		if (r == 0) return 0;
		r = take_member(u, entry);
		if (r < 0) return r;
	}
}

/* The whole archive into STAGING_FD, then from there into ROOT_FD. */
static void restore(struct unpacker *u, int root_fd, int staging_fd)
{
	struct err e = ERR_NONE;
	int r = dirs_init(&u->dirs, staging_fd, &e);

	if (r < 0) {
		go_failed(u, r, &e);
		return;
	}
	if (take_all(u) == 0) {
		r = merge_check(staging_fd, root_fd, &e);
		if (r == 0) r = merge_apply(staging_fd, root_fd, &e);
		if (r < 0) go_failed(u, r, &e);
		else dirs_apply(&u->dirs, root_fd, u->v);
	}
	dirs_done(&u->dirs);
}

static void restore_by_staging(int root_fd, int in_fd, struct unpacker *u)
{
	char name[STAGING_NAME_SIZE];
	auto_close int staging_fd = -1;
	struct err e = ERR_NONE;
	int r = staging_new(root_fd, name, &staging_fd, &e);

	if (r < 0) {
		go_failed(u, r, &e);
		return;
	}
	u->at = cursor_at_root(staging_fd);
	u->target = cursor_at_root(staging_fd);
	r = source_new(in_fd, &u->source, &e);
	if (r < 0) go_failed(u, r, &e);
	else restore(u, root_fd, staging_fd);
	u->source = source_free(u->source);
	cursor_done(&u->at);
	cursor_done(&u->target);
	if (staging_remove(root_fd, name, &e) < 0) verdict_warn(u->v, e.code, "remove '%s'", name);
}

/* The root itself last: all that came before has touched its time. */
static void finish_root(struct unpacker *u, int root_fd, const struct stat *before)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, before->st_mtim};

	if (u->v->failures) {
		(void)futimens(root_fd, times);
	} else if (u->root_named) {
		int r = attrs_set(root_fd, ".", &u->root, u->root.mode);
		if (r < 0) verdict_warn(u->v, r, "set mode and time of the root");
	}
}

void unpack(const char *root, int in_fd, struct verdict *v)
{
	const mode_t mask = umask(0);
	const bool made = mkdir(root, 0777 & ~mask) == 0;
	auto_close int root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat before;
	struct unpacker u = {.path = buf_with_cap(PATH_CAP),
			     .target_path = buf_with_cap(PATH_CAP),
			     .implied_mode = (0777 & ~mask) | 0700,
			     .as_root = geteuid() == 0,
			     .v = v};

	if (root_fd < 0 || fstat(root_fd, &before) < 0) {
		verdict_fail(v, -errno, "open '" PATH_SHOWN "'", root);
		return;
	}
	u.root_fd = root_fd;
	restore_by_staging(root_fd, in_fd, &u);
	finish_root(&u, root_fd, &before);
	if (made && v->failures) (void)rmdir(root);
	buf_done(&u.path);
	buf_done(&u.target_path);
}

#include "archive/pack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "archive/exclude.h"
#include "archive/out.h"
#include "archive/staging.h"
#include "archive/ustar.h"
#include "archive/walk.h"
#include "base/fd.h"
#include "base/mem.h"

struct packer {
	struct walk walk;
	struct out out;
	char *const *excludes;
	unsigned excludes_count;
	struct buf name; /* of the member: "./" and the path, and a '/' for a directory */
	struct verdict *v;
};

static void member_name(struct packer *p, bool directory)
{
	struct buf *path = &p->walk.path;

	/* The cap of name is larger than that of path. */
	buf_clear(&p->name);
	(void)buf_add(&p->name, "./", 2);
	(void)buf_add(&p->name, path->data, path->len);
	if (directory && path->len) (void)buf_add(&p->name, "/", 1);
}

static struct ustar_member member_of(struct packer *p, const struct stat *st, enum ustar_type type)
{
	member_name(p, type == USTAR_DIRECTORY);
	return (struct ustar_member){.type = type,
				     .name = p->name.data,
				     .name_len = p->name.len,
				     .mode = st->st_mode & 07777,
				     .uid = st->st_uid,
				     .gid = st->st_gid,
				     .size = type == USTAR_FILE ? (uint64_t)st->st_size : 0,
				     .mtime = st->st_mtim.tv_sec};
}

static int output_failed(struct packer *p, int code)
{
	return verdict_fail(p->v, code, "write the archive");
}

/* What cannot be opened is a failure, but one that just vanished is only a change of the tree. */
static void note_unreadable(struct packer *p, int code)
{
	const char *path = p->walk.path.data;

	if (code == -ENOENT) verdict_remark(p->v, code, "'./" PATH_SHOWN "' vanished", path);
	else verdict_fail(p->v, code, "read './" PATH_SHOWN "'", path);
}

static int write_header(struct packer *p, const struct ustar_member *m)
{
	size_t size = ustar_header_size(m);
	auto_free char *large = NULL;
	char *at;
	int r;

	if (size > OUT_SMALL) {
		/* A path of hundreds of thousands of bytes: it bypasses the buffer. */
		large = mem_new(size);
		ustar_write(m, large);
		r = out_flush(&p->out);
		if (r == 0) r = fd_write_all(p->out.fd, large, size);
		return r < 0 ? output_failed(p, r) : 0;
	}
	r = out_reserve(&p->out, size, &at);
	if (r < 0) return output_failed(p, r);
	ustar_write(m, at);
	p->out.len += size;
	return 0;
}

/* Reads up to LEN bytes. Fewer only at the end of the file; or -errno. */
static ssize_t read_whole(int fd, char *bytes, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = read(fd, bytes + done, len - done);

		if (n < 0 && errno == EINTR) continue;
		if (n < 0) return -errno;
		if (n == 0) break;
		done += (size_t)n;
		/* A plain file reads short only at its end: a second call would tell nothing new. */
		if (done + 1 == len) break;
	}
	return (ssize_t)done;
}

static void note_content(struct packer *p, uint64_t got, uint64_t size, int read_error)
{
	const char *path = p->walk.path.data;

	if (read_error) verdict_fail(p->v, read_error, "read './" PATH_SHOWN "'", path);
	else if (got < size)
		verdict_remark(p->v, -EAGAIN, "'./" PATH_SHOWN "' shrank while it was read", path);
	else if (got > size) verdict_remark(p->v, -EAGAIN, "'./" PATH_SHOWN "' grew while it was read", path);
}

/* Header and content in one piece of the buffer. One byte more is asked for: whether it is there tells if the
 * file grew. */
static int write_small(struct packer *p, const struct ustar_member *m, int fd)
{
	size_t size = (size_t)m->size;
	char *at;
	ssize_t got;
	int r = write_header(p, m);

	if (r < 0 || size == 0) return r;
	r = out_reserve(&p->out, size + USTAR_BLOCK, &at);
	if (r < 0) {
		output_failed(p, r);
		return r;
	}
	got = read_whole(fd, at, size + 1);
	note_content(p, got < 0 ? 0 : (uint64_t)got, size, got < 0 ? (int)got : 0);
	got = got < 0 ? 0 : MIN(got, (ssize_t)size);
	memset(at + got, 0, size - (size_t)got + ustar_padding(size));
	p->out.len += size + ustar_padding(size);
	return 0;
}

static int write_large(struct packer *p, const struct ustar_member *m, int fd)
{
	struct stat after;
	uint64_t got;
	int read_error;
	int r = write_header(p, m);

	if (r < 0) return r;
	r = out_copy(&p->out, fd, m->size, &got, &read_error);
	if (r == 0) r = out_zeros(&p->out, m->size - got + ustar_padding(m->size));
	if (r < 0) return output_failed(p, r);
	if (got == m->size && fstat(fd, &after) == 0) got = MAX(got, (uint64_t)after.st_size);
	note_content(p, got, m->size, read_error);
	return 0;
}

static int pack_file(struct packer *p)
{
	/* O_NONBLOCK: a fifo that took the place of the file must not park us. */
	auto_close int fd = openat(p->walk.fd, p->walk.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		note_unreadable(p, -errno);
		return 0;
	}
	if (!S_ISREG(st.st_mode)) return 0;
	if ((uint64_t)st.st_size > USTAR_SIZE_MAX)
		return verdict_refuse(p->v, -EFBIG,
				      "'./" PATH_SHOWN "' has %lld bytes, an archive takes files below 8 GiB",
				      p->walk.path.data, (long long)st.st_size);
	struct ustar_member m = member_of(p, &st, USTAR_FILE);
	return m.size <= OUT_SMALL ? write_small(p, &m, fd) : write_large(p, &m, fd);
}

static int pack_symlink(struct packer *p)
{
	char target[4096];
	struct stat st;
	ssize_t len = readlinkat(p->walk.fd, p->walk.name, target, sizeof target);

	if (len < 0 || fstatat(p->walk.fd, p->walk.name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		note_unreadable(p, -errno);
		return 0;
	}
	struct ustar_member m = member_of(p, &st, USTAR_SYMLINK);
	m.mode = 0777;
	m.target = target;
	m.target_len = (size_t)len;
	return write_header(p, &m);
}

static int pack_directory(struct packer *p)
{
	struct err e = ERR_NONE;
	struct stat st;
	int r = walk_enter(&p->walk, &st, &e);

	if (r < 0) {
		note_unreadable(p, r);
		return 0;
	}
	struct ustar_member m = member_of(p, &st, USTAR_DIRECTORY);
	return write_header(p, &m);
}

static bool left_out(struct packer *p)
{
	const char *path = p->walk.path.data;

	if (p->walk.depth == 0 && staging_is_name(p->walk.name)) return true;
	return exclude_matches(p->excludes, p->excludes_count, path);
}

static int pack_item(struct packer *p, enum walk_kind kind)
{
	switch (kind) {
	case WALK_FILE:
		if (left_out(p)) return 0;
		if (p->walk.type == DT_REG) return pack_file(p);
		if (p->walk.type == DT_LNK) return pack_symlink(p);
		return 0;
	case WALK_DIRECTORY: return left_out(p) ? 0 : pack_directory(p);
	case WALK_LEFT:
	case WALK_END: break;
	}
	return 0;
}

static int pack_tree(struct packer *p, const struct stat *root)
{
	struct ustar_member m = member_of(p, root, USTAR_DIRECTORY);
	enum walk_kind kind = WALK_FILE;
	int r = write_header(p, &m);

	while (r == 0 && kind != WALK_END) {
		struct err e = ERR_NONE;

		if (walk_next(&p->walk, &kind, &e) < 0) {
			if (!p->v->failures++) p->v->failure = e;
			kind = WALK_LEFT;
			continue;
		}
		r = pack_item(p, kind);
	}
	if (r < 0) return r;
	r = out_zeros(&p->out, (uint64_t)2 * USTAR_BLOCK);
	if (r == 0) r = out_flush(&p->out);
	return r < 0 ? output_failed(p, r) : 0;
}

static unsigned clean_excludes(char **excludes, unsigned count)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < count; i++) {
		char *clean = exclude_clean(excludes[i]);
		if (clean) excludes[kept++] = clean;
	}
	return kept;
}

void pack(const char *root, char **excludes, unsigned count, int out_fd, struct verdict *v)
{
	struct packer p = {.excludes = excludes, .excludes_count = clean_excludes(excludes, count), .v = v};
	auto_close int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		verdict_fail(v, -errno, "open '" PATH_SHOWN "'", root);
		return;
	}
	p.name = buf_with_cap(SIZE_MAX / 2);
	walk_init(&p.walk, take_fd(&fd));
	out_init(&p.out, out_fd);
	(void)pack_tree(&p, &st);
	out_done(&p.out);
	walk_done(&p.walk);
	buf_done(&p.name);
}

/*
 * image_host.c - theory of operation.
 *
 * The skeleton is a function of image_host.def and of the files of /etc that it names. Both are digested (for
 * files: path, mode, size, time of change, target of links), and the digest is the name of the skeleton's
 * directory. So "is it current?" is "is it there?", a host that changes gets a second skeleton beside the
 * first, and two servers that start at once make the same thing. A skeleton under construction is called
 * .new-PID and counts for nothing.
 *
 * Trust: the files copied were written by the host's root. Only what any user of the host could read is
 * taken.
 */
#include "isolation/image_host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "isolation/contain.h" /* CONTAIN_HOST_NAME */
#include "isolation/slot.h"
#include "isolation/tree.h"

/* ---- the table ---- */

enum part_kind { PART_DIR, PART_LINK, PART_FILE };

static const struct part {
	enum part_kind kind;
	const char *path, *text; /* contents, or the target */
	mode_t mode;
	uid_t owner;
} parts[] = {
#define IMAGE_DIR(path, mode, owner)        {PART_DIR, path, "", mode, owner},
#define IMAGE_LINK(path, target)            {PART_LINK, path, target, 0777, 0},
#define IMAGE_FILE(path, mode, owner, text) {PART_FILE, path, text, mode, owner},
#define IMAGE_COPY(pattern)
#define IMAGE_NEVER(pattern)
#define IMAGE_NEEDS(program)
#include "isolation/image_host.def"
};

static const char *const copies[] = {
#define IMAGE_DIR(path, mode, owner)
#define IMAGE_LINK(path, target)
#define IMAGE_FILE(path, mode, owner, text)
#define IMAGE_COPY(pattern) "/etc/" pattern,
#define IMAGE_NEVER(pattern)
#define IMAGE_NEEDS(program)
#include "isolation/image_host.def"
};

static const char *const nevers[] = {
#define IMAGE_DIR(path, mode, owner)
#define IMAGE_LINK(path, target)
#define IMAGE_FILE(path, mode, owner, text)
#define IMAGE_COPY(pattern)
#define IMAGE_NEVER(pattern) pattern,
#define IMAGE_NEEDS(program)
#include "isolation/image_host.def"
};

static const char *const needs[] = {
#define IMAGE_DIR(path, mode, owner)
#define IMAGE_LINK(path, target)
#define IMAGE_FILE(path, mode, owner, text)
#define IMAGE_COPY(pattern)
#define IMAGE_NEVER(pattern)
#define IMAGE_NEEDS(program) "/usr/bin/" program,
#include "isolation/image_host.def"
};

/* Names of / that are links into /usr on a merged host. */
static const char *const merged[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"};

/* ---- the walk: the same for the digest and for the building ---- */

/* ON is called for each part in an order that makes parents first; a negative result ends the walk. */
struct walk {
	int (*on)(struct walk *w, const struct part *part, const struct stat *source, struct err *e);
	int root_fd;     /* builder's */
	uint64_t digest; /* digester's */
};

static bool is_secret(const char *name)
{
	for (unsigned i = 0; i < ARRAY_LEN(nevers); i++)
		if (fnmatch(nevers[i], name, FNM_CASEFOLD) == 0) return true;
	return false;
}

static bool is_public(const struct stat *st)
{
	if (S_ISDIR(st->st_mode)) return (st->st_mode & 0005) == 0005;
	return S_ISLNK(st->st_mode) || (S_ISREG(st->st_mode) && (st->st_mode & 0004));
}

static int copy_walk(struct walk *w, const char *path, struct err *e);

static int copy_walk_below(struct walk *w, const char *dir, struct err *e)
{
	struct dirent **names;
	int n = scandir(dir, &names, NULL, alphasort), r = 0;

	if (n < 0) return err_set(e, -errno, "list '%s'", dir);
	for (int i = 0; i < n; i++) {
		char path[PATH_LIMIT];
		const char *name = names[i]->d_name;

		if (r == 0 && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
		    snprintf(path, sizeof path, "%s/%s", dir, name) < (int)sizeof path)
			r = copy_walk(w, path, e);
		free(names[i]);
	}
	free(names);
	return r;
}

/* PATH is absolute. What may not be copied, or is gone by now, is left out without a word. */
static int copy_walk(struct walk *w, const char *path, struct err *e)
{
	char target[PATH_LIMIT];
	struct part part = {.path = path + 1, .text = target};
	struct stat st;
	ssize_t n;
	int r;

	if (is_secret(strrchr(path, '/') + 1) || lstat(path, &st) < 0 || !is_public(&st)) return 0;
	part.kind = S_ISDIR(st.st_mode) ? PART_DIR : S_ISLNK(st.st_mode) ? PART_LINK : PART_FILE;
	part.mode = st.st_mode & 0755;
	n = part.kind == PART_LINK ? readlink(path, target, sizeof target - 1) : 0;
	if (n < 0) return 0;
	target[n] = '\0';
	r = w->on(w, &part, &st, e);
	if (r == 0 && part.kind == PART_DIR) r = copy_walk_below(w, path, e);
	return r;
}

static int copies_walk(struct walk *w, struct err *e)
{
	int r = 0;

	for (unsigned i = 0; i < ARRAY_LEN(copies) && r == 0; i++) {
		glob_t found;

		if (glob(copies[i], 0, NULL, &found) != 0) continue;
		for (size_t k = 0; k < found.gl_pathc && r == 0; k++)
			r = copy_walk(w, found.gl_pathv[k], e);
		globfree(&found);
	}
	return r;
}

static int merged_walk(struct walk *w, struct err *e)
{
	for (unsigned i = 0; i < ARRAY_LEN(merged); i++) {
		char target[64];
		struct part link = {.kind = PART_LINK, .path = merged[i], .text = target, .mode = 0777};
		struct stat st;
		int r;

		(void)snprintf(target, sizeof target, "/usr/%s", merged[i]);
		if (stat(target, &st) < 0) continue;
		memmove(target, target + 1, strlen(target)); /* "usr/bin": as Debian does it */
		r = w->on(w, &link, NULL, e);
		if (r < 0) return r;
	}
	return 0;
}

static int walk(struct walk *w, struct err *e)
{
	int r = 0;

	for (unsigned i = 0; i < ARRAY_LEN(parts) && r == 0; i++)
		r = w->on(w, &parts[i], NULL, e);
	if (r == 0) r = merged_walk(w, e);
	if (r == 0) r = copies_walk(w, e);
	return r;
}

/* ---- the digest: FNV-1a, it only has to notice change ---- */

static void digest_bytes(struct walk *w, const void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		w->digest = (w->digest ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3u;
}

static int on_digest(struct walk *w, const struct part *part, const struct stat *source, struct err *e)
{
	(void)e;
	digest_bytes(w, &part->kind, sizeof part->kind);
	digest_bytes(w, &part->mode, sizeof part->mode);
	digest_bytes(w, &part->owner, sizeof part->owner);
	digest_bytes(w, part->path, strlen(part->path) + 1);
	digest_bytes(w, part->text, strlen(part->text) + 1);
	if (!source || part->kind != PART_FILE) return 0;
	digest_bytes(w, &source->st_size, sizeof source->st_size);
	digest_bytes(w, &source->st_mtim, sizeof source->st_mtim);
	return 0;
}

/* ---- the building ---- */

static int copy_contents(const char *from_path, int to_fd)
{
	/* O_NONBLOCK: what was a file when we looked may be a fifo now. */
	auto_close int from_fd = open(from_path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n;

	if (from_fd < 0) return -errno;
	do
		n = sendfile(to_fd, from_fd, NULL, 1 << 20);
	while (n > 0);
	return n < 0 ? -errno : 0;
}

static int build_file(int root_fd, const struct part *part, bool copied)
{
	auto_close int fd = openat(root_fd, part->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	char source[PATH_LIMIT];
	int r;

	if (fd < 0) return -errno;
	(void)snprintf(source, sizeof source, "/%s", part->path);
	r = copied ? copy_contents(source, fd) : fd_write_all(fd, part->text, strlen(part->text));
	if (r < 0) return r;
	return fchown(fd, part->owner, part->owner) < 0 || fchmod(fd, part->mode) < 0 ? -errno : 0;
}

static int build_dir(int root_fd, const struct part *part)
{
	/* A copied directory may be one of the table's: the table's mode stands. */
	if (mkdirat(root_fd, part->path, 0700) < 0) return errno == EEXIST ? 0 : -errno;
	if (fchownat(root_fd, part->path, part->owner, part->owner, AT_SYMLINK_NOFOLLOW) < 0) return -errno;
	return fchmodat(root_fd, part->path, part->mode, 0) < 0 ? -errno : 0;
}

static int on_build(struct walk *w, const struct part *part, const struct stat *source, struct err *e)
{
	int r = 0;

	switch (part->kind) {
	case PART_DIR: r = build_dir(w->root_fd, part); break;
	case PART_FILE: r = build_file(w->root_fd, part, source != NULL); break;
	case PART_LINK: r = symlinkat(part->text, w->root_fd, part->path) < 0 ? -errno : 0; break;
	}
	/* Two patterns may match one file; a source may vanish under our eyes (a package being upgraded). */
	if (source && (r == -EEXIST || r == -ENOENT)) return 0;
	return r < 0 ? err_set(e, r, "make '%s' of the image", part->path) : 0;
}

static int build_at(const char *path, struct err *e)
{
	struct walk builder = {.on = on_build};
	auto_close int fd = -1;
	int r;

	if (mkdir(path, 0700) < 0) return err_set(e, -errno, "make '%s'", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) return err_set(e, -errno, "open '%s'", path);
	builder.root_fd = fd;
	r = walk(&builder, e);
	if (r < 0) return r;
	if (fchmod(fd, 0755) < 0) return err_set(e, -errno, "set the mode of '%s'", path);
	/* Its name promises its contents, also after a power cut. */
	if (syncfs(fd) < 0) return err_set(e, -errno, "flush '%s'", path);
	return 0;
}

static int build(const char *dir, const char *path, struct err *e)
{
	char fresh[PATH_LIMIT];
	int r;

	(void)snprintf(fresh, sizeof fresh, "%s/.new-%d", dir, (int)getpid());
	r = tree_delete(fresh);
	if (r < 0) return err_set(e, r, "remove '%s'", fresh);
	r = build_at(fresh, e);
	if (r == 0 && rename(fresh, path) < 0 && errno != EEXIST && errno != ENOTEMPTY)
		r = err_set(e, -errno, "put '%s' in place", path);
	(void)tree_delete(fresh);
	return r;
}

/* ---- what others call ---- */

int image_host_open(const char *dir, struct image *ret, struct err *e)
{
	struct walk digester = {.on = on_digest, .digest = 0xcbf29ce484222325u};
	auto_close int root_fd = -1, usr_fd = -1;
	char path[PATH_LIMIT];
	int r;

	if (mkdir(dir, 0700) < 0 && errno != EEXIST) return err_set(e, -errno, "make '%s'", dir);
	r = walk(&digester, e);
	if (r < 0) return r;
	if (snprintf(path, sizeof path, "%s/%016" PRIx64, dir, digester.digest) >= PATH_LIMIT - 16)
		return err_set(e, -ENAMETOOLONG, "'%s'", dir);
	if (access(path, F_OK) < 0) r = build(dir, path, e);
	if (r < 0) return r;
	root_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0) return err_set(e, -errno, "open '%s'", path);
	usr_fd = open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (usr_fd < 0) return err_set(e, -errno, "open '/usr'");
	ret->root_fd = take_fd(&root_fd);
	ret->usr_fd = take_fd(&usr_fd);
	return 0;
}

int image_host_forget_others(const char *dir, const struct image *image, struct err *e)
{
	struct stat kept, st;
	struct dirent **names;
	int n, r = 0;

	if (fstat(image->root_fd, &kept) < 0) return err_set(e, -errno, "look at the image");
	n = scandir(dir, &names, NULL, alphasort);
	if (n < 0) return err_set(e, -errno, "list '%s'", dir);
	for (int i = 0; i < n; i++) {
		char path[PATH_LIMIT];
		const char *name = names[i]->d_name;

		if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
		    snprintf(path, sizeof path, "%s/%s", dir, name) < (int)sizeof path &&
		    lstat(path, &st) == 0 && st.st_ino != kept.st_ino) {
			int failed = tree_delete(path);

			if (failed < 0 && r == 0) r = err_set(e, failed, "remove '%s'", path);
		}
		free(names[i]);
	}
	free(names);
	return r;
}

const char *image_host_missing(void)
{
	static char sentence[256];
	size_t len = 0;

	for (unsigned i = 0; i < ARRAY_LEN(needs) && len < sizeof sentence; i++) {
		if (access(needs[i], X_OK) == 0) continue;
		len += (size_t)snprintf(
			sentence + len, sizeof sentence - len, "%s %s",
			len ? "," : "this host lacks programs that clients count on:", needs[i]);
	}
	return len ? sentence : NULL;
}

/*
 * Whatever an archive holds: what is outside of the root stays as it is, a refusal leaves no trace inside of
 * it, and the program comes to an end. The old tree holds what hostile archives need: a file, a symlink out,
 * a directory.
 */
#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "archive/staging.h"
#include "archive/unpack.h"
#include "archive/walk.h"
#include "base/fd.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void make_old_tree(int dir_fd)
{
	assert(mkdirat(dir_fd, "root", 0755) == 0 && mkdirat(dir_fd, "root/dir", 0755) == 0);
	assert(mkdirat(dir_fd, "outside", 0755) == 0);
	assert(symlinkat("../outside", dir_fd, "root/link") == 0);
	(void)fd_close(openat(dir_fd, "root/file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	(void)fd_close(openat(dir_fd, "outside/file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
}

static unsigned count(int dir_fd, const char *name)
{
	enum walk_kind kind = WALK_FILE;
	unsigned n = 0;
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert(fd >= 0);
	auto_walk struct walk w;
	walk_init(&w, fd);
	for (;; n++) {
		assert(walk_next(&w, &kind, NULL) == 0);
		if (kind == WALK_END) return n;
		if (kind == WALK_DIRECTORY) (void)walk_enter(&w, NULL, NULL);
	}
}

/* The checksum of a header would stop nearly every input that is made by chance: it is set right. */
static void mend_checksum(uint8_t *block)
{
	unsigned sum = 0;

	if (memcmp(block + 257, "ustar", 5) != 0) return;
	memset(block + 148, ' ', 8);
	for (size_t i = 0; i < 512; i++)
		sum += block[i];
	(void)snprintf((char *)block + 148, 7, "%06o", sum);
}

static int feed(const uint8_t *bytes, size_t len)
{
	int fd = memfd_create("archive", MFD_CLOEXEC);

	assert(fd >= 0);
	for (size_t at = 0; at < len; at += 512) {
		uint8_t block[512];
		size_t n = len - at < sizeof block ? len - at : sizeof block;

		memcpy(block, bytes + at, n);
		if (n == sizeof block) mend_checksum(block);
		assert(fd_write_all(fd, block, n) == 0);
	}
	assert(lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	/* A member of a gigabyte of zeros is allowed; here it would only take time. */
	const struct rlimit small = {1 << 20, RLIM_INFINITY};
	char dir[] = "/tmp/tombolo-fuzz-XXXXXX", root[64];
	struct verdict v = {0};

	(void)signal(SIGXFSZ, SIG_IGN);
	(void)setrlimit(RLIMIT_FSIZE, &small);
	assert(mkdtemp(dir));
	auto_close int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_close int in_fd = feed(bytes, len);
	make_old_tree(dir_fd);
	unsigned before = count(dir_fd, "root");
	(void)snprintf(root, sizeof root, "%s/root", dir);
	unpack(root, in_fd, &v);
	assert(count(dir_fd, "outside") == 1);
	assert(count(dir_fd, ".") == count(dir_fd, "root") + 5);
	if (v.failures) assert(count(dir_fd, "root") == before && v.failure.text[0]);
	assert(fchmodat(dir_fd, "root", 0755, 0) == 0);
	(void)staging_remove(AT_FDCWD, dir, NULL);
	return 0;
}

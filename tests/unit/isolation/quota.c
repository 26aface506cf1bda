/* The back ends that this host has, in a directory of our own. */
#include "isolation/quota.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "isolation/tree.h"
#include "unit.h"

#define MIB (UINT64_C(1) << 20)

static char dir[64];
static int images_fd = -1;

/* Whoever has it is never refused. The overlay of a sandbox, through which it writes, has laid it down as
 * well. */
static void lay_down_sys_resource(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, words) < 0) return;
	words[0].effective &= ~(1u << CAP_SYS_RESOURCE);
	(void)syscall(SYS_capset, &header, words);
}

static int setup(void **state)
{
	(void)state;
	lay_down_sys_resource();
	(void)snprintf(dir, sizeof dir, "/tmp/unit-quota-%d", (int)getpid());
	if (mkdir(dir, 0700) < 0) return -1;
	images_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return images_fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	images_fd = fd_close(images_fd);
	return tree_delete(dir);
}

/* NULL, after a word, when this host has not that back end. */
static struct quota *open_or_skip(const char *wish)
{
	struct err e = ERR_NONE;
	struct quota *q;

	if (quota_open(wish, images_fd, &q, &e) == 0) return q;
	print_message("skip: %s\n", e.text);
	return NULL;
}

/* Bytes that go into the upper directory before it is full. */
static uint64_t fill(int data_fd)
{
	static const char piece[65536];
	auto_close int fd = openat(data_fd, "upper/full", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	uint64_t sum = 0;
	ssize_t n;

	ASSERT_TRUE(fd >= 0);
	while ((n = write(fd, piece, sizeof piece)) > 0 && sum < 256 * MIB)
		sum += (uint64_t)n;
	ASSERT_TRUE(n < 0 && (errno == ENOSPC || errno == EDQUOT));
	return sum;
}

static void judge(const char *wish)
{
	struct quota *q = geteuid() == 0 ? open_or_skip(wish) : NULL;
	auto_close int box_fd = -1, data_fd = -1;
	struct err e = ERR_NONE;
	uint64_t sum;

	if (!q) skip();
	ASSERT_STR(quota_name(q), wish);
	ASSERT_TRUE(quota_is_enforced(q));
	ASSERT_OK(mkdirat(images_fd, wish, 0700));
	box_fd = openat(images_fd, wish, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (quota_make(q, box_fd, 64 * MIB, &data_fd, &e) < 0) fail_msg("%s", e.text);
	ASSERT_OK(faccessat(data_fd, "work", W_OK, 0));
	sum = fill(data_fd);
	ASSERT_TRUE(sum > 40 * MIB && sum <= 64 * MIB);
	ASSERT_OK(unlinkat(data_fd, "upper/full", 0));
	ASSERT_TRUE(fill(data_fd) > 40 * MIB);
	quota_drop(q, box_fd, data_fd);
	quota_free(q);
}

TEST(an_image_holds_what_it_may_and_no_more)
{
	judge("image");
}

/* A keeper that is started anew has nothing but the directory. */
TEST(an_image_that_another_made_is_held_and_dropped)
{
	struct quota *q = open_or_skip("image");
	int box_fd, made_fd = -1, held_fd = -1, fd;
	struct stat made, held;

	if (!q) return;
	ASSERT_OK(mkdirat(images_fd, "held", 0700));
	box_fd = openat(images_fd, "held", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ASSERT_OK(quota_make(q, box_fd, 64 * MIB, &made_fd, NULL));
	ASSERT_OK(quota_hold(q, box_fd, &held_fd, NULL));
	ASSERT_OK(fstat(made_fd, &made));
	ASSERT_OK(fstat(held_fd, &held));
	ASSERT_EQ(made.st_dev, held.st_dev);
	quota_drop(q, box_fd, held_fd);
	fd = openat(made_fd, "upper/late", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ASSERT_TRUE(fd < 0 && errno == EIO); /* nothing of it reaches the disk any more */
	fd_close(held_fd);
	fd_close(made_fd);
	fd_close(box_fd);
	quota_free(q);
}

/* The kernel's word, for all block groups of the disk in BOX_FD; -1: it has none. */
static int maps_in_memory(int box_fd)
{
	char device[24], path[64], text[4096], *count;
	ssize_t n = readlinkat(box_fd, "device", device, sizeof device - 1);

	ASSERT_TRUE(n > 0);
	device[n] = '\0';
	(void)snprintf(path, sizeof path, "/sys/fs/ext4/loop%s/mb_stats", device);
	if (fd_write_file(AT_FDCWD, path, "1") < 0) return -1;
	(void)snprintf(path, sizeof path, "/proc/fs/ext4/loop%s/mb_stats", device);
	if (fd_read_file(AT_FDCWD, path, text, sizeof text) <= 0) return -1;
	count = strstr(text, "buddies_generated: ");
	return count ? atoi(count + strlen("buddies_generated: ")) : -1;
}

/* A disk of twenty gigabytes would begin with two megabytes of maps in memory. */
TEST(an_image_makes_no_map_before_somebody_needs_it)
{
	struct quota *q = open_or_skip("image");
	int box_fd, data_fd = -1, maps;

	if (!q) return;
	ASSERT_OK(mkdirat(images_fd, "maps", 0700));
	box_fd = openat(images_fd, "maps", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ASSERT_OK(quota_make(q, box_fd, 8192 * MIB, &data_fd, NULL));
	ASSERT_OK(mkdirat(data_fd, "upper/first", 0700));
	maps = maps_in_memory(box_fd);
	quota_drop(q, box_fd, data_fd);
	fd_close(data_fd);
	fd_close(box_fd);
	quota_free(q);
	if (maps < 0) skip();
	ASSERT_TRUE(maps < 4); /* of 64 */
}

TEST(a_tmpfs_holds_what_it_may_and_no_more)
{
	judge("tmpfs");
}

TEST(a_project_holds_what_it_may_and_no_more)
{
	judge("project");
}

TEST(auto_never_fails_and_off_says_so)
{
	struct quota *q;
	struct err e = ERR_NONE;

	ASSERT_OK(quota_open("auto", images_fd, &q, &e));
	ASSERT_EQ(quota_is_enforced(q), quota_fault(q) == NULL);
	quota_free(q);
	ASSERT_OK(quota_open("off", images_fd, &q, &e));
	ASSERT_TRUE(!quota_is_enforced(q) && !quota_fault(q));
	quota_free(q);
	ASSERT_EQ(quota_open("some", images_fd, &q, &e), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RUN(an_image_holds_what_it_may_and_no_more),
		RUN(an_image_that_another_made_is_held_and_dropped),
		RUN(an_image_makes_no_map_before_somebody_needs_it),
		RUN(a_tmpfs_holds_what_it_may_and_no_more),
		RUN(a_project_holds_what_it_may_and_no_more),
		RUN(auto_never_fails_and_off_says_so),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}

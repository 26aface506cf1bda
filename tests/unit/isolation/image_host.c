#include "isolation/image_host.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "isolation/slot.h"
#include "isolation/tree.h"
#include "unit.h"

static char dir[64];

static int setup(void **state)
{
	(void)state;
	(void)snprintf(dir, sizeof dir, "/tmp/tombolo-image-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return tree_delete(dir);
}

static void image_open(struct image *image)
{
	struct err e = ERR_NONE;

	if (image_host_open(dir, image, &e) < 0) fail_msg("%s", e.text);
}

static void image_close(struct image *image)
{
	image->root_fd = fd_close(image->root_fd);
	image->usr_fd = fd_close(image->usr_fd);
}

static unsigned entries(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *entry;
	unsigned n = 0;

	assert_non_null(d);
	while ((entry = readdir(d)))
		n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	(void)closedir(d);
	return n;
}

/* Root only: the skeleton gives files away. */
#define NEEDS_ROOT() \
	if (geteuid() != 0) { \
		print_message("skip: needs root\n"); \
		skip(); \
	}

TEST(the_skeleton_has_owners_and_modes)
{
	static const struct {
		const char *path;
		mode_t mode;
		uid_t owner;
	} wanted[] = {
		{".", S_IFDIR | 0755, 0},
		{"workspace", S_IFDIR | 0755, 1000},
		{"home/sandbox", S_IFDIR | 0755, 1000},
		{"root", S_IFDIR | 0700, 0},
		{"tmp", S_IFDIR | 01777, 0},
		{"run/shm", S_IFDIR | 01777, 0},
		{"etc/passwd", S_IFREG | 0644, 0},
		{"etc/shadow", S_IFREG | 0600, 0},
		{"etc/sudoers", S_IFREG | 0440, 0},
		{"bin", S_IFLNK | 0777, 0},
		{"etc/mtab", S_IFLNK | 0777, 0},
		{"proc", S_IFDIR | 0555, 0},
	};
	struct image image;

	NEEDS_ROOT();
	image_open(&image);
	for (unsigned i = 0; i < ARRAY_LEN(wanted); i++) {
		struct stat st;

		ASSERT_OK(fstatat(image.root_fd, wanted[i].path, &st, AT_SYMLINK_NOFOLLOW));
		if (st.st_mode != wanted[i].mode || st.st_uid != wanted[i].owner ||
		    st.st_gid != wanted[i].owner)
			fail_msg("%s is %o of %u:%u", wanted[i].path, st.st_mode, st.st_uid, st.st_gid);
	}
	image_close(&image);
}

TEST(nothing_secret_comes_along)
{
	static const char *const absent[] = {"etc/ssh",       "etc/ssl/private", "etc/machine-id",
					     "etc/apt",       "etc/shadow-",     "etc/sudoers.d",
					     "etc/gitconfig", "etc/npmrc",       "etc/pip.conf"};
	char text[4096];
	struct image image;

	NEEDS_ROOT();
	image_open(&image);
	for (unsigned i = 0; i < ARRAY_LEN(absent); i++)
		if (faccessat(image.root_fd, absent[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			fail_msg("%s", absent[i]);
	ASSERT_TRUE(fd_read_file(image.root_fd, "etc/shadow", text, sizeof text) > 0);
	assert_null(strchr(text, '$')); /* no hash */
	ASSERT_TRUE(fd_read_file(image.root_fd, "etc/hosts", text, sizeof text) > 0);
	assert_non_null(strstr(text, "127.0.0.1 localhost sandbox\n"));
	image_close(&image);
}

TEST(the_same_content_is_the_same_directory)
{
	struct image first, second;
	struct stat a, b;

	NEEDS_ROOT();
	image_open(&first);
	image_open(&second);
	ASSERT_OK(fstat(first.root_fd, &a));
	ASSERT_OK(fstat(second.root_fd, &b));
	ASSERT_TRUE(a.st_ino == b.st_ino && a.st_dev == b.st_dev);
	ASSERT_EQ(entries(dir), 1); /* nothing half-made stays behind */
	image_close(&first);
	image_close(&second);
}

TEST(others_are_forgotten_when_asked_and_not_before)
{
	struct image image;
	struct stat st;
	char old[96], file[112];

	NEEDS_ROOT();
	(void)snprintf(old, sizeof old, "%s/0123456789abcdef", dir);
	(void)snprintf(file, sizeof file, "%s/file", old);
	ASSERT_OK(mkdir(old, 0755));
	ASSERT_OK(mkdir(file, 0700));
	image_open(&image);
	ASSERT_OK(stat(file, &st)); /* a sandbox may still live on it */
	ASSERT_OK(image_host_forget_others(dir, &image, NULL));
	ASSERT_EQ(stat(old, &st), -1);
	ASSERT_OK(fstatat(image.root_fd, "etc/passwd", &st, 0));
	ASSERT_EQ(entries(dir), 1);
	image_close(&image);
}

TEST(a_place_that_cannot_be_is_named)
{
	struct err e = ERR_NONE;
	struct image image = {-1, -1};

	ASSERT_EQ(image_host_open("/dev/null/images", &image, &e), -ENOTDIR);
	assert_non_null(strstr(e.text, "/dev/null/images"));
	ASSERT_EQ(image.root_fd, -1);
}

TEST(this_host_has_what_clients_count_on)
{
	assert_null(image_host_missing());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RUN(the_skeleton_has_owners_and_modes),
		RUN(nothing_secret_comes_along),
		RUN(the_same_content_is_the_same_directory),
		RUN(others_are_forgotten_when_asked_and_not_before),
		RUN(a_place_that_cannot_be_is_named),
		RUN(this_host_has_what_clients_count_on),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}

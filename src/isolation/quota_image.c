/*
 * quota_image.c - theory of operation.
 *
 * A template of each size is made once: mkfs.ext4 into a sparse file, with upper/ and work/ in it. Making a
 * sandbox's disk is a copy of its few blocks, a loop device, and a mount that is attached nowhere. The loop
 * device frees itself when the last mount of it is gone (LO_FLAGS_AUTOCLEAR).
 *
 * There is no journal: what a sandbox has not written when its host crashes is lost anyway, and an image that
 * is used again after that (sleep-after) is mended first. The loop device reads and writes the file without
 * the page cache where it can; otherwise each page would be there twice, and once too often. Freed blocks are
 * given back to the host (discard). A file that takes another one's place is not written at once for that
 * (noauto_da_alloc): it would only be for the crash that we do not fear, and each such write is waited for.
 *
 * At the end of a sandbox the kernel would write out what is not on disk yet, for a file that is deleted
 * next: quota_drop() shuts the file system down first. A keeper that took the sandbox over mounts the same
 * device once more for that (quota_hold()), which gives the same file system.
 *
 * Trust: the sandbox reaches the file system, never the device or the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "isolation/limits.h"
#include "isolation/loop_device.h"
#include "isolation/quota_backend.h"

#define DISK       "disk"   /* the file's name in a sandbox's directory */
#define DEVICE     "device" /* a link beside it, to nowhere: the number of its loop device */
#define BLOCK      4096
#define PROBE_SIZE (UINT64_C(64) << 20)

/* _IOR('X', 125, __u32) of ext4 and XFS; without writing anything out. */
#define IOC_SHUTDOWN      _IOR('X', 125, uint32_t)
#define SHUTDOWN_NO_FLUSH 2

/* ---- templates ---- */

struct template_name {
	char text[48];
};

static struct template_name template_name(uint64_t bytes)
{
	struct template_name name;

	(void)snprintf(name.text, sizeof name.text, "disk-%" PRIu64 ".ext4", bytes / BLOCK * BLOCK);
	return name;
}

static const char *mkfs_path(void)
{
	static const char *const paths[] = {"/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4"};

	for (unsigned i = 0; i < ARRAY_LEN(paths); i++)
		if (access(paths[i], X_OK) == 0) return paths[i];
	return NULL;
}

/* Runs ARGV with nothing but stderr, in a clean environment. */
static int run(const char *const argv[], struct err *e)
{
	static char *const environment[] = {NULL};
	posix_spawn_file_actions_t files;
	int status = 0, r;
	pid_t pid;

	(void)posix_spawn_file_actions_init(&files);
	(void)posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDWR, 0);
	(void)posix_spawn_file_actions_adddup2(&files, STDIN_FILENO, STDOUT_FILENO);
	r = posix_spawn(&pid, argv[0], &files, NULL, (char *const *)argv, environment);
	(void)posix_spawn_file_actions_destroy(&files);
	if (r) return err_set(e, -r, "start %s", argv[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return err_say(e, -EIO, "%s failed", argv[0]);
	return 0;
}

/* PATH is a sparse file of the wanted size, LAYERS a directory that holds what the file system begins with.
 */
static int format(const char *path, const char *layers, uint64_t bytes, struct err *e)
{
	char inodes[24];
	const char *argv[] = {mkfs_path(),
			      "-q",
			      "-F",
			      "-b",
			      "4096",
			      "-m",
			      "0",
			      "-N",
			      inodes,
			      "-O",
			      "^has_journal,^resize_inode,^metadata_csum,uninit_bg",
			      "-E",
			      "lazy_itable_init=1,nodiscard,packed_meta_blocks=1,root_owner=0:0",
			      "-G",
			      "4096",
			      "-d",
			      layers,
			      path,
			      NULL};

	if (!argv[0]) return err_say(e, -ENOENT, "mkfs.ext4 is missing (package e2fsprogs)");
	(void)snprintf(inodes, sizeof inodes, "%" PRIu64, limits_inodes(bytes));
	return run(argv, e);
}

/* NEW is a directory of ours: the file `disk` in it becomes the template. */
static int template_build(int new_fd, uint64_t bytes, struct err *e)
{
	auto_close int layers_fd = -1,
		       fd = openat(new_fd, DISK, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char path[64], layers[64];
	int r = fd < 0 ? err_set(e, -errno, "make a disk image") : quota_dirs_make(new_fd, &layers_fd, e);

	if (r < 0) return r;
	if (ftruncate(fd, (off_t)(bytes / BLOCK * BLOCK)) < 0) return err_set(e, -errno, "size a disk image");
	(void)snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), fd);
	(void)snprintf(layers, sizeof layers, "/proc/%d/fd/%d", (int)getpid(), layers_fd);
	return format(path, layers, bytes, e);
}

static int build_in_place(const struct quota *q, int new_fd, uint64_t bytes, struct err *e)
{
	int r = template_build(new_fd, bytes, e);

	if (r == 0 && renameat(new_fd, DISK, q->images_fd, template_name(bytes).text) < 0)
		r = err_set(e, -errno, "put a disk image's template in place");
	return r;
}

static int template_open(const struct quota *q, uint64_t bytes, int *ret_fd, struct err *e)
{
	static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
	struct template_name name = template_name(bytes);
	int fd, r = 0;

	(void)pthread_mutex_lock(&one_at_a_time);
	if (faccessat(q->images_fd, name.text, R_OK, 0) < 0) r = quota_try(q, build_in_place, bytes, e);
	(void)pthread_mutex_unlock(&one_at_a_time);
	if (r < 0) return r;
	fd = openat(q->images_fd, name.text, O_RDONLY | O_CLOEXEC);
	if (fd < 0) return err_set(e, -errno, "open '%s'", name.text);
	*ret_fd = fd;
	return 0;
}

/* ---- a copy of it ---- */

static int copy_data(int from_fd, int to_fd, off_t size)
{
	off_t at = 0, end;

	while ((at = lseek(from_fd, at, SEEK_DATA)) >= 0 && at < size) {
		end = lseek(from_fd, at, SEEK_HOLE);
		if (end < 0) return -errno;
		while (at < end) {
			off_t to = at;
			ssize_t n = copy_file_range(from_fd, &at, to_fd, &to, (size_t)(end - at), 0);

			if (n <= 0) return n < 0 ? -errno : -EIO;
		}
	}
	return 0;
}

static int file_make(const struct quota *q, int dir_fd, uint64_t bytes, int *ret_fd, struct err *e)
{
	auto_close int template_fd = -1, fd = -1;
	off_t size = (off_t)(bytes / BLOCK * BLOCK);
	int r = template_open(q, bytes, &template_fd, e);

	if (r < 0) return r;
	fd = openat(dir_fd, DISK, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) return err_set(e, -errno, "make a disk image");
	if (ioctl(fd, FICLONE, template_fd) < 0) {
		if (ftruncate(fd, size) < 0) return err_set(e, -errno, "size a disk image");
		r = copy_data(template_fd, fd, size);
		if (r < 0) return err_set(e, r, "copy a disk image's template");
	}
	*ret_fd = take_fd(&fd);
	return 0;
}

/* ---- the mount ---- */

static int fs_open(const char *device, struct err *e)
{
	auto_close int fd = fsopen("ext4", FSOPEN_CLOEXEC);

	if (fd < 0) return err_set(e, -errno, "begin a mount");
	/* Its tables are zero already: the file is sparse. */
	if (fsconfig(fd, FSCONFIG_SET_STRING, "source", device, 0) < 0 ||
	    fsconfig(fd, FSCONFIG_SET_FLAG, "noinit_itable", NULL, 0) < 0 ||
	    fsconfig(fd, FSCONFIG_SET_FLAG, "discard", NULL, 0) < 0 ||
	    fsconfig(fd, FSCONFIG_SET_FLAG, "noauto_da_alloc", NULL, 0) < 0 ||
	    fsconfig(fd, FSCONFIG_SET_FLAG, "no_prefetch_block_bitmaps", NULL, 0) < 0 ||
	    fsconfig(fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return err_set(e, -errno, "mount a disk image");
	return take_fd(&fd);
}

/*
 * The template is one flexible group (-G), and ext4 makes the maps of all block groups of such a one as soon
 * as the first block is wanted: for 20 GiB that is 9 ms and 1.7 MiB of page cache. Here it makes each map
 * when it needs it; `no_prefetch_block_bitmaps` above says the same to the thread that follows a mount. Best
 * effort.
 */
static void forbid_prefetch(long number)
{
	char path[64];

	(void)snprintf(path, sizeof path, "/sys/fs/ext4/loop%ld/mb_prefetch", number);
	(void)fd_write_file(AT_FDCWD, path, "0");
}

static int device_mount(const struct quota *q, long number, int *ret_data_fd, struct err *e)
{
	auto_close int fs_fd = fs_open(loop_device_path(q->images_fd, number).text, e);
	int fd;

	if (fs_fd < 0) return fs_fd;
	fd = fsmount(fs_fd, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME);
	if (fd < 0) return err_set(e, -errno, "mount a disk image");
	forbid_prefetch(number);
	*ret_data_fd = fd;
	return 0;
}

/* For image_hold(), which can do without. */
static void note_device(int dir_fd, long number)
{
	char text[24];

	(void)snprintf(text, sizeof text, "%ld", number);
	(void)fd_remove(dir_fd, DEVICE, 0);
	(void)symlinkat(text, dir_fd, DEVICE);
}

static int file_mount(const struct quota *q, int dir_fd, int file_fd, int *ret_data_fd, struct err *e)
{
	auto_close int device_fd = -1; /* open until the mount holds the device: it would free itself */
	long number;
	int r = loop_device_take(q->images_fd, file_fd, BLOCK, &number, &device_fd, e);

	if (r == 0) r = device_mount(q, number, ret_data_fd, e);
	if (r == 0) note_device(dir_fd, number);
	return r;
}

/* Whether the loop device is on DIR_FD's own file still. */
static bool is_device_of(const struct quota *q, int dir_fd, long number)
{
	struct stat st;

	return fstatat(dir_fd, DISK, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       loop_device_is_on(q->images_fd, number, &st);
}

static int image_hold(const struct quota *q, int dir_fd, int *ret_data_fd, struct err *e)
{
	char text[24];
	ssize_t n = readlinkat(dir_fd, DEVICE, text, sizeof text - 1);
	long number;

	if (n < 0) return err_set(e, -errno, "find a disk image's device");
	text[n] = '\0';
	number = strtol(text, NULL, 10);
	if (!is_device_of(q, dir_fd, number))
		return err_say(e, -ESTALE, "loop device %ld is another's", number);
	return device_mount(q, number, ret_data_fd, e);
}

/* What its first user needs of the disk's maps and tables is read now, and not when somebody waits for it. */
static void warm(int data_fd)
{
	static const char *const names[] = {"upper/.warm", "work/.warm"};

	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		(void)mkdirat(data_fd, names[i], 0700);
		(void)unlinkat(data_fd, names[i], AT_REMOVEDIR);
	}
}

static int image_make(const struct quota *q, int dir_fd, uint64_t bytes, int *ret_data_fd, struct err *e)
{
	auto_close int file_fd = -1;
	int r = file_make(q, dir_fd, bytes, &file_fd, e);

	if (r == 0) r = file_mount(q, dir_fd, file_fd, ret_data_fd, e);
	if (r == 0) warm(*ret_data_fd);
	return r;
}

/* ---- once more ---- */

/*
 * The kernel takes its time to unmount for a sandbox that died, and two devices on one file would destroy it.
 * A lease is given only while nobody else has the file open, and a device has.
 */
static int check_released(int fd)
{
	if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0) return errno == EAGAIN ? -EBUSY : -errno;
	(void)fcntl(fd, F_SETLEASE, F_UNLCK);
	return 0;
}

/* Bit 0 of the superblock's s_state: it was unmounted. */
static bool was_unmounted(int fd)
{
	uint8_t state = 0;

	return pread(fd, &state, 1, 1024 + 0x3A) == 1 && state & 1;
}

static int mend(int fd, struct err *e)
{
	char path[64];
	const char *argv[] = {"/sbin/e2fsck", "-p", path, NULL};

	if (was_unmounted(fd)) return 0;
	(void)snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), fd);
	(void)run(argv, NULL); /* 1 is "mended", and more is seen when it is asked again */
	return run(argv, e);
}

static bool image_is_in(int dir_fd)
{
	return faccessat(dir_fd, DISK, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int image_reopen(const struct quota *q, int dir_fd, int *ret_data_fd, struct err *e)
{
	auto_close int fd = openat(dir_fd, DISK, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	int r = fd < 0 ? -errno : check_released(fd);

	if (r < 0) return err_set(e, r, "open a sandbox's disk image");
	r = mend(fd, e);
	return r < 0 ? r : file_mount(q, dir_fd, fd, ret_data_fd, e);
}

static void image_drop(int dir_fd, int data_fd)
{
	uint32_t how = SHUTDOWN_NO_FLUSH;
	auto_close int fd = data_fd < 0 ? -1 : openat(data_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)dir_fd;
	/* Best effort: without it the kernel writes what nobody reads. */
	if (fd >= 0) (void)ioctl(fd, IOC_SHUTDOWN, &how);
}

static uint64_t image_used(int dir_fd)
{
	struct stat st;

	return fstatat(dir_fd, DISK, &st, AT_SYMLINK_NOFOLLOW) < 0 ? 0 : (uint64_t)st.st_blocks * 512;
}

static int try_image(const struct quota *q, int dir_fd, uint64_t bytes, struct err *e)
{
	int data_fd = -1, r = image_make(q, dir_fd, bytes, &data_fd, e);

	if (r < 0) return r;
	image_drop(dir_fd, data_fd);
	fd_close(data_fd);
	return 0;
}

static int image_probe(const struct quota *q, struct err *e)
{
	return quota_try(q, try_image, PROBE_SIZE, e);
}

const struct quota_backend quota_image = {.name = "image",
					  .enforced = true,
					  .fixed = true,
					  .probe = image_probe,
					  .make = image_make,
					  .is_in = image_is_in,
					  .reopen = image_reopen,
					  .hold = image_hold,
					  .drop = image_drop,
					  .used = image_used};

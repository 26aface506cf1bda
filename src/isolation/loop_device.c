#include "isolation/loop_device.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <linux/major.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

#define TRIES 64 /* others take free devices, too */

struct loop_device_path loop_device_path(int nodes_fd, long number)
{
	struct loop_device_path path;
	char name[24];

	(void)snprintf(path.text, sizeof path.text, "/dev/loop%ld", number);
	if (access(path.text, F_OK) == 0) return path;
	(void)snprintf(name, sizeof name, "loop%ld", number);
	if (mknodat(nodes_fd, name, S_IFBLK | 0600, makedev(LOOP_MAJOR, (unsigned)number)) == 0 ||
	    errno == EEXIST)
		(void)snprintf(path.text, sizeof path.text, "/proc/self/fd/%d/%s", nodes_fd, name);
	return path;
}

int loop_device_take(int nodes_fd, int file_fd, uint32_t block, long *ret_number, int *ret_fd, struct err *e)
{
	auto_close int control_fd = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	struct loop_config config = {.fd = (uint32_t)file_fd,
				     .block_size = block,
				     .info = {.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO}};

	if (control_fd < 0) return err_set(e, -errno, "open /dev/loop-control");
	for (int i = 0; i < TRIES; i++) {
		auto_close int fd = -1;
		long number = ioctl(control_fd, LOOP_CTL_GET_FREE);

		if (number < 0) return err_set(e, -errno, "find a free loop device");
		fd = open(loop_device_path(nodes_fd, number).text, O_RDWR | O_CLOEXEC);
		if (fd < 0) return err_set(e, -errno, "open loop device %ld", number);
		if (ioctl(fd, LOOP_CONFIGURE, &config) == 0) {
			*ret_number = number;
			*ret_fd = take_fd(&fd);
			return 0;
		}
		if (errno != EBUSY) return err_set(e, -errno, "set up a loop device");
	}
	return err_say(e, -EBUSY, "others took every free loop device");
}

bool loop_device_is_on(int nodes_fd, long number, const struct stat *file)
{
	auto_close int fd = open(loop_device_path(nodes_fd, number).text, O_RDONLY | O_CLOEXEC);
	struct loop_info64 info;

	return fd >= 0 && ioctl(fd, LOOP_GET_STATUS64, &info) == 0 && info.lo_device == file->st_dev &&
	       info.lo_inode == file->st_ino;
}

/*
 * loop_device.h - a file as a block device, for quota_image.c.
 *
 * Where /dev is not the kernel's own, devices beyond the first few have no node: one is made in the directory
 * NODES_FD then.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;
struct stat;

struct loop_device_path {
	char text[64];
};

/* Good while NODES_FD is open. */
struct loop_device_path loop_device_path(int nodes_fd, long number);

/*
 * Puts FILE_FD on a free device, past the page cache where that can be. The device frees itself when nobody
 * has it open any more: the caller closes RET_FD when a mount holds it.
 */
int loop_device_take(int nodes_fd, int file_fd, uint32_t block, long *ret_number, int *ret_fd, struct err *e);

/* Whether the device is on this FILE, and not free or on another by now. */
bool loop_device_is_on(int nodes_fd, long number, const struct stat *file);

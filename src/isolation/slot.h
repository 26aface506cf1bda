/*
 * slot.h - what a sandbox needs from the kernel before anybody asks for it: prepared in the background.
 *
 * A slot is a range of 65,536 host ids. Its kit is made on a work thread (loop_work), costs 1 to 4 ms, and is
 * used once: nothing of a kit is ever shared by two sandboxes.
 */
#pragma once

#include <stdint.h>

struct err;

#define SLOT_IDS 65536u

/* Directories of an image, opened O_PATH, plus the detached trees are made from them. Owned by the keeper. */
struct image {
	int root_fd; /* lower directory of the root overlay */
	int usr_fd;  /* the host's /usr for the `host` image; -1 when the image has its own */
};

struct slot_kit {
	uint32_t base_id;
	int userns_fd;    /* user namespace that maps 0..65535 to base_id..; no process lives in it */
	int netns_fd;     /* private network namespace, lo up, ping and low ports allowed inside */
	int root_tree_fd; /* detached idmapped read-only clone of image->root_fd */
	int usr_tree_fd;  /* the same of image->usr_fd, or -1 */
};

/* May block for milliseconds; call on a work thread. Leaves the calling thread in its own namespaces. */
int slot_kit_make(uint32_t base_id, const struct image *image, struct slot_kit *ret, struct err *e);

/* Closes what it holds; fine on a zeroed-with--1 or half-made kit (see SLOT_KIT_EMPTY). Closing may cost an
 * RCU grace period. */
void slot_kit_done(struct slot_kit *kit);
#define SLOT_KIT_EMPTY ((struct slot_kit){0, -1, -1, -1, -1})

/*
 * Opens DIR_FD (a directory with upper/ and work/ on a file system that can be idmapped) as a detached tree
 * mapped by USERNS_FD: what the sandbox's root writes lands on disk as uid 0, what uid 1000 writes as 1000.
 */
int data_tree_open(int dir_fd, int userns_fd, int *ret_tree_fd, struct err *e);

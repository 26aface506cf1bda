/*
 * quota.h - how much disk a sandbox may use. A back end is chosen once, by what the host can do:
 *
 *     project    a limit on a directory, free of cost: ext4 or XFS, mounted with prjquota
 *     image      an ext4 of its own in a sparse file, on a loop device
 *     tmpfs      memory, charged to the sandbox's memory limit; for small limits; gone with the sandbox
 *     off        a directory like any other: nothing is enforced, and whoever asks is told so
 *
 * All of them limit inodes, too. What the sandbox sees with `df` is what it has (not with `off`).
 *
 * Whatever holds the data besides a directory of the host (a mount, a loop device) is attached nowhere: it
 * lives as long as the descriptors and mounts that use it, also of an agent whose keeper was killed, and
 * leaves nothing to be swept.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;
struct quota;

/*
 * WISH: "auto" or one of the above. "auto" takes project, else image, else off, and never fails for want of
 * one. IMAGES_FD (borrowed) is a directory of ours on the file system of the sandboxes: templates are kept
 * there.
 */
int quota_open(const char *wish, int images_fd, struct quota **ret, struct err *e);
struct quota *quota_free(struct quota *q);

const char *quota_name(const struct quota *q);
bool quota_is_enforced(const struct quota *q);

/* The size of what is made can not be changed afterwards. */
bool quota_is_fixed(const struct quota *q);

/* Why nothing is enforced although it was wished for; NULL: nothing is wrong. */
const char *quota_fault(const struct quota *q);

/*
 * Makes, in the empty directory DIR_FD, a place with upper/ and work/ that holds BYTES at most (0: no limit).
 * *RET_DATA_FD is open in it. As long as it is open, the death of the sandbox does not wait for the disk: see
 * quota_drop(). May block; any thread.
 */
int quota_make(struct quota *q, int dir_fd, uint64_t bytes, int *ret_data_fd, struct err *e);

/*
 * The same for what quota_make() made in DIR_FD for an earlier life: opens it again, whatever back end it is
 * of, and mends what a crash of the host left half written. -EBUSY: that life has not let go of it yet, try
 * again soon; -ENOENT: there is nothing. May block; any thread.
 */
int quota_reopen(struct quota *q, int dir_fd, int *ret_data_fd, struct err *e);

/*
 * For a sandbox that an earlier keeper made in DIR_FD and that lives: what quota_make() gave that one; -1
 * where quota_drop() needs none. May block; any thread.
 */
int quota_hold(struct quota *q, int dir_fd, int *ret_data_fd, struct err *e);

/*
 * The sandbox is dead, and nobody wants what it wrote: what is not on disk yet never will be. DATA_FD (-1 is
 * fine) is still to be closed; that may take as long as freeing all the memory that held it.
 */
void quota_drop(struct quota *q, int dir_fd, int data_fd);

/* Bytes of the host's disk that the sandbox of DIR_FD uses; 0: not known. */
uint64_t quota_used(const struct quota *q, int dir_fd);

/*
 * slots.h - slots with their kits and empty directories, prepared ahead of need on work threads.
 *
 * A prepared slot holds everything a sandbox needs but an agent: its ids, namespaces, trees, and a spare
 * directory that becomes sandboxes/RUN by one rename.
 */
#pragma once

#include <stdint.h>

#include "isolation/slot.h"

struct blocks;
struct err;
struct loop;
struct quota;
struct slots;
struct state;

struct slot {
	uint32_t base_id;
	struct slot_kit kit;
	int data_tree_fd; /* of the disk below, mapped for the slot */
	int disk_fd;      /* what quota_make() opened; as long as the sandbox lives */
	uint64_t disk_bytes;
	char spare[16]; /* name in spare/ */
};

struct slots_events {
	void (*on_ready)(void *ctx);                       /* one more can be taken */
	void (*on_failed)(void *ctx, const struct err *e); /* one that was wanted will not come */
	void *ctx;
};

/* Borrows everything. Prepares TARGET slots, with disks of DISK_BYTES, at once. */
struct slots *slots_new(struct loop *loop, const struct state *state, const struct image *image,
			struct blocks *blocks, struct quota *quota, uint64_t disk_bytes, unsigned target,
			struct slots_events events);

/* Ends preparing and closes what is ready; its directories stay in spare/. Only while !slots_busy(). */
struct slots *slots_free(struct slots *s);

/* No more is prepared from here on. */
void slots_stop(struct slots *s);
unsigned slots_busy(const struct slots *s);

unsigned slots_ready(const struct slots *s);

/* Only when slots_ready(). The caller closes it with slot_close() and gives the ids back with blocks_give().
 */
void slots_take(struct slots *s, struct slot *ret);

/*
 * WAITING sandboxes wait for a slot each: prepares for them, and for TARGET more. -ENOSPC: there is none and
 * none is coming, because this and other servers use all ids.
 */
int slots_refill(struct slots *s, unsigned waiting);

/* Gives SLOT a disk in the empty directory DIR_FD. On a work thread. */
int slot_make_disk(struct slot *slot, struct quota *quota, int dir_fd, uint64_t bytes, struct err *e);

/* Closes the descriptors of a slot that only its birth needs (not DISK_FD); may cost the kernel a grace
 * period: on a work thread. */
void slot_close(struct slot *slot);

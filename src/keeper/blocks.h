/*
 * blocks.h - which host ids are whose: slots of 65,536 ids, shared out among the servers of a host in blocks
 * of 256.
 *
 * Theory of operation: a block is a file DIR/NUMBER. Its lock (flock) says that a server uses it now; its
 * text, the server's state directory, says whose sandboxes may still live in it after that server was killed.
 * So a server takes, in this order: blocks that carry its own name, blocks nobody ever took, and blocks of a
 * server whose state directory holds no sandbox any more. DIR lies in /run: a boot ends all claims together
 * with all sandboxes.
 */
#pragma once

#include <stdint.h>

struct blocks;
struct err;

#define BLOCKS_DIR  "/run/tombolo/ids"
#define BLOCK_SLOTS 256u
#define BLOCK_FIRST 16u  /* ids from 1 << 28: far above those of people, packages and subuid files */
#define BLOCK_LAST  254u /* the last block of the number space holds (uid_t)-1 */

/* Takes the blocks that carry OWNER's name already. Makes DIR. */
int blocks_open(const char *dir, const char *owner, struct blocks **ret, struct err *e);

/* Locks end; a block whose every slot is free loses its name, too. */
struct blocks *blocks_free(struct blocks *b);

/* A free slot's first id; claims a block when there is none. -ENOSPC: other servers have them all. */
int blocks_take(struct blocks *b, uint32_t *ret_base_id);

/* This very slot. -ENOENT when its block is not ours, -EBUSY when it is taken. */
int blocks_take_this(struct blocks *b, uint32_t base_id);
void blocks_give(struct blocks *b, uint32_t base_id);

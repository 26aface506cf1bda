/*
 * syncing.h - makes records survive a crash of the host, without anybody waiting for the disk.
 *
 * A disk that one sandbox keeps busy makes every fsync take seconds. So they run on their own: few at once,
 * so that the work threads stay free for what somebody waits for, and tied to no sandbox, so that none's
 * removal waits for them. When too many wait already, the oldest is given up: it guards against no more than
 * a power cut within seconds.
 */
#pragma once

struct loop;
struct syncing;

struct syncing *syncing_new(struct loop *loop);

/* Takes DIR_FD, a sandbox's directory; -1 is fine. */
void syncing_add(struct syncing *s, int dir_fd);

/* archive.h - the channels that pack and unpack /workspace: open_pack, open_unpack. */
#pragma once

struct frame;
struct peer;

/*
 * FD is the program tombolo-tar, opened by whoever started us: images need not have it, nor anything like it.
 * Once, before the first clone. Without a call there are no archives.
 */
void archive_init(int fd);

/* As channel_opener. */
int pack_open(struct peer *p, const struct frame *f);
int unpack_open(struct peer *p, const struct frame *f);

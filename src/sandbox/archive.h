/*
 * archive.h - packing and unpacking /workspace of a sandbox. The bytes go through a pipe between the caller
 * and the archiver inside, which nobody else touches; here it is made, and the archiver's end is told.
 */
#pragma once

#include "sandbox/operations.h"

#define ARCHIVE_WORDS_MAX 1024 /* of what the archiver says */

struct archive_operation;

/*
 * The one callback. END_EXITED: the archiver ended; with exit code 0 (well) or 1 (well, with a warning) its
 * work is whole; with any other an archive that was packed is not, and nothing was unpacked. TEXT is its last
 * line, a stranger's words. The pipe may still hold bytes.
 */
typedef void on_archive_end(void *ctx, const struct operation_end *end);

/*
 * *RET_FD is the caller's end of the pipe, to be read or written, non-blocking, and to be closed by the
 * caller: for an unpacker that is the end of the archive. EXCLUDES: see archive/exclude.h. -E2BIG: too many
 * of them; -EMFILE: as in operations.h; or why there is no pipe.
 */
int archive_pack(struct agent_link *link, uint32_t uid, const char *const *excludes, uint32_t exclude_count,
		 on_archive_end *on_end, void *ctx, struct archive_operation **ret, int *ret_fd);
int archive_unpack(struct agent_link *link, uint32_t uid, on_archive_end *on_end, void *ctx,
		   struct archive_operation **ret, int *ret_fd);

/*
 * Before the end of what is written to FD, an unpacker's pipe: whatever it has got, also a whole archive,
 * leaves the old tree as it was. FD is still the caller's to close.
 */
void archive_break_off(struct archive_operation *op, int fd);

/*
 * Nobody waits any more; close the pipe, too. A packer then ends by itself. To an unpacker it looks like an
 * archive that was cut, so it clears away what it has made and leaves the old tree as it was. Returns NULL;
 * NULL is fine.
 */
struct archive_operation *archive_drop(struct archive_operation *op);

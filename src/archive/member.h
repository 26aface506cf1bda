/* member.h - the name that an archive gives to a member, judged: pure, over a stranger's bytes. */
#pragma once

#include "base/buf.h"

/*
 * Puts NAME, as a path below the root, into OUT: "a/b", without empty and "." parts; "" for the root itself.
 * -EPERM: it is absolute or holds a ".." part. -ENAMETOOLONG: a part no file can have, or more than OUT
 * takes.
 */
int member_path(const char *name, struct buf *out);

/* The last part of PATH, which is the text of OUT; its directory is what stands before, without the slash. */
const char *member_base(const struct buf *path, size_t *ret_dir_len);

/*
 * trash.h - trees on their way out. Putting one in the trash is a rename; a thread that only takes what time
 * nobody else wants deletes it. It follows no links and takes no path of anybody: it walks by descriptors.
 */
#pragma once

#include <stdint.h>

struct err;
struct trash;

/* Borrows TRASH_FD. What lies there already is deleted, too. */
int trash_new(int trash_fd, struct trash **ret, struct err *e);

/* Moves DIR_FD/NAME into the trash. Any thread. 0, also when there is nothing of that name. */
int trash_put(struct trash *t, int dir_fd, const char *name);

/* Closes FD when there is time: for what takes its file system with it. Any thread. */
void trash_close(struct trash *t, int fd);

/* Everything that is in DIR_FD. */
void trash_put_all(struct trash *t, int dir_fd);

/* Ends the thread: when the trash is empty, or at the latest after MS milliseconds; what is left waits for
 * the next start. */
struct trash *trash_free(struct trash *t, uint64_t ms);

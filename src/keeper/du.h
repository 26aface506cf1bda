/*
 * du.h - how much the trees of sandboxes hold, where nothing else counts it (quota `off`): a thread of the
 * lowest priority walks them, again and again, and rests longer than it walks.
 */
#pragma once

#include <stdint.h>

struct du;
struct err;

/* Borrows SANDBOXES_FD, the directory of state.h. */
int du_new(int sandboxes_fd, struct du **ret, struct err *e);

/* NULL is fine. Waits for the thread, which heeds it at once. */
struct du *du_free(struct du *d);

/* Bytes of disk that the sandbox RUN held when it was last looked at; 0: not yet. NULL is fine. */
uint64_t du_bytes(struct du *d, const char *run);

/* pty.h - a pseudo terminal of the sandbox's own devpts. */
#pragma once

#include <stdint.h>

struct err;

#define PTY_COLS_DEFAULT 80
#define PTY_ROWS_DEFAULT 24
#define PTY_SIZE_MAX     1000 /* columns or rows */

/*
 * Both ends, the slave owned by UID. The master does not block. The size is set before anybody can look.
 * 0 or -errno.
 */
int pty_open(uint32_t uid, uint16_t cols, uint16_t rows, int *ret_master_fd, int *ret_slave_fd,
	     struct err *e);

/* The foreground program is told, also when the size is what it was: somebody new looks and wants it drawn.
 */
void pty_resize(int master_fd, uint16_t cols, uint16_t rows);

/*
 * terminal.h - the channel that starts a program on a terminal, or attaches to one of that name:
 * open_terminal.
 *
 * What it then is: a follow (follow.h) that is waited for and takes keys.
 */
#pragma once

struct frame;
struct peer;

/* As channel_opener. */
int terminal_open(struct peer *p, const struct frame *f);

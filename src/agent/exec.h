/* exec.h - the channel that runs a command: open_exec. */
#pragma once

struct frame;
struct peer;

/* As channel_opener. */
int exec_open(struct peer *p, const struct frame *f);

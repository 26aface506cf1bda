/* exec.h - the channels that run commands and that tell about processes: open_exec, open_list. */
#pragma once

struct frame;
struct peer;

void exec_init(void);

/* As channel_opener. */
int exec_open(struct peer *p, const struct frame *f);
int exec_list_open(struct peer *p, const struct frame *f);

/* process_signal.h - the channel that signals a process or terminal by its name: open_signal. */
#pragma once

struct frame;
struct peer;

/* As channel_opener. */
int signal_open(struct peer *p, const struct frame *f);

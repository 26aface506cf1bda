/* file.h - the channels that hand out files of the sandbox: open_read, open_write. */
#pragma once

struct frame;
struct peer;

/* As channel_opener. */
int file_read_open(struct peer *p, const struct frame *f);
int file_write_open(struct peer *p, const struct frame *f);

/* session_open.h - the channel that makes and ends sessions. */
#pragma once

struct frame;
struct peer;

/* As channel_opener, of open_session. */
int session_open(struct peer *p, const struct frame *f);

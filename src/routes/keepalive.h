/* keepalive.h - inside the room: a comment on an event stream that has been silent for long (DESIGN 6). */
#pragma once

#include <stdint.h>

struct request;

struct keepalive {
	struct request *rq;
	struct timer *timer; /* NULL: not wanted */
	unsigned limit_ms;
	uint64_t last_ms; /* of the newest event */
};

/* K is embedded and all zero. LIMIT_MS 0: never a comment. */
void keepalive_begin(struct keepalive *k, struct request *rq, unsigned limit_ms);
void keepalive_done(struct keepalive *k);

/* An event was written. */
void keepalive_note(struct keepalive *k);

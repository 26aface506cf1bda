/*
 * front.h - the keeper's end of the front: starts it as an unprivileged user with the listening sockets,
 * tells it what becomes of sandboxes, and starts another when it dies. A new front is told of every living
 * sandbox before it serves.
 *
 * Trust: the front talks to strangers all day. Its messages are short fields that are judged again
 * (requests.h); a front that breaks the protocol is replaced.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/message.h"

struct err;
struct frame;
struct front;
struct keeper;
struct sandbox;

struct front_events {
	void (*on_started)(struct keeper *k); /* a new one: it must hear of every sandbox now */
	int (*on_request)(struct keeper *k, const struct frame *f); /* -EPROTO: it is replaced */
};

/* The front is gone and is not to be started again. */
typedef void on_front_stopped(void *ctx);

struct front *front_new(struct keeper *k, struct front_events events);

/* Ends it at once. */
struct front *front_free(struct front *f);

/* Starts it. Later deaths are our business; this first failure is the caller's. */
int front_start(struct front *f, struct err *e);

/* Asks it to end (SIGTERM), insists after PATIENCE_MS, and starts no other. ON_STOPPED comes from the loop.
 */
void front_stop(struct front *f, uint64_t patience_ms, on_front_stopped *on_stopped);

/* To whichever front there is; with none, nothing is lost: the next one is told everything at its start. */
void front_attached(struct front *f, const struct sandbox *s, int link_fd);
void front_asleep(struct front *f, const struct sandbox *s);
void front_refused(struct front *f, const char *id, enum refusal why, const char *text);
void front_gone(struct front *f, const char *id, enum gone_why why, const char *text);
void front_usage(struct front *f, const struct msg_usage *usage);
void front_parked(struct front *f, unsigned ready, bool full);

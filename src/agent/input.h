/*
 * input.h - bytes on their way to a program: a bounded queue in front of a pipe or terminal that may be full.
 *
 * Several may write (the clients of a terminal): bytes go on in the order in which they came, and whoever
 * sent them is told when they are taken. Whoever leaves keeps its bytes in the queue and hears no more of
 * them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/reactor.h"
#include "base/buf.h"

/* Embedded in whoever sends input. */
struct input_source {
	/* BYTES were passed on, or dropped when nobody reads them any more. */
	void (*on_taken)(struct input_source *s, size_t bytes);
};

struct input_part;

struct input {
	int fd; /* non-blocking; -1: closed, or there never was one */
	struct watch watch;
	struct buf queue;
	struct input_part *first, **last; /* whose bytes lie in the queue */
	bool ending;                      /* close it once the queue is empty */
	unsigned failures;                /* to write, since the last success */
	bool lost;                        /* some could not be written, though somebody read */
};

/* Holds CAP bytes at most. Set FD when there is one; it is ours from then on. */
void input_init(struct input *in, size_t cap);

/* -ENOBUFS: the queue is full; nothing was taken. After the end, bytes are dropped. */
int input_add(struct input *in, struct input_source *s, const void *bytes, size_t len);

/* No more will come: closes it after what is in the queue. */
void input_end(struct input *in);

/* At once; what waits is dropped, and nobody is told. */
void input_close(struct input *in);

/* S goes away. */
void input_forget(struct input *in, const struct input_source *s);

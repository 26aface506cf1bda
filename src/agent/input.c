#include "agent/input.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

#define WRITE_TRIES 3 /* when each gives an error that does not say that nobody reads */

struct input_part {
	struct input_part *next;
	struct input_source *source; /* NULL: it left */
	size_t len;
};

static void on_writable(struct watch *w, uint32_t events);

void input_init(struct input *in, size_t cap)
{
	*in = (struct input){
		.fd = -1, .watch = {.fd = -1, .on_event = on_writable}, .queue = buf_with_cap(cap)};
	in->last = &in->first;
}

static void part_remove_first(struct input *in)
{
	struct input_part *part = in->first;

	in->first = part->next;
	if (!in->first) in->last = &in->first;
	free(part);
}

void input_close(struct input *in)
{
	/* A terminal's descriptor has a copy, so closing alone would not take it out of the reactor. */
	watch_stop(&in->watch);
	in->fd = fd_close(in->fd);
	buf_reset(&in->queue);
	while (in->first)
		part_remove_first(in);
}

/* LEN bytes left the queue. The callbacks only count. */
static void taken(struct input *in, size_t len)
{
	while (len) {
		struct input_part *part = in->first;
		size_t n = MIN(len, part->len);

		part->len -= n;
		len -= n;
		if (part->source) part->source->on_taken(part->source, n);
		if (!part->len) part_remove_first(in);
	}
}

/* Nobody reads any more: what waits is dropped, and so will be what comes. */
static void lose(struct input *in)
{
	size_t waiting = in->queue.len;

	in->ending = true;
	buf_reset(&in->queue);
	taken(in, waiting);
	input_close(in);
}

/* Bytes written; -EAGAIN: not now; negative: nobody reads. */
static ssize_t write_once(struct input *in, const void *bytes, size_t len)
{
	ssize_t n;

	do
		n = write(in->fd, bytes, len);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* Whether what ERROR prevented may work later. */
static bool is_worth_a_try(struct input *in, ssize_t error)
{
	if (error == -EAGAIN) return true;
	if (error != -EPIPE) in->lost = ++in->failures == WRITE_TRIES;
	return error != -EPIPE && !in->lost;
}

static void write_queue(struct input *in)
{
	while (in->queue.len) {
		ssize_t n = write_once(in, in->queue.data, in->queue.len);

		if (n < 0 && is_worth_a_try(in, n)) {
			if (in->watch.fd < 0) watch_insist(&in->watch, in->fd, EPOLLOUT);
			return;
		}
		if (n < 0) {
			lose(in);
			return;
		}
		in->failures = 0;
		buf_take(&in->queue, (size_t)n);
		taken(in, (size_t)n);
	}
	watch_stop(&in->watch);
	if (in->ending) input_close(in);
	else buf_reset(&in->queue);
}

static void on_writable(struct watch *w, uint32_t events)
{
	(void)events;
	write_queue(container_of(w, struct input, watch));
}

static void part_add(struct input *in, struct input_source *s, size_t len)
{
	struct input_part *part = mem_new(sizeof *part);

	part->source = s;
	part->len = len;
	*in->last = part;
	in->last = &part->next;
}

int input_add(struct input *in, struct input_source *s, const void *bytes, size_t len)
{
	ssize_t n = 0;

	if (in->fd < 0 || in->ending) {
		s->on_taken(s, len);
		return 0;
	}
	/* A key is written as it comes; only what does not fit is kept. */
	if (!in->queue.len) n = write_once(in, bytes, len);
	if (n > 0) s->on_taken(s, (size_t)n);
	if ((size_t)MAX(n, 0) == len) return 0;
	n = MAX(n, 0);
	if (buf_add(&in->queue, (const char *)bytes + n, len - (size_t)n) < 0) return -ENOBUFS;
	part_add(in, s, len - (size_t)n);
	write_queue(in);
	return 0;
}

void input_end(struct input *in)
{
	in->ending = true;
	if (in->fd >= 0 && !in->queue.len) input_close(in);
}

void input_forget(struct input *in, const struct input_source *s)
{
	for (struct input_part *part = in->first; part; part = part->next) {
		if (part->source == s) part->source = NULL;
	}
}

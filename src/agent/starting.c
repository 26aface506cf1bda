#include "agent/starting.h"

#include <errno.h>

#include "agent/grant.h"
#include "base/mem.h"

#define WAITING_BYTES_MAX ((size_t)64 << 20)

static struct start_wait *waiting, **last_waiting = &waiting; /* in order */
static size_t waiting_bytes; /* of their openings: ours, not charged to the sandbox */

static void enqueue(struct start_wait *w, const struct frame *f)
{
	if (waiting_bytes + f->len > WAITING_BYTES_MAX) {
		w->on_refused(w, -EAGAIN, "too many commands wait for the sandbox's control groups");
		return;
	}
	uint8_t *copy = mem_new(f->len + 1);
	memcpy(copy, f->payload, f->len);
	w->opening = *f;
	w->opening.payload = copy;
	w->next = NULL;
	*last_waiting = w;
	last_waiting = &w->next;
	waiting_bytes += f->len;
}

/* The opening is the caller's to free from here on; NULL: it did not wait. */
static const uint8_t *dequeue(struct start_wait *w)
{
	struct start_wait **at = &waiting;

	while (*at && *at != w)
		at = &(*at)->next;
	if (!*at) return NULL;
	*at = w->next;
	if (!w->next) last_waiting = at;
	waiting_bytes -= w->opening.len;
	return w->opening.payload;
}

static void on_decided(int error, const char *text)
{
	while (waiting) {
		struct start_wait *w = waiting;
		struct frame f = w->opening;

		(void)dequeue(w);
		if (error) w->on_refused(w, error, text);
		else w->on_ready(w, &f);
		free((void *)f.payload);
	}
}

void starting_init(void)
{
	grant_init(on_decided);
}

void start_wait(struct start_wait *w, const struct frame *f)
{
	if (grant_want() == 0) w->on_ready(w, f);
	else enqueue(w, f);
}

void start_cancel(struct start_wait *w)
{
	free((void *)dequeue(w));
}

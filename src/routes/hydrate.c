/*
 * hydrate.c - POST /v1/sandbox/:id/hydrate: the body, a tar archive of any size, into the pipe of the
 * unpacker inside.
 *
 * The unpacker stages what comes and puts it in its place after the end mark of the archive. So a body that
 * is too large, that breaks off, or that is no archive leaves the old tree as it was: the unpacker is told,
 * and when we die ourselves it sees an archive without its end mark. The answer comes only when the unpacker
 * has ended. Memory stays flat: what the unpacker does not take pauses the body, which stops the client.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "http/http.h"
#include "loop/loop.h"
#include "routes/answers.h"
#include "routes/archive_failure.h"
#include "routes/handlers.h"
#include "routes/request.h"
#include "sandbox/archive.h"

#define WAITING_CAP ((size_t)1 << 20) /* above any piece of a body */

struct hydrate {
	struct request *rq;
	struct archive_operation *unpack;
	int fd; /* of the pipe; -1: none, or all is said */
	struct watch *watch;
	struct buf waiting; /* what the pipe did not take; the body is paused */
	uint64_t received;
	bool begun; /* the sandbox was asked for: by the first byte, for an empty body needs none */
};

static void close_pipe(struct hydrate *h)
{
	h->watch = watch_free(h->watch);
	h->fd = fd_close(h->fd);
}

static void hydrate_free(struct hydrate *h)
{
	/* Before the body's end: the unpacker must not take ours for it. */
	if (h->unpack && h->fd >= 0) archive_break_off(take_ptr(h->unpack), h->fd);
	close_pipe(h);
	archive_drop(h->unpack);
	buf_done(&h->waiting);
	free(h);
}

/* Before the answer. */
static struct request *hydrate_done(void *ctx)
{
	struct hydrate *h = ctx;
	struct request *rq = h->rq;

	hydrate_free(h);
	return request_settled(rq);
}

static void on_gone(struct exchange *x, void *ctx)
{
	struct hydrate *h = ctx;

	(void)x;
	hydrate_free(h);
}

static void answer_size(struct exchange *x, uint64_t bytes, uint64_t limit)
{
	char message[128];

	(void)snprintf(message, sizeof message,
		       "tar payload too large: %" PRIu64 " bytes exceeds the %" PRIu64 "-byte limit", bytes,
		       limit);
	answer_invalid(x, message);
}

static void fail(struct hydrate *h, const char *why)
{
	http_reply_error(hydrate_done(h)->x, 502, "workspace_archive_write_error", why);
}

/* ---- the way to the unpacker ---- */

static void on_end(void *ctx, const struct operation_end *end);
static void on_writable(void *ctx, unsigned events);

static void unpack(void *ctx, struct agent_link *link)
{
	struct hydrate *h = ctx;
	int r = archive_unpack(link, h->rq->routes->settings.uid, on_end, h, &h->unpack, &h->fd);

	if (r < 0) {
		fail(h, r == -EMFILE ? "hydrate failed: too much goes on in this sandbox"
				     : "hydrate failed: no pipe");
		return;
	}
	h->watch = watch_new(h->rq->routes->loop, h->fd, on_writable, h);
	watch_want(h->watch, WATCH_OUT);
}

/* ---- the body ---- */

/* As much as the pipe takes. How much that was. */
static size_t write_some(struct hydrate *h, const char *bytes, size_t len)
{
	size_t done = 0;

	while (h->fd >= 0 && done < len) {
		ssize_t n = write(h->fd, bytes + done, len - done);

		if (n > 0) done += (size_t)n;
		else if (errno == EAGAIN) break;
		else if (errno != EINTR) close_pipe(h); /* the unpacker is gone; its end tells why */
	}
	return h->fd < 0 ? len : done;
}

static bool on_piece(struct exchange *x, const void *bytes, size_t len, void *ctx)
{
	struct hydrate *h = ctx;
	uint64_t limit = h->rq->routes->settings.hydrate_limit;
	size_t done;

	(void)x;
	h->received += len;
	if (limit && h->received > limit) {
		uint64_t received = h->received;

		answer_size(hydrate_done(h)->x, received, limit);
		return false;
	}
	if (!h->begun) {
		h->begun = true;
		(void)buf_add(&h->waiting, bytes, len); /* the cap is larger than any piece */
		request_sandbox(h->rq, unpack, hydrate_done, h);
		return false;
	}
	done = write_some(h, bytes, len);
	if (done == len) return true;
	(void)buf_add(&h->waiting, (const char *)bytes + done, len - done);
	watch_want(h->watch, WATCH_OUT);
	return false;
}

static void on_writable(void *ctx, unsigned events)
{
	struct hydrate *h = ctx;

	(void)events;
	buf_take(&h->waiting, write_some(h, h->waiting.data, h->waiting.len));
	if (h->waiting.len) return;
	if (h->watch) watch_want(h->watch, 0);
	http_body_resume(h->rq->x);
}

static void on_body_end(struct exchange *x, void *ctx)
{
	struct hydrate *h = ctx;

	(void)x;
	close_pipe(h);
	if (!h->received) answer_invalid(hydrate_done(h)->x, "Empty tar payload");
}

static const struct http_body_sink body_sink = {.on_piece = on_piece, .on_end = on_body_end};

/* ---- what the unpacker says ---- */

static void on_end(void *ctx, const struct operation_end *end)
{
	struct hydrate *h = ctx;
	char message[ARCHIVE_WORDS_MAX + 64];

	h->unpack = NULL;
	if (end->reason == END_EXITED && end->code <= 1) {
		answer_ok(hydrate_done(h)->x);
		return;
	}
	archive_failure(message, sizeof message, "tar extract", "hydrate", end);
	fail(h, message);
}

void handle_hydrate(struct request *rq)
{
	uint64_t limit = rq->routes->settings.hydrate_limit;
	int64_t announced = http_content_length(rq->x);
	struct hydrate *h;

	if (!http_has_body(rq->x)) {
		answer_invalid(rq->x, "Empty tar payload");
		return;
	}
	if (limit && announced > 0 && (uint64_t)announced > limit) {
		answer_size(rq->x, (uint64_t)announced, limit);
		return;
	}
	h = mem_new(sizeof *h);
	h->rq = rq;
	h->fd = -1;
	h->waiting = buf_with_cap(WAITING_CAP);
	http_on_gone(rq->x, on_gone, h);
	http_body_stream(rq->x, &body_sink, h);
}

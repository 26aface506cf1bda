#include "routes/keepalive.h"

#include "base/clock.h"
#include "http/http.h"
#include "http/sse.h"
#include "loop/loop.h"
#include "routes/request.h"

static void on_due(void *ctx)
{
	struct keepalive *k = ctx;
	uint64_t silent = clock_ms() - k->last_ms;

	if (silent >= k->limit_ms) {
		/* A client that does not read has enough to read. */
		if (http_stream_pending(k->rq->x) == 0) sse_comment(k->rq->x, "keepalive");
		silent = 0;
		k->last_ms = clock_ms();
	}
	timer_set(k->timer, k->limit_ms - silent);
}

void keepalive_begin(struct keepalive *k, struct request *rq, unsigned limit_ms)
{
	if (!limit_ms) return;
	*k = (struct keepalive){.rq = rq, .limit_ms = limit_ms, .last_ms = clock_ms()};
	k->timer = timer_new(rq->routes->loop, on_due, k);
	timer_set(k->timer, limit_ms);
}

void keepalive_done(struct keepalive *k)
{
	k->timer = timer_free(k->timer);
}

void keepalive_note(struct keepalive *k)
{
	if (k->timer) k->last_ms = clock_ms();
}

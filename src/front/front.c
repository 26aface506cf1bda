#include "front/front.h"

#include <signal.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "loop/loop.h"
#include "sandbox/registry.h"

#define ISSUED_MAX         16384 /* ids of which we remember that they were handed out */
#define PATIENCE_STOP_MS   1500  /* for requests that are under way at a SIGTERM; the keeper gives us 3 s */
#define PATIENCE_ORPHAN_MS 60000 /* and when the keeper is gone: nobody waits for our end */
#define PATIENCE_LAST_MS   500   /* for the words of farewell to reach the kernel */

struct front {
	const struct front_settings *settings;
	struct loop *loop;
	struct sandboxes *sandboxes;
	struct pool *pool;
	struct routes *routes;
	struct http_server *server;
	struct listen_signal *on_term, *on_int;
	struct timer *patience;
	bool ending, farewell;
	int status;
};

/* ---- the end ---- */

static void on_idle(void *ctx)
{
	struct front *f = ctx;

	loop_stop(f->loop);
}

static void on_patience(void *ctx)
{
	struct front *f = ctx;

	if (f->farewell) {
		loop_stop(f->loop);
		return;
	}
	f->farewell = true;
	timer_set(f->patience, PATIENCE_LAST_MS);
	sandboxes_leave(f->sandboxes, "the server ends");
}

static void end(struct front *f, const char *why, uint64_t patience_ms)
{
	if (f->ending) return;
	f->ending = true;
	log_event(LOG_INFO, "front_ending", "why", why, NULL);
	timer_set(f->patience, patience_ms);
	if (f->server) http_server_drain(f->server, on_idle, f);
	else loop_stop(f->loop);
}

static void on_signal(void *ctx)
{
	end(ctx, "signal", PATIENCE_STOP_MS);
}

static void on_keeper_lost(void *ctx)
{
	end(ctx, "keeper_lost", PATIENCE_ORPHAN_MS);
}

/* ---- the log of requests ---- */

/* Never the query string: it may hold a key. */
static void on_finished(struct exchange *x, void *ctx)
{
	(void)ctx;
	log_event(LOG_INFO, "request", "method", http_method(x), "path", http_path(x), "status",
		  LOG_U(http_status(x)), "bytes", LOG_U(http_bytes_sent(x)), "ms", LOG_U(http_duration_ms(x)),
		  "id", routes_sandbox_of(x), NULL);
}

/* ---- the begin ---- */

static void on_request(struct exchange *x, void *ctx)
{
	struct front *f = ctx;

	routes_on_request(x, f->routes);
}

static void on_ready(void *ctx)
{
	static const struct http_callbacks callbacks = {.on_request = on_request, .on_finished = on_finished};
	struct front *f = ctx;
	struct err e = ERR_NONE;

	if (f->server || f->ending) return;
	if (http_server_new(f->loop, f->settings->listen_fds, f->settings->listen_count, &f->settings->http,
			    &callbacks, f, &f->server, &e) < 0) {
		log_event(LOG_ERROR, "front_failed", "why", e.text, NULL);
		f->status = 1;
		loop_stop(f->loop);
		return;
	}
	pool_told_limit(f->pool, sandboxes_limit(f->sandboxes));
	pool_prime(f->pool);
	log_event(LOG_INFO, "front_serving", "sandboxes", LOG_U(sandboxes_count(f->sandboxes)), NULL);
}

/* ---- the pool ---- */

static void on_parked(void *ctx, unsigned ready, bool full)
{
	struct front *f = ctx;

	pool_told(f->pool, ready, full);
}

static void on_pool_wish(void *ctx, unsigned want)
{
	struct front *f = ctx;

	sandboxes_park(f->sandboxes, want);
}

static unsigned count_assigned(void *ctx)
{
	const struct front *f = ctx;

	return sandboxes_count(f->sandboxes);
}

static const struct pool_events pool_events = {.on_wish = on_pool_wish, .assigned = count_assigned};

static const struct sandboxes_callbacks callbacks = {
	.on_ready = on_ready, .on_keeper_lost = on_keeper_lost, .on_parked = on_parked};

int front_new(const struct front_settings *settings, struct front **ret, struct err *e)
{
	struct front *f = mem_new(sizeof *f);
	int r = loop_new(&f->loop, e);

	if (r < 0) {
		free(f);
		return r;
	}
	f->settings = settings;
	f->patience = timer_new(f->loop, on_patience, f);
	f->on_term = signal_new(f->loop, SIGTERM, on_signal, f);
	f->on_int = signal_new(f->loop, SIGINT, on_signal, f);
	f->sandboxes = sandboxes_new(f->loop, settings->control_fd, ISSUED_MAX, &callbacks, f);
	sandboxes_sleep_after(f->sandboxes, settings->sleep_after_ms);
	f->pool = pool_new(f->loop, &settings->pool, &pool_events, f);
	f->routes = routes_new(f->loop, f->sandboxes, f->pool, &settings->routes);
	*ret = f;
	return 0;
}

int front_run(struct front *f)
{
	loop_run(f->loop);
	return f->status;
}

struct front *front_free(struct front *f)
{
	if (!f) return NULL;
	http_server_free(f->server); /* handlers hear on_gone, and let go of the sandboxes */
	routes_free(f->routes);
	pool_free(f->pool);
	sandboxes_free(f->sandboxes);
	signal_free(f->on_term);
	signal_free(f->on_int);
	timer_free(f->patience);
	loop_free(f->loop);
	free(f);
	return NULL;
}

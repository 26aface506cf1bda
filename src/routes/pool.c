/* pool.c - /v1/pool/: the sandboxes that are made ahead of need. */
#include "sandbox/pool.h"

#include "routes/answers.h"
#include "routes/handlers.h"
#include "routes/request.h"

/* Two settings came with the stable dialect and went with it. */
static bool tells_all_settings(enum profile profile)
{
	return profile == PROFILE_UNION || profile == PROFILE_STABLE;
}

void handle_pool_stats(struct request *rq)
{
	const struct pool_policy *policy = pool_policy(rq->routes->pool);
	struct pool_stats stats = pool_stats(rq->routes->pool);
	json_t *config = json_pack("{s:I, s:I}", "warmTarget", (json_int_t)policy->target, "refreshInterval",
				   (json_int_t)policy->refresh_ms);

	if (tells_all_settings(rq->profile)) {
		json_object_set_new(config, "maxInstances", json_integer(policy->max_instances));
		json_object_set_new(config, "scaleBatchSize", json_integer(policy->batch));
	}
	answer_json(rq->x, 200,
		    json_pack("{s:I, s:I, s:I, s:o, s:o}", "warm", (json_int_t)stats.warm, "assigned",
			      (json_int_t)stats.assigned, "total", (json_int_t)stats.warm + stats.assigned,
			      "config", config, "maxInstances",
			      stats.limit ? json_integer(stats.limit) : json_null()));
}

void handle_pool_prime(struct request *rq)
{
	pool_prime(rq->routes->pool);
	answer_ok(rq->x);
}

void handle_pool_shutdown(struct request *rq)
{
	pool_shutdown(rq->routes->pool);
	answer_ok(rq->x);
}

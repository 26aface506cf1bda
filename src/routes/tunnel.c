/* tunnel.c - POST and DELETE /tunnel/:port. */
#include "routes/answers.h"
#include "routes/handlers.h"
#include "routes/request.h"
#include "routes/tunnel_request.h"

static bool port_is_fine(struct request *rq)
{
	uint16_t port;

	if (tunnel_port_parse(rq->match.part, rq->match.part_len, &port)) return true;
	answer_invalid(rq->x, "Invalid port");
	return false;
}

static void on_body(struct exchange *x, const char *body, size_t len, void *ctx)
{
	struct request *rq = ctx;
	char name[TUNNEL_NAME_MAX + 1];
	const char *fault;

	if (!body) {
		answer_too_large(x, "JSON body too large", len, rq->routes->settings.json_limit);
		return;
	}
	fault = tunnel_body_parse(body, len, name);
	if (fault) answer_invalid(x, fault);
	else
		http_reply_error(x, 502, "tunnel_error",
				 "tunnel failed: tunnels are not available in this version");
}

void handle_tunnel_create(struct request *rq)
{
	if (!port_is_fine(rq)) return;
	http_body_collect(rq->x, rq->routes->settings.json_limit, on_body, rq);
}

/* There are none. */
void handle_tunnel_delete(struct request *rq)
{
	if (port_is_fine(rq)) answer_nothing(rq->x);
}

/* handlers.h - inside the room: the handlers that routes.def names. */
#pragma once

struct request;

#define ROUTE(method, pattern, handler, ...) void handle_##handler(struct request *rq);
#include "routes/routes.def"

/* tunnel_request.h - POST and DELETE /tunnel/:port (API.md 3.17): judged in the contract's order. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TUNNEL_NAME_MAX 63

/* PORT as it stands in the path, still percent-encoded. */
bool tunnel_port_parse(const char *port, size_t len, uint16_t *ret);

/* What is wrong with a body, for a 400; NULL: nothing, and NAME is the tunnel's, "" for one without. */
const char *tunnel_body_parse(const char *body, size_t len, char name[TUNNEL_NAME_MAX + 1]);

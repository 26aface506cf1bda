/* openapi.h - inside the room: what the OpenAPI routes keep between requests. */
#pragma once

struct openapi;

struct openapi *openapi_new(void);
struct openapi *openapi_free(struct openapi *o);

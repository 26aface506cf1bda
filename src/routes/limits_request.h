/*
 * limits_request.h - inside the room: {"memory_mb":512, "pids":256, "cpu":0.5, "disk_mb":4096} of a POST
 * /v1/sandbox, each in place of what the instance type says. Pure.
 */
#pragma once

#include <jansson.h>

#include "isolation/limits.h"

#define LIMITS_REQUEST_WRONG 160

/* JSON may be NULL: all are 0. -EINVAL: WRONG is a sentence for the client. */
int limits_request(const json_t *json, struct limits *ret, char wrong[LIMITS_REQUEST_WRONG]);

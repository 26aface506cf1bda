/*
 * end_reason.h - inside the room: why a command, process or terminal ended, as further keys of its last
 * event: `reason`, `signal`, `detail`, and, where a person can act, `hint`.
 */
#pragma once

#include <jansson.h>

#include "sandbox/operations.h"

/* Adds to JSON, an object, what END says; keys that do not apply are left out. */
void end_reason_add(json_t *json, const struct operation_end *end);

/* For events whose shape the contract fixes: the same, without `signal`, and only when a limit was met. */
void end_reason_add_of_limit(json_t *json, const struct operation_end *end);

/* json_body.h - inside the room: the body of a JSON route. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

/*
 * NULL: "Invalid JSON body". A byte order mark is skipped. What is no object has no fields, so every getter
 * of jansson finds nothing in it. NUL characters are let in, so that those who may not have one can say so.
 */
json_t *json_body_parse(const char *body, size_t len);

bool json_has_nul(const json_t *string);

/* A string of at least one character. */
bool json_is_filled(const json_t *value);

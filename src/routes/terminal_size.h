/* terminal_size.h - columns and rows, as queries, bodies and control messages give them. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#define TERMINAL_SIDE_MAX 1000 /* more is taken for this */

enum size_verdict { SIZE_ABSENT, SIZE_GIVEN, SIZE_WRONG };

/*
 * Of /pty (API 3.12): what is empty is absent, any other number is brought into 1 to TERMINAL_SIDE_MAX, and
 * 0 is absent. RET is set for SIZE_GIVEN only, here and below.
 */
enum size_verdict size_of_pty(const char *query, const char *name, uint16_t *ret);

/* Of /connect (API 3.26): a positive whole number, or wrong. */
enum size_verdict size_of_connect(const char *query, const char *name, uint16_t *ret);

/* Of a JSON value, NULL for none: a positive whole number, or wrong. */
enum size_verdict size_of_json(const json_t *value, uint16_t *ret);

/* The same, but fractions are cut: of a control message on /pty. */
enum size_verdict size_of_loose_json(const json_t *value, uint16_t *ret);

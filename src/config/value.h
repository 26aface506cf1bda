/* value.h - texts of numbers, sizes, times and truths, and back. Inside the room. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* True when TEXT is such a value. */
bool value_bool(const char *text, bool *ret);
bool value_count(const char *text, uint64_t *ret);
bool value_bytes(const char *text, uint64_t *ret);
bool value_millis(const char *text, uint64_t *ret);
bool value_seconds(const char *text, uint64_t *ret); /* milliseconds, but a number alone means seconds */

/* Whether TEXT is one of the words of ALLOWED, "a|b|c". */
bool value_is_word_of(const char *text, const char *allowed);

/* Whether N lies within ALLOWED, "least-most". */
bool value_is_within(uint64_t n, const char *allowed);
void value_range(const char *allowed, uint64_t *ret_least, uint64_t *ret_most);

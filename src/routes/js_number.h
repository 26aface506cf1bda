/* js_number.h - texts as JavaScript's Number() reads them: what the contract says of query parameters and
 * ports. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* LEN bytes of TEXT: blanks around, "" (0), decimal, exponent, 0x 0o 0b, Infinity. NaN for anything else. */
double js_number(const char *text, size_t len);

/* The same, and only a whole number within LEAST and MOST. */
bool js_number_within(const char *text, size_t len, long least, long most, long *ret);

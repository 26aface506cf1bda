/*
 * issued.h - ids that POST /v1/sandbox handed out and nobody deleted: /running says true for them before the
 * first command (API 3.4), and the wishes given with them wait here. Bounded: the oldest is forgotten first.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "isolation/limits.h"

#define ISSUED_INSTANCE_MAX 31

struct issued;

struct issued *issued_new(size_t most);
struct issued *issued_free(struct issued *all);

/* INSTANCE: the wanted instance type, "" for none. Too long a name is cut. OWN: limits in place of its; 0:
 * none. */
void issued_add(struct issued *all, const char *id, const char *instance, const struct limits *own);
bool issued_has(const struct issued *all, const char *id);

/* "" when ID was not issued or had no wish. Good until the next call. */
const char *issued_instance(const struct issued *all, const char *id);
struct limits issued_limits(const struct issued *all, const char *id);
void issued_forget(struct issued *all, const char *id);

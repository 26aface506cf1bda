/* instance.h - the named sizes of a sandbox (instance.def). */
#pragma once

#include "isolation/limits.h"

#define INSTANCE_DEFAULT "standard-3"

/* 0, or -EINVAL when there is no type of that name; NAME "" is the default's. */
int instance_limits(const char *name, struct limits *ret);

/* The bounds of what one sandbox may be given in place of its type's: the largest type's, and the smallest
 * that works. */
void instance_bounds(struct limits *ret_least, struct limits *ret_most);

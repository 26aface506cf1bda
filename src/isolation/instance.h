/* instance.h - the named sizes of a sandbox (instance.def). */
#pragma once

#include "isolation/cgroup.h"

#define INSTANCE_DEFAULT "standard-3"

/* -EINVAL when there is no type of that name; NAME "" is the default's. */
int instance_limits(const char *name, struct limits *ret);

/* The bounds of what one sandbox may be given in place of its type's: the largest type's, and the smallest
 * that works. */
void instance_bounds(struct limits *ret_least, struct limits *ret_most);

/* Whether each number of L is 0 or within. */
bool limits_are_within(const struct limits *l, const struct limits *least, const struct limits *most);

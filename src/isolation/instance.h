/* instance.h - the named sizes of a sandbox (instance.def). */
#pragma once

#include "isolation/cgroup.h"

#define INSTANCE_DEFAULT "standard-3"

/* -EINVAL when there is no type of that name; NAME "" is the default's. */
int instance_limits(const char *name, struct limits *ret);

/* rig_private.h - what rig.c (begin and end), rig_front.c (messages) and rig_look.c (the host) share. */
#pragma once

#include "rig.h"

/* Fails the test when FD is not readable in time. */
void rig_wait_for_input(int fd, const char *what);

/* The rig's front ends, and our end of its control link. */
void rig_hang_up(struct rig *r);

/* No process, mount, cgroup or file of R's sandboxes. */
void rig_check_nothing_left(const struct rig *r);

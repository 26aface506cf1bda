/*
 * view.h - keeps the files by which the inside sees its own machine (isolation/machine.h) as they should be.
 *
 * What is fixed (processors, limits) is written when the limits are known, before the first command. What
 * changes (memory in use, time) is written anew every second while there are processes, less often while
 * nothing happens.
 */
#pragma once

#include <stdint.h>

/* Once, when the sandbox begins. BASE_ID spreads sandboxes over processors. */
void view_init(uint32_t base_id);

/* The numbers of limits.h are new. */
void view_limits_changed(void);

/* The first process runs; the last one is gone. */
void view_begin(void);
void view_end(void);

/*
 * Called by a process about to be executed, between clone and exec: takes it to the processors that the limit
 * allows, so that programs which count those start as many threads as can run. Its own time is limited all
 * the same, by its cgroup.
 */
void view_take_processors(void);

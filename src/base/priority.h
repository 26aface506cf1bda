/* priority.h - who goes first on a processor, and how soon. */
#pragma once

#include <stdint.h>

/*
 * The calling thread and what it starts from now on: NICE as in nice(1), and the length of the slices it asks
 * the scheduler for, in microseconds (0: the system's own; kernels before 6.12 ignore it). Short ones come
 * sooner after a wake-up and more often; the share of the processor stays the same. 0 or -errno.
 */
int priority_set(int nice, uint32_t slice_us);

/* crowd.h - many threads that do the same at once. */
#pragma once

#define CROWD_SIZE 16

struct err;

/*
 * Calls EACH(index, ctx, e) on CROWD_SIZE threads that start together; *RET_US is the time until the last one
 * is done. The first failure is returned, with its reason in E.
 */
int crowd_run(int (*each)(unsigned index, void *ctx, struct err *e), void *ctx, double *ret_us,
	      struct err *e);

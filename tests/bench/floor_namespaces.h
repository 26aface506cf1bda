/*
 * floor_namespaces.h - what the kernel alone takes to make a sandbox, run a program in it, and end it.
 *
 * A small helper process, forked before the bench has any memory of its own (a fork copies page tables, and
 * ours must not be part of the floor), makes on request a child in seven new namespaces with id maps, an
 * overlay root, a /proc and a pivoted root; the child runs the program. No cgroups, no limits, no seccomp, no
 * record on disk: a floor.
 */
#pragma once

struct err;
struct namespace_floor;

/* DIR is for the overlay's upper directories. Call it first in main(). */
int namespace_floor_new(const char *dir, struct namespace_floor **ret, struct err *e);
struct namespace_floor *namespace_floor_free(struct namespace_floor *f);

/* *RET_EXEC_US: until PATH had run inside; *RET_ALL_US: until everything was killed and waited for, too. */
int namespace_floor_run(struct namespace_floor *f, const char *path, double *ret_exec_us, double *ret_all_us,
			struct err *e);

/* quota_backend.h - what the back ends of quota.h do differently. Private to the room. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;
struct quota;

struct quota_backend {
	const char *name;
	bool enforced, fixed;
	/* Whether it works here, by trying. E says what lacks. */
	int (*probe)(const struct quota *q, struct err *e);
	int (*make)(const struct quota *q, int dir_fd, uint64_t bytes, int *ret_data_fd, struct err *e);
	/* See quota_reopen(): whether DIR_FD holds more than a directory `data`, and how it is opened again.
	 * Both or none. */
	bool (*is_in)(int dir_fd);
	int (*reopen)(const struct quota *q, int dir_fd, int *ret_data_fd, struct err *e);
	/* For a keeper that did not make it; NULL: drop needs nothing. */
	int (*hold)(const struct quota *q, int dir_fd, int *ret_data_fd, struct err *e);
	void (*drop)(int dir_fd, int data_fd); /* before DATA_FD is closed */
	uint64_t (*used)(int dir_fd);
};

struct quota {
	const struct quota_backend *backend;
	int images_fd;
	char fault[200];
};

extern const struct quota_backend quota_project, quota_image, quota_tmpfs;

#define QUOTA_DATA "data" /* the directory's name in a sandbox's own */

/* DIR_FD/data with upper/ and work/, and the latter two alone. */
int quota_dirs_make(int dir_fd, int *ret_data_fd, struct err *e);
int quota_layers_make(int data_fd, struct err *e);

/* Calls USE on an empty directory of ours, which is removed afterwards with what was made in it. */
typedef int quota_use(const struct quota *q, int dir_fd, uint64_t bytes, struct err *e);
int quota_try(const struct quota *q, quota_use *use, uint64_t bytes, struct err *e);

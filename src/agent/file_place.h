/*
 * file_place.h - finding a place in the sandbox's tree *as its user*: each call here takes the user's
 * file-system ids for as long as it lasts, and with them loses our power over other people's files.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stat;

/* Where a file is or will be: a directory, and the name in it, which is no symbolic link. */
struct file_place {
	int dir_fd;
	char name[256];
};

/* Opens PATH (absolute). A descriptor or -errno. */
int file_place_open(uint32_t uid, const char *path, int flags);

/* Follows links, also one in the last part that leads to nothing yet; makes missing directories (0755). 0 or
 * -errno. */
int file_place_find(uint32_t uid, const char *path, struct file_place *ret);
void file_place_done(struct file_place *p);

/* A new empty file next to the place: its descriptor, or -errno. NAME gets its name. */
int file_place_create(const struct file_place *p, uint32_t uid, char *name, size_t size);
int file_place_rename(const struct file_place *p, uint32_t uid, const char *name);
void file_place_unlink(const struct file_place *p, uint32_t uid, const char *name);

/* Whether FD, whose facts are ST, lies on the sandbox's own tree or the image's /usr, not on /proc or a
 * foreign mount. */
bool file_place_is_ours(int fd, const struct stat *st);

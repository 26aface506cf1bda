/* file.h - the config file: INI without sections, lines `name = value`, comments from # or ; at a line's
 * begin. */
#pragma once

struct err;

/* FROM is "PATH:LINE". 0, or a negative errno with a sentence in E: the rest is not read. */
typedef int config_file_setting(void *ctx, const char *name, const char *value, const char *from,
				struct err *e);

/* Calls SET(CTX, ...) for each line. What it answered, or -EINVAL with "PATH:LINE: ..." in E. */
int config_file_read(const char *path, config_file_setting *set, void *ctx, struct err *e);

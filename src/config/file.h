/* file.h - the config file: INI without sections, lines `name = value`, comments from # or ; at a line's
 * begin. */
#pragma once

struct config;
struct err;

/* -EINVAL with "PATH:LINE: ..." in E. */
int config_file_read(const char *path, struct config *c, struct err *e);

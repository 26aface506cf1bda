#include "config/file.h"

#include <errno.h>
#include <ini.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

#define LINE_ROOM 4096

struct reading {
	const char *path;
	FILE *file;
	unsigned line; /* the one being read, from 1 */
	config_file_setting *set;
	void *ctx;
	struct err *e;
	int failed; /* what refuse_line() or set() said */
};

static int refuse_line(struct reading *r, const char *why)
{
	r->failed = err_say(r->e, -EINVAL, "%s:%u: %s", r->path, r->line, why);
	return 0;
}

/* inih asks for lines like fgets(). We count them, and refuse what would be cut. */
static char *next_line(char *text, int room, void *ctx)
{
	struct reading *r = ctx;

	if (r->failed || !fgets(text, room, r->file)) return NULL;
	r->line++;
	if (strlen(text) == (size_t)room - 1 && text[room - 2] != '\n') {
		(void)refuse_line(r, "the line is too long");
		return NULL;
	}
	return text;
}

/* inih's convention: nonzero is success. */
static int on_line(void *ctx, const char *section, const char *name, const char *value)
{
	struct reading *r = ctx;
	char from[PATH_MAX + 16];

	if (section[0]) return refuse_line(r, "there are no [sections] in this file");
	if (strcmp(name, "config") == 0) return refuse_line(r, "a config file cannot name another");
	(void)snprintf(from, sizeof from, "%s:%u", r->path, r->line);
	r->failed = r->set(r->ctx, name, value, from, r->e);
	return r->failed == 0;
}

int config_file_read(const char *path, config_file_setting *set, void *ctx, struct err *e)
{
	struct reading r = {.path = path, .set = set, .ctx = ctx, .e = e};
	int bad;

	r.file = fopen(path, "re");
	if (!r.file) {
		(void)err_set(e, -errno, "read the config file '%s'", path);
		return -EINVAL;
	}
	ini_use_stack = false;
	ini_allow_realloc = false;
	ini_initial_alloc = ini_max_line = LINE_ROOM;
	ini_allow_multiline = false;
	ini_allow_inline_comments = false;
	ini_stop_on_first_error = true;
	bad = ini_parse_stream(next_line, &r, on_line, &r);
	(void)fclose(r.file);
	if (r.failed) return r.failed;
	if (bad) return err_say(e, -EINVAL, "%s:%u: not a line of the form `name = value`", path, r.line);
	return 0;
}

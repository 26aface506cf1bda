#include "routes/excludes.h"

#include <errno.h>

#include "base/mem.h"
#include "http/target.h"

static bool refuse(struct excludes_fault *fault, unsigned status, const char *message)
{
	*fault = (struct excludes_fault){.status = status, .message = message};
	return false;
}

/* Without "/" and "./" in front and "/" behind. NULL: it is the root itself, or nothing. */
static char *clean(char *entry)
{
	size_t len;

	for (;;) {
		if (entry[0] == '/') entry++;
		else if (entry[0] == '.' && entry[1] == '/') entry += 2;
		else break;
	}
	len = strlen(entry);
	while (len && entry[len - 1] == '/')
		entry[--len] = '\0';
	return *entry && strcmp(entry, ".") != 0 ? entry : NULL;
}

/* Judges one entry and keeps it, if anything is left of it. */
static bool take(struct excludes *e, char *entry, bool strict, struct excludes_fault *fault)
{
	if (strstr(entry, "..")) return refuse(fault, 400, "exclude paths must not contain \"..\"");
	if (strict && (entry[0] == '/' || strcmp(entry, ".") == 0))
		return refuse(fault, 502,
			      "persist failed: exclude paths must be relative and name something");
	entry = clean(entry);
	if (!entry) return true;
	if (e->count == EXCLUDES_MAX) return refuse(fault, 400, "too many exclude paths");
	e->items[e->count++] = entry;
	return true;
}

static bool split(struct excludes *e, bool strict, struct excludes_fault *fault)
{
	char *text = buf_text(&e->text), *entry;

	e->items = mem_new_array(EXCLUDES_MAX, sizeof *e->items);
	while ((entry = strsep(&text, ","))) {
		if (*entry && !take(e, entry, strict, fault)) return false;
	}
	return true;
}

bool excludes_parse(const char *query, bool strict, struct excludes *ret, struct excludes_fault *fault)
{
	bool fine;

	*ret = (struct excludes){.text = buf_with_cap(EXCLUDES_TEXT_MAX)};
	switch (target_query_get(query, "excludes", &ret->text)) {
	case 0: fine = split(ret, strict, fault); break;
	case -ENOENT: fine = true; break;
	case -E2BIG: fine = refuse(fault, 400, "exclude paths are too long"); break;
	default: fine = refuse(fault, 400, "exclude paths must not contain a NUL character"); break;
	}
	if (!fine) excludes_done(ret);
	return fine;
}

void excludes_done(struct excludes *e)
{
	free(e->items);
	buf_done(&e->text);
	*e = (struct excludes){0};
}

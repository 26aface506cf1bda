#include "base/path.h"

#include <errno.h>
#include <string.h>

/* Adds the parts of TEXT to OUT, which is "" or "/a/b" of *LEN bytes. */
static int add_parts(const char *text, size_t text_len, char out[PATH_LIMIT], size_t *len)
{
	size_t at = 0;

	while (at < text_len) {
		const char *part = text + at;
		const char *slash = memchr(part, '/', text_len - at);
		size_t n = slash ? (size_t)(slash - part) : text_len - at;

		at += n + 1;
		if (n == 0 || (n == 1 && part[0] == '.')) continue;
		if (n == 2 && part[0] == '.' && part[1] == '.') {
			while (*len && out[*len - 1] != '/')
				--*len;
			if (*len) --*len;
			continue;
		}
		if (*len + 1 + n >= PATH_LIMIT) return -ENAMETOOLONG;
		out[(*len)++] = '/';
		memcpy(out + *len, part, n);
		*len += n;
	}
	return 0;
}

int path_resolve(const char *base, const char *path, size_t len, char out[PATH_LIMIT])
{
	size_t out_len = 0;
	int r = 0;

	if (memchr(path, '\0', len)) return -EINVAL;
	if (len == 0 || path[0] != '/') r = add_parts(base, strlen(base), out, &out_len);
	if (r == 0) r = add_parts(path, len, out, &out_len);
	if (r < 0) return r;
	if (out_len == 0) out[out_len++] = '/';
	out[out_len] = '\0';
	return 0;
}

bool path_is_within(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

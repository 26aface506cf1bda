#include "archive/member.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

int member_path(const char *name, struct buf *out)
{
	int r = 0;

	buf_clear(out);
	if (*name == '/') return -EPERM;
	while (r == 0 && *name) {
		size_t len = strcspn(name, "/");

		if (len == 2 && name[0] == '.' && name[1] == '.') return -EPERM;
		if (len > NAME_MAX) return -ENAMETOOLONG;
		if (len > 0 && !(len == 1 && name[0] == '.')) {
			if (out->len) r = buf_add(out, "/", 1);
			if (r == 0) r = buf_add(out, name, len);
		}
		name += len + (name[len] == '/');
	}
	(void)buf_text(out);
	return r < 0 ? -ENAMETOOLONG : 0;
}

const char *member_base(const struct buf *path, size_t *ret_dir_len)
{
	const char *slash = memrchr(path->data, '/', path->len);

	*ret_dir_len = slash ? (size_t)(slash - path->data) : 0;
	return slash ? slash + 1 : path->data;
}

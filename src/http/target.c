#include "http/target.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9') return c - '0';
	if (c >= 'a' && c <= 'f') return c - 'a' + 10;
	if (c >= 'A' && c <= 'F') return c - 'A' + 10;
	return -1;
}

/* The byte that an escape at TEXT stands for; -1: there is none. */
static int escaped(const char *text, size_t len)
{
	if (len < 3 || text[0] != '%') return -1;
	int high = hex_digit(text[1]), low = hex_digit(text[2]);
	return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* How many dots a segment consists of when it is nothing else: 0, 1 or 2. */
static unsigned dots_of(const char *segment, size_t len)
{
	unsigned dots = 0;

	for (size_t at = 0; at < len; dots++) {
		if (dots == 2) return 0;
		if (segment[at] == '.') at++;
		else if (escaped(segment + at, len - at) == '.') at += 3;
		else return 0;
	}
	return dots;
}

/* As the URL standard does: empty segments count, and a dot segment at the end leaves a slash behind. */
static size_t normalise(const char *path, size_t len, char *out)
{
	size_t out_len = 0;

	for (size_t at = 0; at < len;) {
		const char *segment = path + at + 1;
		const char *slash = memchr(segment, '/', len - at - 1);
		size_t n = slash ? (size_t)(slash - segment) : len - at - 1;
		unsigned dots = dots_of(segment, n);

		at += n + 1;
		if (dots == 2) {
			while (out_len && out[--out_len] != '/')
				;
		}
		if (dots && at < len) continue;
		out[out_len++] = '/';
		if (dots) continue;
		memcpy(out + out_len, segment, n);
		out_len += n;
	}
	return out_len;
}

/* Where the path begins in TEXT, and the authority in front of it; -EINVAL for the forms we do not serve. */
static int find_origin(const char *text, size_t len, size_t *ret_authority_at, size_t *ret_origin_at)
{
	size_t at;

	*ret_authority_at = *ret_origin_at = 0;
	if (len && text[0] == '/') return 0;
	if (len == 1 && text[0] == '*') return 0;
	if (len >= 7 && strncasecmp(text, "http://", 7) == 0) at = 7;
	else if (len >= 8 && strncasecmp(text, "https://", 8) == 0) at = 8;
	else return -EINVAL;
	*ret_authority_at = at;
	while (at < len && text[at] != '/' && text[at] != '?')
		at++;
	*ret_origin_at = at;
	return at > *ret_authority_at ? 0 : -EINVAL;
}

static char *add_string(char **at, const char *text, size_t len)
{
	char *string = *at;

	if (len) memcpy(string, text, len);
	string[len] = '\0';
	*at += len + 1;
	return string;
}

int target_parse(const char *text, size_t len, char *out, struct target *ret)
{
	size_t authority_at, origin_at;
	struct target t = {0};

	if (find_origin(text, len, &authority_at, &origin_at) < 0) return -EINVAL;
	if (memchr(text, '#', len)) return -EINVAL;
	/*
	 * The only '@' of an authority ends a user name: nobody has sent one in good faith for twenty
	 * years.
	 */
	if (memchr(text + authority_at, '@', origin_at - authority_at)) return -EINVAL;

	const char *question = memchr(text + origin_at, '?', len - origin_at);
	size_t path_len = question ? (size_t)(question - text) - origin_at : len - origin_at;
	t.origin_at = origin_at;
	t.authority = add_string(&out, text + authority_at, origin_at - authority_at);
	t.path = out;
	if (path_len && text[origin_at] == '/') {
		out += normalise(text + origin_at, path_len, out);
		*out++ = '\0';
	} else {
		(void)add_string(&out, path_len ? "*" : "/", 1);
	}
	if (question) t.query = add_string(&out, question + 1, (size_t)(text + len - question) - 1);
	*ret = t;
	return 0;
}

static int decode(const char *text, size_t len, bool plus_is_space, char *out, size_t *ret_len)
{
	size_t out_len = 0;

	for (size_t at = 0; at < len; at++) {
		int byte = escaped(text + at, len - at);

		if (byte >= 0) at += 2;
		else byte = plus_is_space && text[at] == '+' ? ' ' : (unsigned char)text[at];
		if (byte == 0) return -EINVAL;
		out[out_len++] = (char)byte;
	}
	out[out_len] = '\0';
	*ret_len = out_len;
	return 0;
}

int target_decode(const char *text, size_t len, char *out, size_t *ret_len)
{
	return decode(text, len, false, out, ret_len);
}

/* Whether the encoded NAME_TEXT spells NAME. */
static bool is_named(const char *name_text, size_t len, const char *name)
{
	for (size_t at = 0; at < len; at++, name++) {
		int byte = escaped(name_text + at, len - at);

		if (byte >= 0) at += 2;
		else byte = name_text[at] == '+' ? ' ' : (unsigned char)name_text[at];
		if (byte == 0 || byte != (unsigned char)*name) return false;
	}
	return *name == '\0';
}

int target_query_get(const char *query, const char *name, struct buf *value)
{
	while (query && *query) {
		size_t len = strcspn(query, "&");
		const char *equals = memchr(query, '=', len);
		size_t name_len = equals ? (size_t)(equals - query) : len;

		if (name_len && is_named(query, name_len, name)) {
			const char *text = query + name_len + (equals != NULL);
			size_t text_len = (size_t)(query + len - text), decoded;
			char *room = buf_reserve(value, text_len);

			if (!room) return -E2BIG;
			if (decode(text, text_len, true, room, &decoded) < 0) return -EINVAL;
			buf_grew(value, decoded);
			return 0;
		}
		query += len + (query[len] == '&');
	}
	return -ENOENT;
}

/* asked.c - what a handler reads of its request. */
#include "http/internal.h"

#include <string.h>
#include <strings.h>

const char *http_method(const struct exchange *x)
{
	return x->method;
}

const char *http_target(const struct exchange *x)
{
	return x->target;
}

const char *http_path(const struct exchange *x)
{
	return x->url.path;
}

const char *http_query(const struct exchange *x)
{
	return x->url.query;
}

const char *http_host(const struct exchange *x)
{
	return x->host ? x->host : "";
}

static const struct field *field_from(const struct exchange *x, unsigned *at, const char *name)
{
	size_t len = strlen(name);

	while (*at < x->field_count) {
		const struct field *f = &x->fields[(*at)++];

		if (f->name_len == len && strncasecmp(x->head + f->name, name, len) == 0) return f;
	}
	return NULL;
}

const char *http_header(const struct exchange *x, const char *name)
{
	unsigned at = 0;
	const struct field *f = field_from(x, &at, name);

	return f ? x->head + f->value : NULL;
}

unsigned http_header_count(const struct exchange *x, const char *name)
{
	unsigned at = 0, count = 0;

	while (field_from(x, &at, name))
		count++;
	return count;
}

bool http_has_body(const struct exchange *x)
{
	return x->chunked || x->content_length > 0;
}

int64_t http_content_length(const struct exchange *x)
{
	return x->content_length;
}

unsigned http_listener(const struct exchange *x)
{
	return x->conn->listener;
}

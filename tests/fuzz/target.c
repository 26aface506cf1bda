/*
 * Request targets: a path that came through has no dot segment in any spelling and is its own normal
 * form; decoding never grows and never holds a NUL.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "http/target.h"

static void check_path(const char *path)
{
	struct target again;

	if (strcmp(path, "*") == 0) return;
	if (path[0] != '/') abort();
	char *room = malloc(TARGET_ROOM(strlen(path)));
	if (target_parse(path, strlen(path), room, &again) < 0 || strcmp(again.path, path) != 0) abort();
	free(room);
	for (const char *at = path; *at; at++)
		if (strncmp(at, "/../", 4) == 0 || strncmp(at, "/./", 3) == 0 || strcmp(at, "/..") == 0)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_buf struct buf value = buf_with_cap(size + 1);
	char *room = malloc(TARGET_ROOM(size)), *text = malloc(size + 1);
	struct target t;
	size_t len;

	/*
	 * As the guard and the parser leave it: without NUL. A copy of exact size, so that a read too far
	 * is seen.
	 */
	memcpy(text, data, size);
	for (size_t i = 0; i < size; i++)
		if (!text[i]) text[i] = '%';
	if (target_parse(text, size, room, &t) == 0) {
		check_path(t.path);
		(void)target_query_get(t.query, "token", &value);
		if (t.origin_at > size) abort();
	}
	if (target_decode(text, size, room, &len) == 0 && (len > size || strlen(room) != len)) abort();
	text[size] = '\0';
	buf_clear(&value);
	(void)target_query_get(text, "a b", &value);
	free(text);
	free(room);
	return 0;
}

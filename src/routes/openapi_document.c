#include "routes/openapi_document.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/mem.h"

#define PROFILES_KEY "x-profiles"

/* FNV-1a, twice with different beginnings: a name for bytes of ours, nobody's attack. */
static uint64_t hash(uint64_t seed, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		seed = (seed ^ (uint8_t)bytes[i]) * 1099511628211u;
	return seed;
}

static bool names(const json_t *list, const char *name)
{
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item) if (strcmp(json_string_value(item), name) == 0) return true;
	return false;
}

/* Whether VALUE belongs to the dialect; takes the note of it away. */
static bool belongs(json_t *value, const char *profile)
{
	const json_t *list = json_object_get(value, PROFILES_KEY);
	bool is_ours = !list || names(list, profile);

	if (list) (void)json_object_del(value, PROFILES_KEY);
	return is_ours;
}

static void keep_parts(json_t *value, const char *profile)
{
	json_t *part;
	const char *key;
	void *next;

	if (json_is_array(value)) {
		for (size_t i = json_array_size(value); i-- > 0;) {
			part = json_array_get(value, i);
			if (belongs(part, profile)) keep_parts(part, profile);
			else (void)json_array_remove(value, i);
		}
		return;
	}
	json_object_foreach_safe(value, next, key, part)
	{
		if (belongs(part, profile)) keep_parts(part, profile);
		else (void)json_object_del(value, key);
	}
}

static bool has_operation(enum profile profile, const char *operation)
{
	for (unsigned i = 0; i < routes_count; i++)
		if (strcmp(routes_table[i].operation, operation) == 0)
			return routes_table[i].profiles & 1u << profile;
	return false;
}

static void keep_operations(json_t *paths, enum profile profile)
{
	const char *path, *method;
	json_t *methods, *operation;
	void *next_path, *next_method;

	json_object_foreach_safe(paths, next_path, path, methods)
	{
		json_object_foreach_safe(methods, next_method, method, operation)
		{
			const char *id = json_string_value(json_object_get(operation, "operationId"));

			if (!id || !has_operation(profile, id)) (void)json_object_del(methods, method);
		}
		if (json_object_size(methods) == 0) (void)json_object_del(paths, path);
	}
}

struct openapi_text openapi_document_make(enum profile profile)
{
	json_t *json =
		json_loadb(openapi_document, (size_t)(openapi_document_end - openapi_document), 0, NULL);
	struct openapi_text ret;

	assert(json);
	keep_operations(json_object_get(json, "paths"), profile);
	keep_parts(json, profile_name(profile));
	ret.text = json_dumps(json, JSON_COMPACT | JSON_ENSURE_ASCII);
	json_decref(json);
	assert(ret.text);
	ret.len = strlen(ret.text);
	(void)snprintf(ret.tag, sizeof ret.tag, "\"%016llx%016llx\"",
		       (unsigned long long)hash(14695981039346656037u, ret.text, ret.len),
		       (unsigned long long)hash(88172645463325252u, ret.text, ret.len));
	return ret;
}

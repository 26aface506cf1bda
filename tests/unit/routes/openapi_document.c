#include "routes/openapi_document.h"

#include <jansson.h>
#include <stdlib.h>

#include "unit.h"

static json_t *document(enum profile profile)
{
	struct openapi_text text = openapi_document_make(profile);
	json_t *json = json_loadb(text.text, text.len, 0, NULL);

	ASSERT_TRUE(json != NULL);
	ASSERT_TRUE(strstr(text.text, "x-profiles") == NULL);
	ASSERT_EQ(strlen(text.tag), 34);
	free(text.text);
	return json;
}

static bool has_path(const json_t *json, const char *path)
{
	return json_object_get(json_object_get(json, "paths"), path) != NULL;
}

TEST(each_dialect_gets_what_it_has)
{
	json_t *all = document(PROFILE_UNION), *stable = document(PROFILE_STABLE),
	       *next = document(PROFILE_NEXT);
	json_t *legacy = document(PROFILE_LEGACY);

	ASSERT_TRUE(has_path(all, "/v1/sandbox/{id}/exec") && has_path(all, "/v1/sandbox/{id}/processes"));
	ASSERT_TRUE(has_path(stable, "/v1/sandbox/{id}/exec") &&
		    !has_path(stable, "/v1/sandbox/{id}/processes"));
	ASSERT_TRUE(!has_path(next, "/v1/sandbox/{id}/exec") && has_path(next, "/v1/sandbox/{id}/processes"));
	ASSERT_TRUE(!has_path(legacy, "/v1/sandbox/{id}/tunnel/{port}"));
	ASSERT_TRUE(has_path(stable, "/v1/sandbox/{id}/tunnel/{port}"));
	json_decref(all);
	json_decref(stable);
	json_decref(next);
	json_decref(legacy);
}

static unsigned operations_of(const json_t *json)
{
	const char *path, *method;
	json_t *methods, *operation;
	unsigned count = 0;

	json_object_foreach(json_object_get((json_t *)json, "paths"), path, methods)
		json_object_foreach(methods, method, operation) count++;
	return count;
}

TEST(as_many_operations_as_the_table_has)
{
	for (unsigned profile = 0; profile < PROFILES; profile++) {
		json_t *json = document((enum profile)profile);
		unsigned expected = 0;

		for (unsigned i = 0; i < routes_count; i++)
			expected += (routes_table[i].profiles >> profile) & 1;
		ASSERT_EQ(operations_of(json), expected);
		json_decref(json);
	}
}

TESTS(RUN(each_dialect_gets_what_it_has), RUN(as_many_operations_as_the_table_has))

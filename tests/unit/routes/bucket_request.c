#include "routes/bucket_request.h"

#include "base/mem.h"
#include "unit.h"

#define MOUNT(rest) "{\"bucket\":\"b\",\"mountPath\":\"/m\",\"options\":{\"endpoint\":\"http://s3\"" rest "}}"

struct judged {
	const char *body, *says; /* NULL: fine */
};

static void judge_all(const struct judged *cases, size_t count, enum profile profile)
{
	for (size_t i = 0; i < count; i++) {
		struct mount_request r;
		const char *fault = mount_request_parse(cases[i].body, strlen(cases[i].body), profile, &r);

		if ((fault == NULL) != (cases[i].says == NULL) ||
		    (fault && strcmp(fault, cases[i].says) != 0))
			fail_msg("%s: '%s', not '%s'", cases[i].body, fault, cases[i].says);
		mount_request_done(&r);
	}
}

/* Each is wrong in what it is judged for and in all that is judged later. */
TEST(a_mount_is_judged_in_the_contracts_order)
{
	static const struct judged cases[] = {
		{"", "Invalid JSON body"},
		{"{", "Invalid JSON body"},
		{"{\"bucket\":null}", "bucket must be a non-empty string"},
		{"{\"bucket\":\"\"}", "bucket must be a non-empty string"},
		{"null", "mountPath must be a non-empty string"},
		{"[]", "mountPath must be a non-empty string"},
		{"{\"bucket\":\"b\",\"mountPath\":7}", "mountPath must be a non-empty string"},
		{"{\"mountPath\":\"relative\",\"options\":{}}",
		 "mountPath must be an absolute path (start with /)"},
		{"{\"mountPath\":\"/m\"}", "options must be an object"},
		{"{\"mountPath\":\"/m\",\"options\":null,\"binding\":7}", "options must be an object"},
		{"{\"mountPath\":\"/m\",\"options\":[]}", "options must be an object"},
		{"{\"mountPath\":\"/m\",\"options\":{\"endpoint\":null},\"binding\":7}",
		 "options.endpoint must be a string when provided"},
		{"{\"mountPath\":\"/m\",\"options\":{\"endpoint\":\"x\"},\"binding\":null}",
		 "binding must be a string when provided"},
		{"{\"mountPath\":\"/m\",\"options\":{\"endpoint\":\"x\"},\"binding\":\"\"}",
		 "binding must be a non-empty string when provided"},
		{"{\"mountPath\":\"/"
		 "m\",\"options\":{\"endpoint\":\"x\",\"s3fsOptions\":1},\"binding\":\"B\"}",
		 "Provide either binding or options.endpoint, not both"},
		{MOUNT(",\"s3fsOptions\":[1],\"readOnly\":1"),
		 "options.s3fsOptions must be an array of strings when provided"},
		{MOUNT(",\"s3fsOptions\":{},\"readOnly\":1"),
		 "options.s3fsOptions must be an array of strings when provided"},
		{MOUNT(",\"readOnly\":null,\"prefix\":1"),
		 "options.readOnly must be a boolean when provided"},
		{MOUNT(",\"prefix\":1,\"credentialProxy\":1"),
		 "options.prefix must be a string when provided"},
		{MOUNT(",\"credentialProxy\":1,\"credentials\":1"),
		 "options.credentialProxy must be a boolean when provided"},
		{MOUNT(",\"credentials\":null"), "options.credentials must be an object when provided"},
		{MOUNT(",\"credentials\":{\"secretAccessKey\":\"s\"}"),
		 "options.credentials.accessKeyId must be a string"},
		{MOUNT(",\"credentials\":{\"accessKeyId\":\"a\",\"secretAccessKey\":1}"),
		 "options.credentials.secretAccessKey must be a string"},
		{"{\"mountPath\":\"/m\",\"options\":{\"endpoint\":\"x\"}}",
		 "bucket must be a non-empty string for remote mounts"},
		{"{\"mountPath\":\"/m\",\"bucket\":\"b\",\"options\":{}}",
		 "binding must be a non-empty string for R2 binding mounts"},
		{MOUNT(""), NULL},
		{"{\"binding\":\"B\",\"mountPath\":\"/m\",\"options\":{\"readOnly\":true}}", NULL},
		{MOUNT(",\"provider\":\"r2\",\"s3fsOptions\":[\"a\",\"b=c\"]"), NULL},
	};

	judge_all(cases, ARRAY_LEN(cases), PROFILE_UNION);
	judge_all(cases, ARRAY_LEN(cases), PROFILE_NEXT);
}

TEST(the_first_dialect_wants_bucket_and_endpoint_and_knows_no_more)
{
	static const struct judged cases[] = {
		{"{}", "bucket must be a non-empty string"},
		{"{\"bucket\":\"b\"}", "mountPath must be a non-empty string"},
		{"{\"bucket\":\"b\",\"mountPath\":\"/m\",\"options\":{}}",
		 "endpoint must be a non-empty string"},
		{"{\"bucket\":\"b\",\"mountPath\":\"/m\",\"options\":{\"endpoint\":\"\"}}",
		 "endpoint must be a non-empty string"},
		{MOUNT(",\"readOnly\":1"), "options.readOnly must be a boolean when provided"},
		{MOUNT(",\"s3fsOptions\":1,\"credentialProxy\":1"), NULL},
	};

	judge_all(cases, ARRAY_LEN(cases), PROFILE_LEGACY);
}

TEST(an_unmount_names_a_place_below_the_root)
{
	static const struct judged cases[] = {
		{"", "Invalid JSON body"},
		{"7", "mountPath must be a non-empty string"},
		{"{\"mountPath\":\"\"}", "mountPath must be a non-empty string"},
		{"{\"mountPath\":\"m\"}", "mountPath must be an absolute path (start with /)"},
		{"{\"mountPath\":\"/\"}", "mountPath must not resolve to / (filesystem root)"},
		{"{\"mountPath\":\"/a/../..//./\"}", "mountPath must not resolve to / (filesystem root)"},
		{"{\"mountPath\":\"/a\\u0000b\"}", "mountPath must not contain a NUL character"},
		{"{\"mountPath\":\"/data/./x y/../r2?#/\"}", NULL},
	};
	char path[PATH_LIMIT] = "";

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *fault = unmount_request_parse(cases[i].body, strlen(cases[i].body), path);

		if ((fault == NULL) != (cases[i].says == NULL) ||
		    (fault && strcmp(fault, cases[i].says) != 0))
			fail_msg("%s: '%s'", cases[i].body, fault);
	}
	ASSERT_STR(path, "/data/r2?#");
}

TESTS(RUN(a_mount_is_judged_in_the_contracts_order),
      RUN(the_first_dialect_wants_bucket_and_endpoint_and_knows_no_more),
      RUN(an_unmount_names_a_place_below_the_root))

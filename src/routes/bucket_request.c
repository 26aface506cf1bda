#include "routes/bucket_request.h"

#include <string.h>

#include "base/mem.h"
#include "routes/json_body.h"

#define BAD_JSON "Invalid JSON body"

/* ---- steps that every dialect has ---- */

static bucket_fault take_mount_path(struct mount_request *r)
{
	const json_t *path = json_object_get(r->json, "mountPath");

	if (!json_is_filled(path)) return "mountPath must be a non-empty string";
	r->mount_path = json_string_value(path);
	if (r->mount_path[0] != '/') return "mountPath must be an absolute path (start with /)";
	if (json_has_nul(path)) return "mountPath must not contain a NUL character";
	return NULL;
}

static bucket_fault take_options(struct mount_request *r)
{
	r->options = json_object_get(r->json, "options");
	return json_is_object(r->options) ? NULL : "options must be an object";
}

static const json_t *option(const struct mount_request *r, const char *name)
{
	return json_object_get(r->options, name);
}

static bucket_fault check_read_only(const struct mount_request *r)
{
	const json_t *value = option(r, "readOnly");

	return !value || json_is_boolean(value) ? NULL : "options.readOnly must be a boolean when provided";
}

static bucket_fault check_prefix(const struct mount_request *r)
{
	const json_t *value = option(r, "prefix");

	return !value || json_is_string(value) ? NULL : "options.prefix must be a string when provided";
}

static bucket_fault check_credentials(const struct mount_request *r)
{
	const json_t *value = option(r, "credentials");

	if (!value) return NULL;
	if (!json_is_object(value)) return "options.credentials must be an object when provided";
	if (!json_is_string(json_object_get(value, "accessKeyId")))
		return "options.credentials.accessKeyId must be a string";
	if (!json_is_string(json_object_get(value, "secretAccessKey")))
		return "options.credentials.secretAccessKey must be a string";
	return NULL;
}

/* ---- the first dialect: a bucket at an endpoint, nothing else ---- */

static bucket_fault judge_first(struct mount_request *r)
{
	const json_t *bucket = json_object_get(r->json, "bucket");
	bucket_fault fault;

	if (!json_is_filled(bucket)) return "bucket must be a non-empty string";
	r->bucket = json_string_value(bucket);
	fault = take_mount_path(r);
	if (!fault) fault = take_options(r);
	if (fault) return fault;
	if (!json_is_filled(option(r, "endpoint"))) return "endpoint must be a non-empty string";
	r->endpoint = json_string_value(option(r, "endpoint"));
	fault = check_read_only(r);
	if (!fault) fault = check_prefix(r);
	if (!fault) fault = check_credentials(r);
	return fault;
}

/* ---- the others: a bucket at an endpoint, or a binding that the server knows ---- */

static bucket_fault take_bucket(struct mount_request *r)
{
	const json_t *bucket = json_object_get(r->json, "bucket");

	if (bucket && !json_is_filled(bucket)) return "bucket must be a non-empty string";
	r->bucket = json_string_value(bucket);
	return NULL;
}

static bucket_fault take_source(struct mount_request *r)
{
	const json_t *endpoint = option(r, "endpoint"), *binding = json_object_get(r->json, "binding");

	if (endpoint && !json_is_string(endpoint)) return "options.endpoint must be a string when provided";
	if (binding && !json_is_string(binding)) return "binding must be a string when provided";
	if (binding && !json_is_filled(binding)) return "binding must be a non-empty string when provided";
	if (binding && endpoint) return "Provide either binding or options.endpoint, not both";
	r->endpoint = json_string_value(endpoint);
	r->binding = json_string_value(binding);
	return NULL;
}

static bucket_fault check_s3fs_options(const struct mount_request *r)
{
	const json_t *list = option(r, "s3fsOptions"), *item;
	size_t i;

	if (!list) return NULL;
	if (!json_is_array(list)) return "options.s3fsOptions must be an array of strings when provided";
	json_array_foreach(list, i, item) if (!json_is_string(item)) return "options.s3fsOptions must be an "
									    "array of strings when provided";
	return NULL;
}

static bucket_fault check_credential_proxy(const struct mount_request *r)
{
	const json_t *value = option(r, "credentialProxy");

	return !value || json_is_boolean(value) ? NULL
						: "options.credentialProxy must be a boolean when provided";
}

static bucket_fault check_completeness(const struct mount_request *r)
{
	if (r->endpoint && !r->bucket) return "bucket must be a non-empty string for remote mounts";
	if (!r->endpoint && !r->binding) return "binding must be a non-empty string for R2 binding mounts";
	return NULL;
}

static bucket_fault judge_later(struct mount_request *r)
{
	bucket_fault fault = take_bucket(r);

	if (!fault) fault = take_mount_path(r);
	if (!fault) fault = take_options(r);
	if (!fault) fault = take_source(r);
	if (!fault) fault = check_s3fs_options(r);
	if (!fault) fault = check_read_only(r);
	if (!fault) fault = check_prefix(r);
	if (!fault) fault = check_credential_proxy(r);
	if (!fault) fault = check_credentials(r);
	if (!fault) fault = check_completeness(r);
	return fault;
}

bucket_fault mount_request_parse(const char *body, size_t len, enum profile profile,
				 struct mount_request *ret)
{
	*ret = (struct mount_request){.json = json_body_parse(body, len)};
	if (!ret->json) return BAD_JSON;
	return profile == PROFILE_LEGACY ? judge_first(ret) : judge_later(ret);
}

void mount_request_done(struct mount_request *r)
{
	json_decref(r->json);
	*r = (struct mount_request){0};
}

/* ---- unmount ---- */

bucket_fault unmount_request_parse(const char *body, size_t len, char path[PATH_LIMIT])
{
	struct mount_request r = {.json = json_body_parse(body, len)};
	bucket_fault fault = r.json ? take_mount_path(&r) : BAD_JSON;

	if (!fault && path_resolve("/", r.mount_path, strlen(r.mount_path), path) < 0)
		fault = "mountPath is too long";
	if (!fault && strcmp(path, "/") == 0) fault = "mountPath must not resolve to / (filesystem root)";
	mount_request_done(&r);
	return fault;
}

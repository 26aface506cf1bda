#include "routes/session_request.h"

#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "routes/json_body.h"

#define WORKSPACE "/workspace"

static const char *take_id(const json_t *json, struct session_request *r)
{
	const json_t *id = json_object_get(json, "id");

	if (!json_is_filled(id)) return NULL;
	if (!id_is_name(json_string_value(id), json_string_length(id))) return "Invalid session ID format";
	memcpy(r->id, json_string_value(id), json_string_length(id) + 1);
	return NULL;
}

/* Anywhere in the sandbox; whether it is there is seen when the first command starts. */
static const char *take_cwd(const json_t *json, struct session_request *r)
{
	const json_t *cwd = json_object_get(json, "cwd");

	(void)snprintf(r->cwd, sizeof r->cwd, WORKSPACE);
	if (!json_is_filled(cwd)) return NULL;
	if (json_has_nul(cwd)) return "cwd must not contain a NUL character";
	if (path_resolve(WORKSPACE, json_string_value(cwd), json_string_length(cwd), r->cwd) < 0)
		return "cwd is too long";
	return NULL;
}

/* What a shell would make of VALUE; NULL: nothing. The caller frees it. */
static char *text_of(const json_t *value)
{
	if (json_is_string(value)) return mem_strndup(json_string_value(value), json_string_length(value));
	if (json_is_number(value) || json_is_boolean(value)) return json_dumps(value, JSON_ENCODE_ANY);
	return NULL;
}

static const char *take_env(json_t *json, struct session_request *r)
{
	json_t *env = json_object_get(json, "env"), *value;
	const char *name;
	size_t name_len;

	if (!json_is_object(env)) return NULL;
	r->env = mem_new_array(json_object_size(env) + 1, sizeof *r->env);
	json_object_keylen_foreach(env, name, name_len, value)
	{
		auto_free char *text = NULL;
		size_t len;

		if (memchr(name, '\0', name_len) || (json_is_string(value) && json_has_nul(value)))
			return "env must not contain NUL characters";
		if (name_len == 0 || memchr(name, '=', name_len))
			return "env names must be non-empty and without '='";
		text = text_of(value);
		if (!text) continue;
		len = strlen(text);
		char *pair = mem_new(name_len + 1 + len + 1);
		memcpy(pair, name, name_len);
		pair[name_len] = '=';
		memcpy(pair + name_len + 1, text, len);
		r->env[r->env_count++] = pair;
	}
	return NULL;
}

static void take_timeout(const json_t *json, struct session_request *r)
{
	const json_t *timeout = json_object_get(json, "commandTimeoutMs");
	double ms = json_number_value(timeout);

	if (json_is_number(timeout) && ms > 0 && ms <= 1e15) r->timeout_ms = (uint64_t)ceil(ms);
}

const char *session_request_parse(const char *body, size_t len, struct session_request *ret)
{
	json_t *json = json_body_parse(body, len);
	const char *fault;

	*ret = (struct session_request){0};
	fault = take_id(json, ret);
	if (!fault) fault = take_cwd(json, ret);
	if (!fault) fault = take_env(json, ret);
	take_timeout(json, ret);
	json_decref(json);
	if (fault) session_request_done(ret);
	return fault;
}

void session_request_done(struct session_request *r)
{
	for (uint32_t i = 0; i < r->env_count; i++)
		free(r->env[i]);
	free(r->env);
	*r = (struct session_request){0};
}

#include "routes/start_request.h"

#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "routes/json_body.h"
#include "routes/terminal_size.h"

#define WORKSPACE    "/workspace"
#define COLS_DEFAULT 80
#define ROWS_DEFAULT 24

#define LAUNCH_FAILED   "process launch failed: "
#define TERMINAL_FAILED "terminal failed: "

/* A step of the judgement: true, or *FAULT is set. */
static bool refuse(struct start_fault *fault, const char *message)
{
	*fault = (struct start_fault){.status = 400, .code = "invalid_request", .message = message};
	return false;
}

/* What upstream notices only when it starts the program. */
static bool refuse_start(struct start_fault *fault, const char *code, const char *message)
{
	*fault = (struct start_fault){.status = 502, .code = code, .message = message};
	return false;
}

static bool parse_json(const char *body, size_t len, struct start_request *r, struct start_fault *fault)
{
	r->json = json_body_parse(body, len);
	return r->json ? true : refuse(fault, "Invalid JSON body");
}

/* ---- argv ---- */

static void take_argv(struct start_request *r)
{
	const json_t *argv = json_object_get(r->json, "argv"), *item;
	size_t i;

	r->argv = mem_new_array(json_array_size(argv), sizeof *r->argv);
	json_array_foreach(argv, i, item) r->argv[r->argc++] = json_string_value(item);
}

static bool all_strings(const json_t *array)
{
	const json_t *item;
	size_t i;

	json_array_foreach(array, i, item)
	{
		if (!json_is_string(item)) return false;
	}
	return true;
}

static bool has_nul_item(const json_t *array)
{
	const json_t *item;
	size_t i;

	json_array_foreach(array, i, item)
	{
		if (json_has_nul(item)) return true;
	}
	return false;
}

static bool process_argv(struct start_request *r, struct start_fault *fault)
{
	const json_t *argv = json_object_get(r->json, "argv");

	if (json_array_size(argv) == 0) return refuse(fault, "argv must be a non-empty array");
	if (!all_strings(argv)) return refuse(fault, "argv items must be strings");
	if (has_nul_item(argv)) return refuse(fault, "argv items must not contain NUL characters");
	if (json_string_length(json_array_get(argv, 0)) == 0)
		return refuse(fault, "argv executable must be non-empty");
	take_argv(r);
	return true;
}

static bool terminal_argv(struct start_request *r, struct start_fault *fault)
{
	const json_t *argv = json_object_get(r->json, "argv");

	if (json_array_size(argv) == 0 || !all_strings(argv))
		return refuse(fault, "argv must be a non-empty string array");
	if (has_nul_item(argv)) return refuse(fault, "argv must not contain NUL characters");
	take_argv(r);
	return true;
}

/* ---- the rest ---- */

static bool process_timeout(struct start_request *r, struct start_fault *fault)
{
	const json_t *timeout = json_object_get(r->json, "timeout");
	double ms = json_number_value(timeout);

	if (!timeout) return true;
	if (!json_is_number(timeout) || !(ms > 0))
		return refuse(fault, "timeout must be a positive finite number");
	/* Longer than anybody will wait is no limit. */
	r->timeout_ms = ms > 1e15 ? 0 : (uint64_t)ceil(ms);
	return true;
}

static bool resolve_cwd(const json_t *cwd, struct start_request *r, struct start_fault *fault)
{
	(void)snprintf(r->cwd, sizeof r->cwd, "%s", WORKSPACE);
	if (!json_is_string(cwd)) return true;
	if (json_has_nul(cwd)) return refuse(fault, "cwd must not contain a NUL character");
	if (path_resolve(WORKSPACE, json_string_value(cwd), json_string_length(cwd), r->cwd) < 0)
		return refuse(fault, "cwd is too long");
	return true;
}

static bool process_cwd(struct start_request *r, struct start_fault *fault)
{
	if (!resolve_cwd(json_object_get(r->json, "cwd"), r, fault)) return false;
	if (path_is_within(r->cwd, WORKSPACE)) return true;
	*fault = (struct start_fault){.status = 403,
				      .code = "invalid_request",
				      .message = "cwd must resolve to a location within /workspace"};
	return false;
}

static bool terminal_cwd(struct start_request *r, struct start_fault *fault)
{
	const json_t *cwd = json_object_get(r->json, "cwd");

	if (cwd && !json_is_string(cwd)) return refuse(fault, "cwd must be a string");
	return resolve_cwd(cwd, r, fault);
}

static bool values_are_strings(json_t *object)
{
	const char *name;
	json_t *value;

	json_object_foreach(object, name, value)
	{
		if (!json_is_string(value)) return false;
	}
	return true;
}

/* The environment as pairs; false for a name or value that no environment can hold. */
static bool take_env(struct start_request *r, json_t *env)
{
	const char *name;
	size_t name_len;
	json_t *value;

	r->env = mem_new_array(json_object_size(env) + 1, sizeof *r->env);
	json_object_keylen_foreach(env, name, name_len, value)
	{
		size_t value_len = json_string_length(value);

		if (name_len == 0 || memchr(name, '=', name_len) || memchr(name, '\0', name_len))
			return false;
		if (json_has_nul(value)) return false;
		char *pair = mem_new(name_len + 1 + value_len + 1);
		memcpy(pair, name, name_len);
		pair[name_len] = '=';
		memcpy(pair + name_len + 1, json_string_value(value), value_len);
		r->env[r->env_count++] = pair;
	}
	return true;
}

#define BAD_PAIR "env names must be non-empty and without '=', and nothing may contain NUL"

static bool process_env(struct start_request *r, struct start_fault *fault)
{
	json_t *env = json_object_get(r->json, "env");

	if (!env) return true;
	if (!json_is_object(env) || !values_are_strings(env))
		return refuse(fault, "env must be an object of strings");
	if (take_env(r, env)) return true;
	return refuse_start(fault, "process_error", LAUNCH_FAILED BAD_PAIR);
}

static bool terminal_env(struct start_request *r, struct start_fault *fault)
{
	json_t *env = json_object_get(r->json, "env");

	if (!env) return true;
	if (!json_is_object(env)) return refuse(fault, "env must be an object");
	if (!values_are_strings(env)) return refuse(fault, "env values must be strings");
	if (take_env(r, env)) return true;
	return refuse_start(fault, "exec_transport_error", TERMINAL_FAILED BAD_PAIR);
}

static bool process_least_timeout(const struct start_request *r, struct start_fault *fault)
{
	const json_t *timeout = json_object_get(r->json, "timeout");

	if (!timeout || json_number_value(timeout) >= 1) return true;
	return refuse_start(fault, "process_error", LAUNCH_FAILED "timeout must be at least 1 ms");
}

static bool terminal_size(struct start_request *r, struct start_fault *fault)
{
	r->cols = COLS_DEFAULT;
	r->rows = ROWS_DEFAULT;
	if (size_of_json(json_object_get(r->json, "cols"), &r->cols) == SIZE_WRONG)
		return refuse(fault, "cols must be a positive integer");
	if (size_of_json(json_object_get(r->json, "rows"), &r->rows) == SIZE_WRONG)
		return refuse(fault, "rows must be a positive integer");
	return true;
}

static bool terminal_object(const struct start_request *r, struct start_fault *fault)
{
	return json_is_object(r->json) ? true : refuse(fault, "Request body must be an object");
}

/* ---- the whole ---- */

bool start_request_process(const char *body, size_t len, struct start_request *ret, struct start_fault *fault)
{
	*ret = (struct start_request){0};
	if (parse_json(body, len, ret, fault) && process_argv(ret, fault) && process_timeout(ret, fault) &&
	    process_cwd(ret, fault) && process_env(ret, fault) && process_least_timeout(ret, fault))
		return true;
	start_request_done(ret);
	return false;
}

bool start_request_terminal(const char *body, size_t len, struct start_request *ret,
			    struct start_fault *fault)
{
	*ret = (struct start_request){0};
	if (parse_json(body, len, ret, fault) && terminal_object(ret, fault) && terminal_argv(ret, fault) &&
	    terminal_cwd(ret, fault) && terminal_env(ret, fault) && terminal_size(ret, fault))
		return true;
	start_request_done(ret);
	return false;
}

void start_request_done(struct start_request *r)
{
	for (uint32_t i = 0; i < r->env_count; i++)
		free(r->env[i]);
	free(r->argv);
	free(r->env);
	json_decref(r->json);
	*r = (struct start_request){0};
}

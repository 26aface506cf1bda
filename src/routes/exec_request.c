#include "routes/exec_request.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/mem.h"
#include "routes/json_body.h"

#define WORKSPACE "/workspace"

/* A step of the judgement: true, or *FAULT is set. */
static bool refuse(struct exec_fault *fault, unsigned status, const char *message)
{
	*fault = (struct exec_fault){.status = status, .message = message};
	return false;
}

/* ---- the body as JSON ---- */

static bool parse_json(const char *body, size_t len, struct exec_request *r, struct exec_fault *fault)
{
	r->json = json_body_parse(body, len);
	return r->json ? true : refuse(fault, 400, "Invalid JSON body");
}

/* A whole VALUE of so many DIGITS and then zeros, without an exponent. */
static void whole_text(double value, int digits, char text[32])
{
	char scientific[32];
	const char *at = scientific;
	int places, written = 0;

	(void)snprintf(scientific, sizeof scientific, "%.*e", digits - 1, value);
	places = atoi(strchr(scientific, 'e') + 1) + 1;
	if (*at == '-') *text++ = *at++;
	for (; *at != 'e'; at++) {
		if (isdigit((unsigned char)*at)) text[written++] = *at;
	}
	while (written < places)
		text[written++] = '0';
	text[written] = '\0';
}

/* A number as JavaScript writes it: the shortest text that reads back as the same. */
static void number_text(const json_t *number, char text[32])
{
	double value;
	int digits = 1;

	if (json_is_integer(number)) {
		(void)snprintf(text, 32, "%" JSON_INTEGER_FORMAT, json_integer_value(number));
		return;
	}
	value = json_real_value(number);
	for (; digits <= 17; digits++) {
		(void)snprintf(text, 32, "%.*g", digits, value);
		if (strtod(text, NULL) == value) break;
	}
	if (value == trunc(value) && fabs(value) < 1e21) whole_text(value, digits, text);
}

/* ---- its fields ---- */

static bool check_argv(const struct exec_request *r, struct exec_fault *fault)
{
	const json_t *argv = json_object_get(r->json, "argv");

	if (json_array_size(argv) == 0) return refuse(fault, 400, "argv must be a non-empty array");
	return true;
}

static bool check_session(const char *session, struct exec_fault *fault)
{
	if (!session || !*session || id_is_name(session, strlen(session))) return true;
	return refuse(fault, 400, "Invalid session ID format");
}

static bool take_cwd(struct exec_request *r, struct exec_fault *fault)
{
	const json_t *cwd = json_object_get(r->json, "cwd");

	(void)snprintf(r->cwd, sizeof r->cwd, "%s", WORKSPACE);
	if (!json_is_string(cwd)) return true;
	if (json_has_nul(cwd)) return refuse(fault, 400, "cwd must not contain a NUL character");
	if (path_resolve(WORKSPACE, json_string_value(cwd), json_string_length(cwd), r->cwd) < 0)
		return refuse(fault, 400, "cwd is too long");
	if (!path_is_within(r->cwd, WORKSPACE))
		return refuse(fault, 403, "cwd must resolve to a location within /workspace");
	r->cwd_given = true;
	return true;
}

/* The word that upstream's joining makes of an element that is no string. NULL: it makes none. */
static const char *word_of(struct exec_request *r, const json_t *element)
{
	char number[32];
	const char *text = NULL;

	if (json_is_string(element)) return json_string_value(element);
	if (json_is_number(element)) {
		number_text(element, number);
		text = number;
	} else if (json_is_boolean(element)) {
		text = json_is_true(element) ? "true" : "false";
	} else if (json_is_null(element)) {
		text = "null";
	}
	if (!text) return NULL;
	r->made = mem_grow(r->made, r->made_count + 1, sizeof *r->made);
	return r->made[r->made_count++] = mem_strdup(text);
}

static bool take_argv(struct exec_request *r, struct exec_fault *fault)
{
	const json_t *argv = json_object_get(r->json, "argv"), *element;
	size_t i;

	r->argv = mem_new_array(json_array_size(argv), sizeof *r->argv);
	json_array_foreach(argv, i, element)
	{
		if (json_is_string(element) && json_has_nul(element))
			return refuse(fault, 400, "argv items must not contain NUL characters");
		r->argv[i] = word_of(r, element);
		if (!r->argv[i]) return refuse(fault, 400, "argv items must be strings");
		r->argc++;
	}
	return true;
}

/* Our extension: strings count, other values are dropped without a word. */
static bool take_env(struct exec_request *r, struct exec_fault *fault)
{
	json_t *env = json_object_get(r->json, "env"), *value;
	const char *name;
	size_t name_len;

	if (!json_is_object(env)) return true;
	r->env = mem_new_array(json_object_size(env) + 1, sizeof *r->env);
	json_object_keylen_foreach(env, name, name_len, value)
	{
		if (!json_is_string(value)) continue;
		if (memchr(name, '\0', name_len) || json_has_nul(value))
			return refuse(fault, 400, "env must not contain NUL characters");
		if (name_len == 0 || memchr(name, '=', name_len))
			return refuse(fault, 400, "env names must be non-empty and without '='");
		char *pair = mem_new(name_len + 1 + json_string_length(value) + 1);
		memcpy(pair, name, name_len);
		pair[name_len] = '=';
		memcpy(pair + name_len + 1, json_string_value(value), json_string_length(value));
		r->env[r->env_count++] = pair;
	}
	return true;
}

static bool take_timeout(struct exec_request *r)
{
	const json_t *timeout = json_object_get(r->json, "timeout_ms");
	double ms = json_number_value(timeout);

	/* Not a number, or nothing that could be waited for: no timeout. */
	if (!json_is_number(timeout) || !(ms > 0) || ms > 1e15) return true;
	r->timeout_ms = (uint64_t)ceil(ms);
	number_text(timeout, r->timeout_text);
	return true;
}

static bool take_input(struct exec_request *r)
{
	const json_t *input = json_object_get(r->json, "stdin");

	r->input = json_string_value(input);
	r->input_len = json_string_length(input);
	return true;
}

bool exec_request_parse(const char *body, size_t len, const char *session, struct exec_request *ret,
			struct exec_fault *fault)
{
	*ret = (struct exec_request){0};
	if (parse_json(body, len, ret, fault) && check_argv(ret, fault) && check_session(session, fault) &&
	    take_cwd(ret, fault) && take_argv(ret, fault) && take_env(ret, fault) && take_timeout(ret) &&
	    take_input(ret))
		return true;
	exec_request_done(ret);
	return false;
}

void exec_request_done(struct exec_request *r)
{
	for (uint32_t i = 0; i < r->made_count; i++)
		free(r->made[i]);
	for (uint32_t i = 0; i < r->env_count; i++)
		free(r->env[i]);
	free(r->made);
	free(r->argv);
	free(r->env);
	json_decref(r->json);
	*r = (struct exec_request){0};
}

#include "agent/environment.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/path.h"
#include "wire/message.h"

#define BASE_VARS 8

/* Length of "NAME=" in VAR, 0 when it is no variable. */
static size_t name_len(const char *var)
{
	const char *equals = strchr(var, '=');

	return equals && equals != var ? (size_t)(equals - var) + 1 : 0;
}

void environment_put(struct environment *env, char *var)
{
	size_t len = name_len(var);

	if (!len) return;
	for (size_t i = 0; i < env->count; i++) {
		if (strncmp(env->vars[i], var, len) != 0) continue;
		env->vars[i] = var;
		return;
	}
	env->vars[env->count++] = var;
}

static void put_base(struct environment *env, uint32_t uid, const char *cwd)
{
	char number[12], *at, *end;
	const char *user, *home;
	size_t room = 512 + PATH_LIMIT;

	(void)snprintf(number, sizeof number, "%u", uid);
	user = uid == 0 ? "root" : uid == 1000 ? "sandbox" : number;
	home = uid == 0 ? "/root" : uid == 1000 ? "/home/sandbox" : "/";
	const char *const base[BASE_VARS][2] = {
		{"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		{"HOME", home},
		{"LANG", "C.UTF-8"},
		{"LC_ALL", "C.UTF-8"},
		{"USER", user},
		{"LOGNAME", user},
		{"SHELL", "/bin/bash"},
		{"PWD", cwd}};

	env->base = at = mem_new(room);
	end = at + room;
	for (size_t i = 0; i < BASE_VARS; i++) {
		int n = snprintf(at, (size_t)(end - at), "%s=%s", base[i][0], base[i][1]);

		env->vars[env->count++] = at;
		at += n + 1;
	}
}

int environment_build(uint32_t uid, const char *cwd, const struct wire_list *overlay, struct environment *ret,
		      struct err *e)
{
	struct environment env = {0};
	const uint8_t *at = overlay->packed;
	const char *var;

	if (overlay->count > ENVIRONMENT_MAX)
		return err_say(e, -E2BIG, "more than %d variables", ENVIRONMENT_MAX);
	if (strlen(cwd) >= PATH_LIMIT) return err_set(e, -ENAMETOOLONG, "working directory");
	env.vars = mem_new_array(BASE_VARS + overlay->count + ENVIRONMENT_SPARE + 1, sizeof *env.vars);
	put_base(&env, uid, cwd);
	while ((var = wire_list_next(overlay, &at, NULL)))
		environment_put(&env, (char *)var);
	*ret = env;
	return 0;
}

void environment_done(struct environment *env)
{
	free(env->vars);
	free(env->base);
	*env = (struct environment){0};
}

const char *environment_get(const struct environment *env, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < env->count; i++) {
		if (strncmp(env->vars[i], name, len) == 0 && env->vars[i][len] == '=')
			return env->vars[i] + len + 1;
	}
	return NULL;
}

#include "agent/command.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "agent/environment.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "wire/message.h"

/* ---- quoting ---- */

static bool is_safe(char c)
{
	return isascii((unsigned char)c) && (isalnum((unsigned char)c) || (c && strchr("@%+=:,./-", c)));
}

static bool is_bare(const char *word, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (!is_safe(word[i])) return false;
	}
	return len > 0;
}

/* The letter that stands for C behind a backslash; 0 when C stands for itself. */
static char escape_of(char c)
{
	switch (c) {
	case '\\': return '\\';
	case '\'': return '\'';
	case '\n': return 'n';
	case '\r': return 'r';
	case '\t': return 't';
	default: return 0;
	}
}

int command_quote(struct buf *line, const char *word, size_t len)
{
	char *at, *start;

	if (is_bare(word, len)) return buf_add(line, word, len);
	at = start = buf_reserve(line, 2 * len + 3);
	if (!at) return -E2BIG;
	*at++ = '$';
	*at++ = '\'';
	for (size_t i = 0; i < len; i++) {
		char escaped = escape_of(word[i]);

		if (escaped) *at++ = '\\';
		*at++ = escaped ? escaped : word[i];
	}
	*at++ = '\'';
	buf_grew(line, (size_t)(at - start));
	return 0;
}

/* ---- without bash ---- */

bool command_is_program(const char *name)
{
	static const char *const words[] = {
#define BASH_WORD(word) word,
#include "agent/bash_words.def"
	};

	if (!*name || *name == '%') return false;
	for (const char *c = name; *c; c++) {
		if ((!is_safe(*c) && *c != '_') || *c == '=') return false;
	}
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (strcmp(name, words[i]) == 0) return false;
	}
	return true;
}

/* Variables that change what bash does, or that bash changes for its children in ways we do not copy. */
static bool bash_minds(const char *var)
{
	static const char *const prefixes[] = {"BASH",   "SHELLOPTS=",  "POSIXLY_CORRECT",
					       "SHLVL=", "PWD=",        "OLDPWD=",
					       "_=",     "LC_",         "LANG",
					       "IFS=",   "PS4=",        "OPTIND=",
					       "UID=",   "EUID=",       "PPID=",
					       "TMOUT=", "EXECIGNORE=", "HISTCONTROL="};

	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		if (strncmp(var, prefixes[i], strlen(prefixes[i])) == 0) return true;
	}
	return false;
}

static bool needs_bash(const char *name, const struct wire_list *overlay)
{
	const uint8_t *at = overlay->packed;
	const char *var;

	if (!command_is_program(name)) return true;
	while ((var = wire_list_next(overlay, &at, NULL))) {
		if (bash_minds(var)) return true;
	}
	return false;
}

/* One candidate for each directory of PATH. A PATH with relative parts, or far too many, is for bash. */
static void search(struct command *c, const char *name, const char *path)
{
	size_t parts = 1, name_len = strlen(name), count = 0;
	char *at;

	for (const char *p = path; *p; p++)
		parts += *p == ':';
	if (parts > COMMAND_CANDIDATES || !*path) return;
	for (const char *p = path; p; p = strchr(p, ':') ? strchr(p, ':') + 1 : NULL) {
		if (*p != '/') return;
	}
	at = c->candidate_memory = mem_new(strlen(path) + parts * (name_len + 4));
	for (;;) {
		size_t len = strcspn(path, ":");

		c->candidates[count++] = at;
		at = mempcpy(at, "_=", 2);
		at = mempcpy(at, path, len);
		if (at[-1] != '/') *at++ = '/';
		at = mempcpy(at, name, name_len + 1);
		if (!path[len]) break;
		path += len + 1;
	}
}

static void find_candidates(struct command *c, const char *name, const struct environment *env)
{
	const char *path = environment_get(env, "PATH");

	if (!strchr(name, '/')) {
		search(c, name, path ? path : "");
		return;
	}
	c->candidate_memory = c->candidates[0] = mem_new(strlen(name) + 3);
	(void)mempcpy(mempcpy(c->candidates[0], "_=", 2), name, strlen(name) + 1);
}

/* ---- with bash ---- */

/* A line that is too long for an argument is read from a memory file, which the line's own commands do not
 * see. */
static int put_in_memory_file(struct command *c, struct err *e)
{
	auto_close int fd = memfd_create("script", MFD_CLOEXEC);
	int r;

	if (fd < 0) return err_set(e, -errno, "memory for a command of %zu bytes", c->line.len);
	r = fd_write_all(fd, c->line.data, c->line.len);
	if (r < 0) return err_set(e, r, "memory for a command of %zu bytes", c->line.len);
	c->bash_argv[2] = "eval \"$(</dev/fd/3)\" 3<&-";
	c->script_fd = take_fd(&fd);
	return 0;
}

int command_line(struct command *c, const struct wire_list *argv, struct err *e)
{
	const uint8_t *at = argv->packed;
	const char *word;
	uint32_t len;

	while ((word = wire_list_next(argv, &at, &len))) {
		if ((c->line.len && buf_add(&c->line, " ", 1) < 0) ||
		    command_quote(&c->line, word, len) < 0) {
			return err_set(e, -E2BIG, "command");
		}
	}
	return 0;
}

static int plan_bash(struct command *c, const struct wire_list *argv, struct err *e)
{
	int r;

	c->line = buf_with_cap(COMMAND_LINE_CAP);
	r = command_line(c, argv, e);
	if (r < 0) return r;
	c->bash_argv = mem_new_array(4, sizeof *c->bash_argv);
	c->bash_argv[0] = "bash";
	c->bash_argv[1] = "-c";
	c->bash_argv[2] = buf_text(&c->line);
	return c->line.len < COMMAND_ARGUMENT_MAX ? 0 : put_in_memory_file(c, e);
}

int command_plan(const struct wire_list *argv, bool direct, const struct environment *env,
		 const struct wire_list *overlay, struct command *ret, struct err *e)
{
	struct command c = COMMAND_NONE;
	const uint8_t *at = argv->packed;
	const char *word;
	size_t count = 0;
	int r = 0;

	if (!argv->count) return err_say(e, -EINVAL, "no command");
	c.argv = mem_new_array((size_t)argv->count + 1, sizeof *c.argv);
	while ((word = wire_list_next(argv, &at, NULL)))
		c.argv[count++] = (char *)word;
	if (direct || !needs_bash(c.argv[0], overlay)) find_candidates(&c, c.argv[0], env);
	if (!direct) r = plan_bash(&c, argv, e);
	if (r < 0) {
		command_done(&c);
		return r;
	}
	*ret = c;
	return 0;
}

void command_done(struct command *c)
{
	free(c->argv);
	free(c->candidate_memory);
	buf_done(&c->line);
	free(c->bash_argv);
	fd_close(c->script_fd);
	*c = COMMAND_NONE;
}

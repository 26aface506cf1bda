#include "agent/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/environment.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/mem.h"

#define BUCKETS   64
#define FIRST_CWD "/workspace"

/* What bash gets as its -c text. The group: `set -x` and the command's traps shall not tell of us. */
#define BOOT \
	". /dev/fd/60; eval \"$__tombolo\"; " \
	"{ __tombolo_save $?; builtin exit $__tombolo_status; } >/dev/null 2>&1"

/*
 * The state of a session that was made with %u variables: they are the last of the texts, and taken off
 * there. In the environment of bash they would be its settings, and BASH_ENV a program. POSIX mode waits for
 * the command.
 */
#define SEED \
	"for ((__tombolo_i = %u; __tombolo_i; __tombolo_i--)); do\n" \
	"builtin declare -gx \"${__tombolo[-1]}\"\n" \
	"builtin unset -v '__tombolo[-1]'\n" \
	"done\n" \
	"[ ! -v POSIXLY_CORRECT ] || { set +o posix; __tombolo_set='export POSIXLY_CORRECT=y'; }\n"

/* The first bytes of a whole state, and the last ones. */
#define NAMES_MARK "#="
#define KEPT_MARK  "\n#kept\n"

/* The parts of session.bash. */
static const char *const scripts[] = {
#include "agent/session_script.inc"
};

enum { OLD_STATE = ARRAY_LEN(scripts), TEXTS, NEW_STATE }; /* among the descriptors of a run */
_Static_assert(NEW_STATE + 1 == COMMAND_SESSION_FDS, "session.bash says which descriptors it wants");

struct session {
	struct session *next;
	char name[NAME_ID_MAX + 1];
	char *cwd;
	uint8_t *env; /* packed list of what it begins with */
	uint32_t env_len, env_count;
	uint64_t timeout_ms;
	int state_fd;  /* -1: no command has ended yet, and there are no variables to begin with */
	bool begins;   /* the state is that of seed() */
	uint64_t used; /* when, in starts of runs */
	struct session_run *runs;
};

struct session_run {
	struct session_run *next;
	struct session *session; /* NULL: it was ended */
	int state_fd;            /* written by the run */
};

static struct session *sessions[BUCKETS];
static unsigned session_count;

/* ---- the table ---- */

static struct session **slot_of(const char *name)
{
	unsigned hash = 5381;
	struct session **at;

	for (const char *c = name; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	at = &sessions[hash % BUCKETS];
	while (*at && strcmp((*at)->name, name) != 0)
		at = &(*at)->next;
	return at;
}

static void session_free(struct session *s)
{
	for (struct session_run *run = s->runs; run; run = run->next)
		run->session = NULL;
	fd_close(s->state_fd);
	free(s->cwd);
	free(s->env);
	free(s);
}

int session_forget(const char *name)
{
	struct session **at = slot_of(name), *s = *at;

	if (!s) return -ENOENT;
	*at = s->next;
	session_count--;
	session_free(s);
	return 0;
}

static void forget_oldest(void)
{
	struct session *oldest = NULL;

	for (unsigned i = 0; i < BUCKETS; i++) {
		for (struct session *s = sessions[i]; s; s = s->next) {
			if (!s->runs && (!oldest || s->used < oldest->used)) oldest = s;
		}
	}
	if (oldest) (void)session_forget(oldest->name);
}

static struct session *session_new(const char *name)
{
	struct session *s = mem_new(sizeof *s), **at;

	if (session_count >= SESSIONS_MAX) forget_oldest();
	at = slot_of(name);
	strcpy(s->name, name);
	s->state_fd = -1;
	s->next = *at;
	*at = s;
	session_count++;
	return s;
}

static void use(struct session *s)
{
	static uint64_t uses;

	s->used = ++uses;
}

static struct session *find_or_make(const char *name)
{
	struct session *s = *slot_of(name);

	if (!s) {
		s = session_new(name);
		s->cwd = mem_strdup(FIRST_CWD);
	}
	use(s);
	return s;
}

/* ---- memory files ---- */

/* Above the numbers that the run will know them by, so that spawn() covers none with another. */
static int memory_file(const char *name, const void *bytes, size_t len)
{
	auto_close int low = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int fd;

	if (low < 0) return -errno;
	if (len) {
		int r = fd_write_all(low, bytes, len);

		if (r < 0) return r;
		(void)lseek(low, 0, SEEK_SET); /* the run shares the position */
	}
	fd = fcntl(low, F_DUPFD_CLOEXEC, COMMAND_SESSION_FD + COMMAND_SESSION_FDS);
	return fd < 0 ? -errno : fd;
}

/* From here on nobody changes it, whoever still holds it. */
static int seal(int fd)
{
	return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0 ? -errno
												    : 0;
}

static int script_fd(size_t i)
{
	static int fds[ARRAY_LEN(scripts)]; /* 0: not made yet */

	if (fds[i] > 0) return fds[i];
	fds[i] = memory_file("session", scripts[i], strlen(scripts[i]));
	if (fds[i] > 0) (void)seal(fds[i]);
	return fds[i];
}

/* ---- the beginning ---- */

/* Whether bash can hold VAR ("NAME=value") as a variable. What it cannot hold it passes on to its children.
 */
static bool is_variable(const char *var)
{
	const char *c = var;

	if (*c >= '0' && *c <= '9') return false;
	while (*c == '_' || (*c >= '0' && *c <= '9') || ((*c | 32) >= 'a' && (*c | 32) <= 'z'))
		c++;
	return *c == '=' && c > var;
}

static struct wire_list begin_list(const struct session *s)
{
	return (struct wire_list){.count = s->env_count, .packed = s->env, .packed_len = s->env_len};
}

static int seed(struct session *s)
{
	struct wire_list env = begin_list(s);
	const uint8_t *at = env.packed;
	char text[sizeof SEED + 10];
	unsigned count = 0;
	const char *var;

	while ((var = wire_list_next(&env, &at, NULL)))
		count += is_variable(var);
	if (!count) return 0;
	(void)snprintf(text, sizeof text, SEED, count);
	s->state_fd = memory_file("state", text, strlen(text));
	s->begins = true;
	return s->state_fd < 0 ? s->state_fd : 0;
}

int session_make(const struct msg_open_session *m)
{
	struct session *s;
	int r;

	if (*slot_of(m->name.at)) return -EEXIST;
	if (m->env.packed_len > SESSION_ENV_MAX || m->env.count > ENVIRONMENT_MAX) return -E2BIG;
	s = session_new(m->name.at);
	s->cwd = mem_strdup(*m->cwd.at ? m->cwd.at : FIRST_CWD);
	s->env = mem_new(m->env.packed_len + 1);
	memcpy(s->env, m->env.packed, m->env.packed_len);
	s->env_len = m->env.packed_len;
	s->env_count = m->env.count;
	s->timeout_ms = m->timeout_ms;
	use(s);
	r = seed(s);
	if (r < 0) (void)session_forget(m->name.at);
	return r;
}

/* ---- runs ---- */

static bool is_whole(int fd)
{
	char head[sizeof NAMES_MARK - 1], tail[sizeof KEPT_MARK - 1];
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_size >= (off_t)sizeof tail &&
	       (uint64_t)st.st_size <= SESSION_STATE_MAX &&
	       pread(fd, head, sizeof head, 0) == (ssize_t)sizeof head &&
	       memcmp(head, NAMES_MARK, sizeof head) == 0 &&
	       pread(fd, tail, sizeof tail, st.st_size - (off_t)sizeof tail) == (ssize_t)sizeof tail &&
	       memcmp(tail, KEPT_MARK, sizeof tail) == 0;
}

static struct session_run *run_new(struct session *s)
{
	struct session_run *run = mem_new(sizeof *run);

	run->session = s;
	run->state_fd = -1;
	run->next = s->runs;
	s->runs = run;
	return run;
}

static void unlink_run(struct session_run *run)
{
	struct session_run **at = &run->session->runs;

	while (*at != run)
		at = &(*at)->next;
	*at = run->next;
}

struct session_run *session_run_end(struct session_run *run, bool keeps)
{
	if (!run) return NULL;
	if (run->session) {
		unlink_run(run);
		/* Sealed first: it shall stay what was looked at. */
		if (keeps && seal(run->state_fd) == 0 && is_whole(run->state_fd)) {
			fd_close(run->session->state_fd);
			run->session->state_fd = take_fd(&run->state_fd);
			run->session->begins = false;
		}
	}
	fd_close(run->state_fd);
	free(run);
	return NULL;
}

/* ---- the start of a run ---- */

static bool is_one_of(const char *word, const char *const *words)
{
	while (*words && strcmp(*words, word) != 0)
		words++;
	return *words;
}

/* SEMANTICS 2.3, rule 4: the script of `sh -c SCRIPT`, which is run by the session's own shell. NULL: not
 * such. */
static const char *wrapped_script(const struct wire_list *argv, const char **ret_shell)
{
	static const char *const shells[] = {"sh", "bash", "/bin/sh", "/bin/bash", NULL};
	static const char *const flags[] = {"-c", "-lc", NULL};
	const uint8_t *at = argv->packed;
	const char *shell, *flag;

	if (argv->count != 3) return NULL;
	shell = wire_list_next(argv, &at, NULL);
	flag = wire_list_next(argv, &at, NULL);
	if (!is_one_of(shell, shells) || !is_one_of(flag, flags)) return NULL;
	*ret_shell = shell;
	return wire_list_next(argv, &at, NULL);
}

static int plan_line(struct command *c, const struct wire_list *argv, bool on_terminal, const char **ret_arg0,
		     struct err *e)
{
	static const char become[] = "exec -a bash ";
	const char *wrapped = on_terminal ? NULL : wrapped_script(argv, ret_arg0);

	c->line = buf_with_cap(COMMAND_LINE_CAP);
	if (wrapped) return buf_add_text(&c->line, wrapped) < 0 ? err_set(e, -E2BIG, "command") : 0;
	if (on_terminal) (void)buf_add_text(&c->line, become);
	return command_line(c, argv, e);
}

/* Bash would read it before our script, which might then call it. */
static bool is_function(const char *var)
{
	return strncmp(var, "BASH_FUNC_", strlen("BASH_FUNC_")) == 0;
}

/* Copies those of LIST to TO that bash cannot hold. */
static uint8_t *add_others(uint8_t *to, const struct wire_list *list, struct wire_list *env)
{
	const uint8_t *at = list->packed;
	const char *var;
	uint32_t len;

	while ((var = wire_list_next(list, &at, &len))) {
		if (is_variable(var) || is_function(var)) continue;
		/* As a packed list has it: the length stands before, a NUL behind. */
		to = mempcpy(to, var - sizeof len, sizeof len + len + 1);
		env->count++;
	}
	return to;
}

/* What goes into the environment of the bash: what it cannot hold. No state has that, so each run gets it. */
static void plan_env(struct session_start *start, const struct session *s, const struct wire_list *given)
{
	const struct wire_list begin = begin_list(s);
	uint8_t *to = start->memory = mem_new((size_t)s->env_len + given->packed_len + 1);

	start->env.packed = to;
	to = add_others(to, &begin, &start->env);
	to = add_others(to, given, &start->env);
	start->env.packed_len = (uint32_t)(to - start->env.packed);
}

/* Adds those of LIST that bash can hold. */
static int add_variables(struct buf *texts, const struct wire_list *list)
{
	const uint8_t *at = list->packed;
	const char *var;
	uint32_t len;
	int r = 0;

	while (r == 0 && (var = wire_list_next(list, &at, &len))) {
		if (is_variable(var)) r = buf_add(texts, var, len + 1);
	}
	return r;
}

/* Adds the texts that the script expects behind the command line, each with its NUL. */
static int plan_texts(struct buf *texts, const struct session *s, const char *cwd,
		      const struct wire_list *given, bool on_terminal)
{
	static const char term[] = "TERM=xterm-256color";
	const struct wire_list begin = begin_list(s);
	int r = buf_add(texts, "", 1);

	if (r == 0) r = buf_add(texts, s->cwd, strlen(s->cwd) + 1);
	if (r == 0) r = buf_add(texts, cwd, strlen(cwd) + 1);
	if (r == 0 && on_terminal) r = buf_add(texts, term, sizeof term);
	if (r == 0) r = add_variables(texts, given);
	if (r == 0 && s->begins) r = add_variables(texts, &begin);
	return r;
}

static int plan_files(struct session_start *start, const struct session *s)
{
	int *fds = start->command.session_fds;

	for (size_t i = 0; i < ARRAY_LEN(scripts); i++)
		fds[i] = script_fd(i);
	fds[OLD_STATE] = s->state_fd;
	fds[TEXTS] = memory_file("command", start->command.line.data, start->command.line.len);
	fds[NEW_STATE] = memory_file("state", NULL, 0);
	start->run->state_fd = fds[NEW_STATE];
	for (size_t i = 0; i < COMMAND_SESSION_FDS; i++) {
		if (i != OLD_STATE && fds[i] < 0) return fds[i];
	}
	return 0;
}

int session_start(const char *name, const struct wire_list *argv, const struct wire_list *env,
		  const char *cwd, bool on_terminal, struct session_start *ret, struct err *e)
{
	struct session_start start = {.command = COMMAND_NONE, .cwd = *cwd ? cwd : "/"};
	const char *arg0 = "bash";
	struct session *s;
	int r;

	if (!argv->count) return err_say(e, -EINVAL, "no command");
	if (!id_is_name(name, strlen(name))) return err_say(e, -EINVAL, "no name for a session");
	s = find_or_make(name);
	start.timeout_ms = s->timeout_ms;
	r = plan_line(&start.command, argv, on_terminal, &arg0, e);
	if (r == 0 && plan_texts(&start.command.line, s, cwd, env, on_terminal) < 0)
		r = err_set(e, -E2BIG, "command");
	start.run = run_new(s);
	start.command.bash_argv = mem_new_array(5, sizeof *start.command.bash_argv);
	memcpy(start.command.bash_argv, (const char *[]){"bash", "-c", BOOT, arg0}, 4 * sizeof arg0);
	plan_env(&start, s, env);
	if (r == 0 && (r = plan_files(&start, s)) < 0) err_set(e, r, "memory for the session's state");
	if (r < 0) {
		start.run = session_run_end(start.run, false);
		session_start_done(&start);
		return r;
	}
	*ret = start;
	return 0;
}

void session_start_done(struct session_start *s)
{
	/* The others are not the run's own, but for the new state, which is kept with it. */
	fd_close(s->command.session_fds[TEXTS]);
	command_done(&s->command);
	free(s->memory);
	*s = (struct session_start){.command = COMMAND_NONE};
}

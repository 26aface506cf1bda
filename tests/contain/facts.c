/*
 * facts.c - the inside of a sandbox, fact by fact: the guest tells, facts.def judges. Then tools of the
 * host's /usr do their work in it, and at the end the way a birth's time goes is printed (a measure, never a
 * judgement).
 *
 * One line a check: "ok NAME" or "not ok NAME: found '...', wanted '...'".
 */
#include <fnmatch.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "isolation/privilege.h"
#include "stage.h"

#define SKIPPED 77

static unsigned checks, failures;

static void check(const char *who, const char *what, const char *found, const char *wanted)
{
	checks++;
	if (fnmatch(wanted, found, 0) == 0) {
		(void)printf("ok %s %s\n", who, what);
		return;
	}
	failures++;
	(void)printf("not ok %s %s: found '%s', wanted '%s'\n", who, what, found, wanted);
}

/* ---- the table ---- */

static const struct {
	const char *name, *as_root, *as_user;
} facts[] = {
#define FACT(name, as_root, as_user) {name, as_root, as_user},
#define SAME(name, value)            {name, value, value},
#include "facts.def"
};

/* The value in the line "NAME value" of TELLING, cut out into VALUE; "(not told)" when there is none. */
static void fact_find(const char *telling, const char *name, char value[512])
{
	size_t len = strlen(name);

	(void)snprintf(value, 512, "(not told)");
	for (const char *line = telling; *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (strncmp(line, name, len) == 0 && line[len] == ' ')
			(void)snprintf(value, 512, "%.*s", (int)strcspn(line + len + 1, "\n"),
				       line + len + 1);
}

/* BASE becomes the number. */
static void pattern_fill(const char *pattern, uint32_t base_id, char filled[512])
{
	const char *word = strstr(pattern, "BASE");

	if (word)
		(void)snprintf(filled, 512, "%.*s%u%s", (int)(word - pattern), pattern, base_id,
			       word + strlen("BASE"));
	else (void)snprintf(filled, 512, "%s", pattern);
}

static void facts_check(struct stage *s, struct actor *a, bool as_root, const char *host_socket)
{
	auto_buf struct buf out = buf_with_cap(1 << 20);
	const char *const args[STAGE_ARGS] = {"/guest", "tombolo", s->state_dir, host_socket};
	const char *who = as_root ? "root:" : "user:";

	(void)actor_run(a, as_root ? 0 : 1000, args, &out);
	for (unsigned i = 0; i < ARRAY_LEN(facts); i++) {
		char found[512], wanted[512];

		fact_find(buf_text(&out), facts[i].name, found);
		pattern_fill(as_root ? facts[i].as_root : facts[i].as_user, a->base_id, wanted);
		check(who, facts[i].name, found, wanted);
	}
}

/* ---- from outside ---- */

static void owner_check(const struct actor *a, const char *what, const char *file, const char *wanted)
{
	char path[256], found[64];
	struct stat st = {0};

	(void)snprintf(path, sizeof path, "%s/upper/workspace/%s", a->data_dir, file);
	if (lstat(path, &st) < 0) (void)snprintf(found, sizeof found, "missing");
	else (void)snprintf(found, sizeof found, "%u:%u", st.st_uid, st.st_gid);
	check("outside:", what, found, wanted);
}

static int host_socket_make(char name[64])
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(name, 64, "contain-test-%d", (int)getpid());
	memcpy(at.sun_path + 1, name, strlen(name));
	if (bind(fd, (struct sockaddr *)&at,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))) < 0 ||
	    listen(fd, 1) < 0)
		fail("cannot make a socket: %m");
	return fd;
}

/* ---- tools ---- */

static const struct {
	uid_t uid;
	const char *program; /* skipped, and said so, when the host has it not */
	const char *script, *wanted;
} tools[] = {
	{1000, "/usr/bin/bash", "set -o pipefail; cd && pwd && echo $((6*7)) | cat", "/workspace?42?"},
	{1000, "/usr/bin/id", "id -un; id -Gn", "sandbox?sandbox?"},
	{1000, "/usr/bin/git",
	 "git init -q r && cd r && git -c user.name=n -c user.email=e commit -q --allow-empty -m m &&"
	 " git log --format=%s",
	 "m?"},
	{1000, "/usr/bin/python3",
	 "/usr/bin/python3 -c 'import multiprocessing as m; print(sum(m.Pool(2).map(abs, [-1, -2])))'", "3?"},
	{1000, "/usr/bin/python3",
	 "/usr/bin/python3 -c 'import socket; print(socket.gethostbyname(socket.gethostname()))'",
	 "127.0.0.1?"},
	{1000, "/usr/bin/node", "node -e 'setTimeout(() => console.log(process.pid > 1), 1)'", "true?"},
	{1000, "/usr/bin/script", "script -qec 'test -t 0 && echo terminal' /dev/null </dev/null",
	 "*terminal*"},
	{0, "/usr/bin/su", "su sandbox -c 'id -u'", "1000?"},
	{0, "/usr/sbin/useradd", "useradd -m one && su one -c 'id -un; cd; pwd'", "one?/home/one?"},
	{0, "/usr/bin/chown", "touch f && chown 1000:1000 f && stat -c %u:%g f", "1000:1000?"},
	{0, "/usr/bin/openssl", "openssl version -d", "OPENSSLDIR*"},
	{1000, "/usr/bin/strace", "strace -f -o /dev/null /bin/echo traced", "traced?"},
};

static void tools_check(struct actor *a)
{
	for (unsigned i = 0; i < ARRAY_LEN(tools); i++) {
		auto_buf struct buf out = buf_with_cap(1 << 16);
		const char *const args[STAGE_ARGS] = {"/usr/bin/bash", "-c", tools[i].script};

		if (access(tools[i].program, X_OK) < 0) {
			(void)printf("skip %s: the host has none\n", tools[i].program);
			continue;
		}
		(void)actor_run(a, tools[i].uid, args, &out);
		check("tool:", tools[i].script, buf_text(&out), tools[i].wanted);
	}
}

/* ---- neighbours ---- */

static void neighbours_check(struct actor *a, struct actor *b)
{
	const char *const leave[STAGE_ARGS] = {"/usr/bin/bash", "-c",
					       "echo mine >/workspace/mark; echo mine >/dev/shm/mark"};
	const char *const look[STAGE_ARGS] = {"/usr/bin/bash", "-c",
					      "cat /workspace/mark /dev/shm/mark 2>/dev/null; echo end"};
	auto_buf struct buf out = buf_with_cap(1 << 16);

	(void)actor_run(a, 1000, leave, &out);
	(void)actor_run(b, 1000, look, &out);
	check("neighbour:", "files are not shared", buf_text(&out), "end?");
	buf_clear(&out);
	(void)actor_run(a, 1000, look, &out);
	check("neighbour:", "pid 1 lives after all that was done to it", buf_text(&out), "mine?mine?end?");
}

/* ---- time ---- */

#define ROUNDS 21

static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void median_print(const char *what, unsigned *values)
{
	qsort(values, ROUNDS, sizeof *values, by_value);
	(void)printf("# %-28s %5u us (least %u)\n", what, values[ROUNDS / 2], values[0]);
}

static void times_print(struct stage *s)
{
	unsigned kit[ROUNDS], cloning[ROUNDS], bind[ROUNDS], containing[ROUNDS];

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct actor a;

		actor_make(s, 2, NULL, &a);
		kit[i] = a.kit_us, cloning[i] = a.clone_us, bind[i] = a.bind_us, containing[i] = a.contain_us;
		actor_end(&a);
		actor_forget(&a);
	}
	median_print("kit of a slot", kit);
	median_print("clone of an agent", cloning);
	median_print("kit sent to agent contained", bind);
	median_print("of that, contain()", containing);
}

int main(int argc, char **argv)
{
	char host_socket[64];
	struct err e = ERR_NONE;
	struct stage s;
	struct actor a, b;

	if (argc != 2) fail("usage: contain-facts GUEST");
	/* What whoever started us forgot to close must not look like a leak of ours. */
	(void)close_range(3, ~0u, 0);
	if (privilege_check("/tmp", &e) < 0) {
		(void)printf("skip: %s\n", e.text);
		return SKIPPED;
	}
	auto_close int socket_fd = host_socket_make(host_socket);
	stage_open(&s);
	actor_make(&s, 0, argv[1], &a);
	actor_make(&s, 1, NULL, &b);
	facts_check(&s, &a, true, host_socket);
	facts_check(&s, &a, false, host_socket);
	owner_check(&a, "files of root belong to 0 on disk", "of-0", "0:0");
	owner_check(&a, "files of the user belong to 1000 on disk", "of-1000", "1000:1000");
	tools_check(&a);
	neighbours_check(&a, &b);
	actor_end(&a);
	actor_end(&b);
	times_print(&s);
	stage_close(&s);
	(void)socket_fd;
	(void)printf("%u checks, %u failed\n", checks, failures);
	return failures ? 1 : 0;
}

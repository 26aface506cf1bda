/* cp.c - tombolo cp: one file into a sandbox or out of it, streamed; "-" stands for standard input and
 * output. */
#include "cli/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/mem.h"
#include "base/path.h"
#include "cli/client.h"

#define URL_MAX ((size_t)4 * PATH_LIMIT) /* every byte of a path may take three */

struct cp_args {
	const char *url;
};

static const struct args_option cp_options[] = {OPTION_URL(cp_args)};

const struct args_syntax cp_syntax = {
	.command = "cp",
	.operands = "FILE SANDBOX:PATH | SANDBOX:PATH FILE",
	.summary = "Copies one file into a sandbox or out of it. FILE may be -, standard input or output.",
	.options = cp_options,
	.option_count = ARRAY_LEN(cp_options),
	.least = 2,
	.most = 2,
	.more = "PATH is relative to /workspace. A PATH or FILE that ends in / names a directory: the file "
		"keeps its name.\n"
		"A local file whose name looks like SANDBOX:PATH can be written as ./NAME.",
};

/* One side of the copy. */
struct place {
	char *sandbox; /* NULL: on this machine */
	const char *path;
};

static struct place place_of(const char *text)
{
	const char *colon = strchr(text, ':');

	if (!colon || !id_is_sandbox(text, (size_t)(colon - text))) return (struct place){.path = text};
	return (struct place){.sandbox = mem_strndup(text, (size_t)(colon - text)), .path = colon + 1};
}

static bool is_standard(const char *path)
{
	return strcmp(path, "-") == 0;
}

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The URL path of the file PLACE, below the directory PLACE with NAME when it is written as one. */
static int remote_path(const struct place *place, const char *name, struct buf *url, struct err *e)
{
	size_t len = strlen(place->path);
	bool absolute = place->path[0] == '/';
	int r;

	r = buf_addf(url, "/v1/sandbox/%s/file/%s", place->sandbox, absolute ? "" : "workspace/");
	if (r == 0) r = client_add_path(url, place->path + absolute);
	if (r == 0 && (len == 0 || place->path[len - 1] == '/')) r = client_add_path(url, name);
	return r < 0 ? err_say(e, -EINVAL, "the path in the sandbox is too long") : 0;
}

/* ---- in ---- */

static int copy_in(struct client *c, const char *from, const struct place *to, struct err *e)
{
	bool standard = is_standard(from);
	auto_close int opened = -1;
	auto_buf struct buf url = buf_with_cap(URL_MAX);
	int64_t size = -1;
	struct stat st = {0};
	int r;

	r = remote_path(to, standard ? "stdin" : name_of(from), &url, e);
	if (r < 0) return r;
	if (!standard) {
		opened = open(from, O_RDONLY | O_CLOEXEC);
		if (opened < 0) return err_say(e, -EINVAL, "open '%s': %s", from, strerror(errno));
		if (fstat(opened, &st) < 0) return err_set(e, -errno, "stat '%s'", from);
		if (S_ISDIR(st.st_mode))
			return err_say(e, -EINVAL, "'%s' is a directory; cp copies one file", from);
		if (S_ISREG(st.st_mode)) size = st.st_size;
		if (S_ISREG(st.st_mode) &&
		    (st.st_mode & 0111)) /* a program stays one; others get the server's 0644 */
			(void)buf_addf(&url, "?mode=%o", st.st_mode & 0777);
	}

	struct client_request q = {
		.method = "PUT",
		.path = buf_text(&url),
		.uploads = true,
		.upload_fd = standard ? STDIN_FILENO : opened,
		.upload_size = size,
	};
	return client_call(c, &q, NULL, e);
}

/* ---- out ---- */

struct sink {
	int fd;
	const char *name;
};

static int on_bytes(void *ctx, const char *bytes, size_t len, struct err *e)
{
	struct sink *sink = ctx;
	int r = fd_write_all(sink->fd, bytes, len);

	return r < 0 ? err_set(e, r, "write '%s'", sink->name) : 0;
}

/* The local file to write: TO itself, or below the directory TO. */
static char *local_path(const char *to, const char *from)
{
	struct stat st;
	char *path;

	if (stat(to, &st) < 0 || !S_ISDIR(st.st_mode)) return mem_strdup(to);
	if (asprintf(&path, "%s/%s", to, name_of(from)) < 0) abort();
	return path;
}

/* A temporary sibling takes the bytes: a transfer that breaks leaves an older file whole. */
static int copy_to_file(struct client *c, const struct client_request *request, const char *path,
			struct err *e)
{
	auto_free char *temporary = NULL;
	struct client_request q = *request;
	struct sink sink = {.name = path};
	auto_close int fd = -1;
	mode_t mask = umask(0);
	int r;

	umask(mask);
	if (asprintf(&temporary, "%s.XXXXXX", path) < 0) abort();
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0) return err_say(e, -EINVAL, "write '%s': %s", path, strerror(errno));
	sink.fd = fd;
	q.ctx = &sink;
	r = client_call(c, &q, NULL, e);
	if (r == 0 && (fchmod(fd, 0666 & ~mask) < 0 || rename(temporary, path) < 0))
		r = err_set(e, -errno, "put '%s' in place", path);
	if (r < 0) (void)unlink(temporary);
	return r;
}

static int copy_out(struct client *c, const struct place *from, const char *to, struct err *e)
{
	struct sink out = {.fd = STDOUT_FILENO, .name = "standard output"};
	struct client_request q = {.method = "GET", .on_bytes = on_bytes, .ctx = &out};
	auto_buf struct buf url = buf_with_cap(URL_MAX);
	auto_free char *path = NULL;
	struct stat st;
	int r;

	r = remote_path(from, "", &url, e);
	if (r < 0) return r;
	q.path = buf_text(&url);
	if (is_standard(to)) return client_call(c, &q, NULL, e);
	path = local_path(to, from->path);
	if (stat(path, &st) == 0 &&
	    !S_ISREG(st.st_mode)) { /* a device or a pipe is written to, not replaced */
		auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);

		if (fd < 0) return err_say(e, -EINVAL, "write '%s': %s", path, strerror(errno));
		out = (struct sink){.fd = fd, .name = path};
		return client_call(c, &q, NULL, e);
	}
	return copy_to_file(c, &q, path, e);
}

int cp_main(int argc, char **argv)
{
	struct cp_args args = {0};
	int first = args_parse(&cp_syntax, argc, argv, &args);
	struct place from = place_of(argv[first]), to = place_of(argv[first + 1]);
	struct err e = ERR_NONE;
	struct client *c = NULL;
	int r;

	if (!from.sandbox == !to.sandbox) {
		r = err_say(&e, -EINVAL, "one of the two must be SANDBOX:PATH, the other a file here");
	} else {
		c = command_client(args.url);
		r = to.sandbox ? copy_in(c, from.path, &to, &e) : copy_out(c, &from, to.path, &e);
	}
	client_free(c);
	free(from.sandbox);
	free(to.sandbox);
	return r < 0 ? command_failed(&e) : 0;
}

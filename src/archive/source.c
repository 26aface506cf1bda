#include "archive/source.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>

#include "archive/input.h"
#include "base/mem.h"

struct source {
	struct archive *archive;
	struct input *input;
	struct err broken; /* why the input failed, if it did */
};

static la_ssize_t on_read(struct archive *a, void *context, const void **ret)
{
	struct source *s = context;
	const char *bytes = NULL;
	size_t len = 0;
	int r = input_next(s->input, &bytes, &len, &s->broken);

	if (r < 0) archive_set_error(a, -r, "%s", s->broken.text);
	*ret = bytes;
	return r < 0 ? -1 : (la_ssize_t)len;
}

static int failed(struct source *s, struct err *e)
{
	const char *why = archive_error_string(s->archive);

	if (s->broken.code) return err_say(e, s->broken.code, "%s", s->broken.text);
	return err_say(e, -EBADMSG, "broken archive: %s", why ? why : "unreadable");
}

int source_new(int fd, struct source **ret, struct err *e)
{
	struct source *s = mem_new(sizeof *s);
	struct archive *a = archive_read_new();
	int r = a ? ARCHIVE_OK : ARCHIVE_FATAL;

	*s = (struct source){.archive = a, .input = input_new(fd)};
	if (r == ARCHIVE_OK) r = archive_read_support_format_tar(a);
	if (r == ARCHIVE_OK) r = archive_read_support_filter_xz(a);
	if (r == ARCHIVE_OK) r = archive_read_support_filter_zstd(a);
	if (r == ARCHIVE_OK) r = archive_read_support_filter_bzip2(a);
	if (r == ARCHIVE_OK) r = archive_read_open(a, s, NULL, on_read, NULL);
	if (r != ARCHIVE_OK) {
		if (input_was_empty(s->input) && !s->broken.code)
			r = err_say(e, -EBADMSG, "the archive is empty");
		else r = failed(s, e);
		source_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

struct source *source_free(struct source *s)
{
	if (!s) return NULL;
	if (s->archive) archive_read_free(s->archive);
	input_free(s->input);
	free(s);
	return NULL;
}

/*
 * libarchive takes the end of the input for the end of the archive. We do not: an archive that was cut
 * between two members must not pass for a whole one. When it has found an end mark it has read on since the
 * last header began.
 */
static int finish(struct source *s, struct err *e)
{
	const char *bytes;
	size_t len;
	int r;

	if (archive_filter_bytes(s->archive, 0) <= archive_read_header_position(s->archive))
		return err_say(e, -EBADMSG, "broken archive: it ends without its end mark");
	/* To the end of the input: a checksum may stand there, and the sender shall not get a broken pipe for
	 * padding. */
	while ((r = input_next(s->input, &bytes, &len, e)) > 0)
		;
	return r;
}

/* A name that is not in the charset of this program's locale ("C") is handed out as it is: nothing to warn
 * about. */
static int judge_warning(struct source *s, struct err *e)
{
	const char *why = archive_error_string(s->archive);

	if (why && strstr(why, "malformed pax")) return failed(s, e);
	return 1;
}

int source_next(struct source *s, struct archive_entry **ret, struct err *e)
{
	int r = archive_read_next_header(s->archive, ret);

	if (r == ARCHIVE_OK) return 1;
	if (r == ARCHIVE_WARN) return judge_warning(s, e);
	return r == ARCHIVE_EOF ? finish(s, e) : failed(s, e);
}

int source_data(struct source *s, struct source_block *ret, struct err *e)
{
	const void *bytes;
	la_int64_t offset;
	int r = archive_read_data_block(s->archive, &bytes, &ret->len, &offset);

	if (r == ARCHIVE_EOF) return 0;
	if (r != ARCHIVE_OK) return failed(s, e);
	if (offset < 0) return err_say(e, -EBADMSG, "broken archive: content before the begin of a file");
	ret->bytes = bytes;
	ret->offset = (uint64_t)offset;
	return 1;
}

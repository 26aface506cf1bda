#include "archive/input.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
#include <zlib.h>

#include "base/mem.h"

/* Each read of a full pipe wakes its writer: smaller chunks wake it more often, much larger ones leave the
 * cache between read() and write(). */
#define CHUNK     ((size_t)256 << 10)
#define PIPE_SIZE (1 << 20) /* what an ordinary user may ask for */

enum state {
	UNKNOWN, /* nothing read */
	PLAIN,
	INFLATING, /* inside a gzip member */
	BETWEEN,   /* behind one: another may follow */
	ENDED,
};

struct input {
	int fd;
	enum state state;
	bool any;
	z_stream z; /* next_in and avail_in are what was read and not used */
	char raw[CHUNK];
	char plain[CHUNK];
};

static volatile sig_atomic_t broken_off;

void input_break_off(int signo)
{
	(void)signo;
	broken_off = 1;
}

struct input *input_new(int fd)
{
	struct input *in = mem_new(sizeof *in);

	in->fd = fd;
	(void)fcntl(fd, F_SETPIPE_SZ, PIPE_SIZE);
	return in;
}

struct input *input_free(struct input *in)
{
	if (in && in->z.state) (void)inflateEnd(&in->z);
	free(in);
	return NULL;
}

bool input_was_empty(const struct input *in)
{
	return !in->any;
}

/* Reads on behind what is there. 1, 0 at the end, or an error. */
static int fill(struct input *in, struct err *e)
{
	ssize_t n;

	if (in->z.avail_in == 0) in->z.next_in = (unsigned char *)in->raw;
	do
		n = read(in->fd, in->z.next_in + in->z.avail_in, CHUNK - in->z.avail_in);
	while (n < 0 && errno == EINTR);
	if (n < 0) return err_set(e, -errno, "read the archive");
	if (n == 0 && broken_off) return err_say(e, -ECANCELED, "whoever sent the archive broke off");
	in->z.avail_in += (unsigned)n;
	in->any |= n > 0;
	return n > 0;
}

/* Two bytes tell gzip from all tar formats and other compressions. */
static int recognize(struct input *in, struct err *e)
{
	int r = 1;

	while (r > 0 && in->z.avail_in < 2)
		r = fill(in, e);
	if (r < 0) return r;
	in->state = PLAIN;
	if (in->z.avail_in < 2 || in->z.next_in[0] != 0x1f || in->z.next_in[1] != 0x8b) return 0;
	in->state = INFLATING;
	return inflateInit2(&in->z, 16 + MAX_WBITS) == Z_OK ? 0 : err_set(e, -ENOMEM, "read gzip");
}

static int next_plain(struct input *in, const char **ret, size_t *ret_len, struct err *e)
{
	int r = in->z.avail_in ? 1 : fill(in, e);

	if (r <= 0) return r;
	*ret = (const char *)in->z.next_in;
	*ret_len = in->z.avail_in;
	in->z.avail_in = 0;
	return 1;
}

/* Another member, or padding that gzip ignores, too. */
static int next_member(struct input *in, struct err *e)
{
	int r = in->z.avail_in ? 1 : fill(in, e);

	if (r < 0) return r;
	in->state = ENDED;
	if (r == 0 || in->z.next_in[0] != 0x1f) return 0;
	in->state = INFLATING;
	(void)inflateReset(&in->z);
	return 0;
}

static int inflate_some(struct input *in, size_t *ret_len, struct err *e)
{
	int r = in->z.avail_in ? 1 : fill(in, e);

	if (r < 0) return r;
	if (r == 0) return err_say(e, -EBADMSG, "broken archive: the gzip stream is cut off");
	in->z.next_out = (unsigned char *)in->plain;
	in->z.avail_out = CHUNK;
	r = inflate(&in->z, Z_NO_FLUSH);
	if (r == Z_STREAM_END) in->state = BETWEEN;
	else if (r != Z_OK && r != Z_BUF_ERROR)
		return err_say(e, -EBADMSG, "broken archive: gzip: %s", in->z.msg ? in->z.msg : "damaged");
	*ret_len = CHUNK - in->z.avail_out;
	return 0;
}

int input_next(struct input *in, const char **ret, size_t *ret_len, struct err *e)
{
	size_t len = 0;
	int r = 0;

	while (r == 0 && len == 0) {
		switch (in->state) {
		case UNKNOWN: r = recognize(in, e); break;
		case PLAIN: return next_plain(in, ret, ret_len, e);
		case INFLATING: r = inflate_some(in, &len, e); break;
		case BETWEEN: r = next_member(in, e); break;
		case ENDED:
			/* The sender may go on with padding: it shall not get a broken pipe for that. */
			in->z.avail_in = 0;
			r = fill(in, e);
			if (r <= 0) return r;
			r = 0;
			break;
		}
	}
	if (r < 0) return r;
	*ret = in->plain;
	*ret_len = len;
	return 1;
}

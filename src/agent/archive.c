/*
 * archive.c - archives are made and read by a program of our own, tombolo-tar. It runs like a command: as the
 * sandbox's user, in a leaf cgroup, with the sandbox's limits. So neither a bomb nor a bug in a parser costs
 * more than a command could. The bytes are none of our business: the front made a pipe and gave us the
 * archiver's end of it. We tell when the archiver has ended, how, and what it said.
 */
#include "agent/archive.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>

#include "agent/command.h"
#include "agent/environment.h"
#include "agent/peers.h"
#include "agent/process.h"
#include "agent/report.h"
#include "agent/starting.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"

#define ROOT      "/workspace"
#define WORDS_MAX 1024

struct archive {
	struct channel channel;
	struct process_client client;
	struct start_wait wait;
	int pipe_fd; /* until it starts */
	bool packs;
	struct process *process; /* NULL while waiting */
	size_t words_len;
	char words[WORDS_MAX + 1];
};

static int program_fd = -1;

void archive_init(int fd)
{
	program_fd = fd;
}

static void archive_free(struct archive *a)
{
	start_cancel(&a->wait);
	channel_close(&a->channel);
	fd_close(a->pipe_fd);
	free(a);
}

/* ---- the archiver's side ---- */

static size_t words_room(struct process_client *c)
{
	(void)c;
	return WIRE_DATA_MAX;
}

static void on_words(struct process_client *c, uint8_t stream, const struct iovec parts[2])
{
	struct archive *a = container_of(c, struct archive, client);

	(void)stream;
	for (size_t i = 0; i < 2; i++) {
		size_t n = MIN(parts[i].iov_len, WORDS_MAX - a->words_len);

		if (n) memcpy(a->words + a->words_len, parts[i].iov_base, n);
		a->words_len += n;
	}
}

static void on_end(struct process_client *c, const struct process *p)
{
	struct archive *a = container_of(c, struct archive, client);
	struct msg_end m = report_end(p);

	a->words[strcspn(a->words, "\n")] = '\0';
	m.text = wire_text_of(a->words);
	CHANNEL_SEND(&a->channel, end, &m);
	archive_free(a);
}

/* ---- start ---- */

static int start(struct archive *a, char **argv, uint32_t uid, struct err *e)
{
	static char *no_vars[ENVIRONMENT_SPARE + 1];
	struct environment env = {.vars = no_vars};
	struct command command = COMMAND_NONE;
	const struct wire_list untold = {0};
	const int stdio[3] = {a->packs ? -1 : a->pipe_fd, a->packs ? a->pipe_fd : -1, -1};
	const struct process_spec spec = {.kind = KIND_PROCESS,
					  .forgotten = true,
					  .command = &command,
					  .env = &env,
					  .cwd = "/",
					  .uid = uid,
					  .given_stdio = stdio,
					  .argv = &untold,
					  .client = &a->client};
	enum spawn_step step;
	int r;

	if (program_fd < 0) return err_say(e, -ENOENT, "there is no program to make archives with");
	command.argv = argv;
	command.program_fd = program_fd;
	a->pipe_fd = -1;
	r = process_start(&spec, &a->process, &step, e);
	return r < 0 ? err_set(e, r, "start the archiver") : 0;
}

static int start_pack(struct archive *a, const struct frame *f, struct err *e)
{
	static char name[] = "tombolo-tar", pack[] = "pack", root[] = ROOT;
	auto_free char **argv = NULL;
	struct msg_open_pack m;
	const uint8_t *at;
	const char *word;
	size_t count = 3;

	(void)msg_open_pack_parse(f, &m); /* was parsed once before */
	argv = mem_new_array(count + m.excludes.count + 1, sizeof *argv);
	argv[0] = name;
	argv[1] = pack;
	argv[2] = root;
	at = m.excludes.packed;
	while ((word = wire_list_next(&m.excludes, &at, NULL)))
		argv[count++] = (char *)word;
	return start(a, argv, m.uid, e);
}

static int start_unpack(struct archive *a, const struct frame *f, struct err *e)
{
	static char name[] = "tombolo-tar", unpack[] = "unpack", root[] = ROOT;
	char *argv[] = {name, unpack, root, NULL};
	struct msg_open_unpack m;

	(void)msg_open_unpack_parse(f, &m);
	return start(a, argv, m.uid, e);
}

static void on_refused(struct start_wait *w, int error, const char *text)
{
	struct archive *a = container_of(w, struct archive, wait);

	peer_refuse(a->channel.peer, a->channel.id, error, text);
	archive_free(a);
}

static void on_ready(struct start_wait *w, const struct frame *f)
{
	struct archive *a = container_of(w, struct archive, wait);
	struct err e = ERR_NONE;
	int r = a->packs ? start_pack(a, f, &e) : start_unpack(a, f, &e);

	if (r < 0) on_refused(w, r, e.text);
	else report_opened(&a->channel, a->process);
}

/* ---- the front's side ---- */

/* The front's end of the pipe may come along: then the archive breaks off, which the archiver must know
 * before it sees its end. */
static void break_off(struct archive *a)
{
	int fd = peer_take_fd();

	if (fd >= 0 && a->process) process_signal(a->process, SIGTERM);
	fd_close(fd);
}

/* A packer has nobody left to write for, and an unpacker comes to the end of what it reads. */
static void abandon(struct archive *a)
{
	struct process *p = a->process;

	archive_free(a);
	if (p) process_detach(p);
}

static int on_frame(struct channel *c, const struct frame *f)
{
	struct archive *a = container_of(c, struct archive, channel);
	struct msg_reset m;

	if (f->type != MSG_reset || msg_reset_parse(f, &m) < 0) return -EPROTO;
	if (m.kill && a->process) process_signal(a->process, SIGKILL);
	break_off(a);
	abandon(a);
	return 0;
}

static void on_lost(struct channel *c)
{
	abandon(container_of(c, struct archive, channel));
}

static const struct channel_ops ops = {.on_frame = on_frame, .on_lost = on_lost};

static int open_channel(struct peer *p, const struct frame *f, bool packs)
{
	auto_close int fd = peer_take_fd();
	struct archive *a;
	struct stat st;

	/* A peer that breaks the protocol, not one whose pipe is odd: there is no other use for the
	 * descriptor. */
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode)) return -EPROTO;
	a = mem_new(sizeof *a);
	a->client = (struct process_client){.room = words_room, .on_output = on_words, .on_end = on_end};
	a->wait.on_ready = on_ready;
	a->wait.on_refused = on_refused;
	a->packs = packs;
	a->pipe_fd = take_fd(&fd);
	if (channel_open(&a->channel, p, f->channel, &ops) < 0) {
		fd_close(a->pipe_fd);
		free(a);
		return -EPROTO;
	}
	start_wait(&a->wait, f);
	return 0;
}

int pack_open(struct peer *p, const struct frame *f)
{
	struct msg_open_pack m;

	return msg_open_pack_parse(f, &m) < 0 ? -EPROTO : open_channel(p, f, true);
}

int unpack_open(struct peer *p, const struct frame *f)
{
	struct msg_open_unpack m;

	return msg_open_unpack_parse(f, &m) < 0 ? -EPROTO : open_channel(p, f, false);
}

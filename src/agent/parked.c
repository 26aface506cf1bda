/*
 * parked.c - from clone to pid 1 of a sandbox.
 *
 * Waiting costs nothing; `bind` brings everything that makes us somebody. We contain ourselves as it says,
 * listen on the given socket *afterwards* (whoever connects sees the credentials of the last listen(): they
 * must be the sandbox's), say `bound`, and run the reactor for ever. When the bond closes before `bind`, we
 * end; later we live on, for the next keeper.
 */
#include "agent/parked.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/archive.h"
#include "agent/exec.h"
#include "agent/file.h"
#include "agent/follow.h"
#include "agent/grant.h"
#include "agent/keeping.h"
#include "agent/peers.h"
#include "agent/process.h"
#include "agent/process_signal.h"
#include "agent/reactor.h"
#include "agent/report.h"
#include "agent/session_open.h"
#include "agent/spawn.h"
#include "agent/starting.h"
#include "agent/terminal.h"
#include "agent/view.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/mem.h"
#include "isolation/contain.h"
#include "isolation/seccomp.h"
#include "wire/link.h"

#define LISTEN_BACKLOG 16

/* What `bind` said, kept beyond its packet. */
struct kit {
	bool come;
	char run[UUID_LEN + 1];
	uint32_t base_id;
	uint32_t flags; /* enum bind_flag */
	uint8_t cookie[COOKIE_MAX];
	size_t cookie_len;
	int fds[BIND_FDS]; /* -1: absent */
};

/* In the order of enum bind_fd; those that may be absent are left out. */
static int take_kit_fds(struct kit *kit, int *fds, size_t fd_count)
{
	size_t used = 0;

	for (size_t i = 0; i < BIND_FDS; i++) {
		kit->fds[i] = -1;
		if (i == BIND_USR_TREE && (kit->flags & BIND_OWN_USR)) continue;
		if (used < fd_count) kit->fds[i] = take_fd(&fds[used++]);
		else if (i != BIND_FRONT) return -EPROTO;
	}
	return 0;
}

static int on_bind(void *ctx, const uint8_t *bytes, size_t len, int *fds, size_t fd_count)
{
	struct frame_reader reader = frame_reader_of(bytes, len);
	struct kit *kit = ctx;
	struct msg_bind m;
	struct frame f;

	if (frame_reader_next(&reader, &f) != 1) return -EPROTO;
	if (f.type == MSG_hello) return 0;
	if (msg_bind_parse(&f, &m) < 0 || m.run.len > UUID_LEN || m.cookie.len > COOKIE_MAX) return -EPROTO;
	memcpy(kit->run, m.run.at, m.run.len + 1);
	kit->base_id = m.base_id;
	kit->flags = m.flags;
	memcpy(kit->cookie, m.cookie.at, m.cookie.len);
	kit->cookie_len = m.cookie.len;
	kit->come = true;
	return take_kit_fds(kit, fds, fd_count);
}

static int wait_for_kit(struct link *bond, struct kit *kit)
{
	struct pollfd p = {.fd = link_fd(bond), .events = POLLIN};

	while (!kit->come) {
		int r;

		(void)poll(&p, 1, -1);
		r = link_read(bond, 1, on_bind, kit);
		if (r < 0) return r;
	}
	return 0;
}

static int become(const struct kit *kit, struct err *e)
{
	struct contain_spec spec = {.run = kit->run,
				    .base_id = kit->base_id,
				    .userns_fd = kit->fds[BIND_USERNS],
				    .netns_fd = kit->fds[BIND_NETNS],
				    .root_tree_fd = kit->fds[BIND_ROOT_TREE],
				    .usr_tree_fd = kit->fds[BIND_USR_TREE],
				    .data_tree_fd = kit->fds[BIND_DATA_TREE],
				    .filter = seccomp_sandbox_filter()};
	int r = contain(&spec, e);

	if (r < 0) return r;
	if (listen(kit->fds[BIND_LISTEN], LISTEN_BACKLOG) < 0)
		return err_set(e, -errno, "listen for the next keeper");
	return 0;
}

static void on_turn(void)
{
	keeping_turn();
	peers_turn();
}

static int serve(struct kit *kit, struct link *bond, struct err *e)
{
	static const struct channel_kind kinds[] = {{MSG_open_exec, exec_open},
						    {MSG_open_list, list_open},
						    {MSG_open_follow, follow_open},
						    {MSG_open_terminal, terminal_open},
						    {MSG_open_signal, signal_open},
						    {MSG_open_read, file_read_open},
						    {MSG_open_write, file_write_open},
						    {MSG_open_session, session_open},
						    {MSG_open_pack, pack_open},
						    {MSG_open_unpack, unpack_open},
						    {0, NULL}};
	static const struct bond_events bond_events = {.on_renewed = grant_bond_renewed,
						       .on_limits = grant_received};
	struct link *front = kit->fds[BIND_FRONT] >= 0 ? link_new(kit->fds[BIND_FRONT]) : NULL;
	int r = spawn_init();

	if (r == 0) r = reactor_open(processes_reap);
	if (r == 0)
		r = peers_open(kit->fds[BIND_LISTEN], bond, front, kit->cookie, kit->cookie_len, kinds,
			       &bond_events);
	if (r < 0) return err_set(e, r, "set up the agent");
	starting_init();
	view_init(kit->base_id);
	reactor_on_turn(on_turn);
	return 0;
}

void parked_run(int bond_fd)
{
	struct link *bond = link_new(bond_fd);
	struct msg_bound answer = {.text = wire_text_of("")};
	struct err e = ERR_NONE;
	struct kit kit = {0};
	int r;

	(void)prctl(PR_SET_NAME, "tombolo-agent");
	/* What fails here fails again in contain(), which can tell somebody. */
	(void)contain_park(&e);
	if (wait_for_kit(bond, &kit) < 0) _exit(0);
	r = become(&kit, &e);
	if (r == 0) r = serve(&kit, bond, &e);
	if (r < 0) {
		answer.error = -r;
		answer.text = wire_text_of(e.text);
	}
	r = LINK_SEND(bond, 0, bound, &answer, NULL, 0);
	if (answer.error) _exit(1);
	/* The trees are part of our mount namespace by now; closing the rest is nobody's wait. */
	for (size_t i = 0; i < BIND_LISTEN; i++)
		fd_close(kit.fds[i]);
	reactor_run();
}

#include "keeper/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/id.h"

static int open_part(int dir_fd, const char *name, int *ret_fd, struct err *e)
{
	int fd;

	if (mkdirat(dir_fd, name, 0700) < 0 && errno != EEXIST) return err_set(e, -errno, "make %s/", name);
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) return err_set(e, -errno, "open %s/", name);
	*ret_fd = fd;
	return 0;
}

/* The name is as good as any other random one; a file that holds none is written again. */
static int load_name(int dir_fd, char name[STATE_NAME_LEN + 1], struct err *e)
{
	char made[SANDBOX_ID_MADE + 1];
	ssize_t n = fd_read_file(dir_fd, "name", name, STATE_NAME_LEN + 1);

	if (n == STATE_NAME_LEN && id_is_sandbox(name, STATE_NAME_LEN)) return 0;
	id_make_sandbox(made);
	memcpy(name, made, STATE_NAME_LEN);
	name[STATE_NAME_LEN] = '\0';
	auto_close int fd = openat(dir_fd, "name", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0) return err_set(e, -errno, "write the server's name");
	int r = fd_write_all(fd, name, STATE_NAME_LEN);
	if (r == 0 && fsync(fd) < 0) r = -errno;
	return r < 0 ? err_set(e, r, "write the server's name") : 0;
}

int state_open(const char *path, struct state *ret, struct err *e)
{
	int r;

	if (!realpath(path, ret->path)) return err_set(e, -errno, "open the state directory '%s'", path);
	int dir_fd = open(ret->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0) return err_set(e, -errno, "open the state directory '%s'", path);
	ret->dir_fd = dir_fd;
	r = load_name(dir_fd, ret->name, e);
	if (r == 0) r = open_part(dir_fd, "sandboxes", &ret->sandboxes_fd, e);
	if (r == 0) r = open_part(dir_fd, "spare", &ret->spare_fd, e);
	if (r == 0) r = open_part(dir_fd, "run", &ret->run_fd, e);
	if (r == 0) r = open_part(dir_fd, "trash", &ret->trash_fd, e);
	if (r == 0) r = open_part(dir_fd, "images", &ret->images_fd, e);
	if (r < 0) err_add(e, "state directory '%s'", path);
	return r;
}

static struct sockaddr_un socket_address(const struct state *s, uint32_t base_id)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	(void)snprintf(a.sun_path, sizeof a.sun_path, "/proc/self/fd/%d/%08x.sock", s->run_fd, base_id);
	return a;
}

int state_socket_bind(const struct state *s, uint32_t base_id)
{
	struct sockaddr_un a = socket_address(s, base_id);
	auto_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) < 0) return -errno;
	return take_fd(&fd);
}

int state_socket_connect(const struct state *s, uint32_t base_id)
{
	struct sockaddr_un a = socket_address(s, base_id);
	auto_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) < 0) return -errno;
	return take_fd(&fd);
}

int state_socket_unlink(const struct state *s, uint32_t base_id)
{
	char name[16];

	(void)snprintf(name, sizeof name, "%08x.sock", base_id);
	return fd_remove(s->run_fd, name, 0);
}

#include "floor_relay.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "floor_local.h"

struct file_floor {
	pid_t server;
	int fd;
	char *buffer;
};

struct request {
	uint32_t put;
	uint32_t size;
};

static char server_buffer[COPY_SIZE];

static int receive_file(int fd, const char *name, size_t left)
{
	auto_close int file_fd = open(".part", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	while (left) {
		ssize_t n = recv(fd, server_buffer, MIN(left, sizeof server_buffer), 0);
		if (n <= 0 || fd_write_all(file_fd, server_buffer, (size_t)n) < 0) return -EIO;
		left -= (size_t)n;
	}
	if (rename(".part", name) < 0) return -errno;
	return fd_write_all(fd, "", 1);
}

static int send_file(int fd, const char *name, size_t left)
{
	auto_close int file_fd = open(name, O_RDONLY | O_CLOEXEC);

	while (left) {
		ssize_t n = read(file_fd, server_buffer, MIN(left, sizeof server_buffer));
		if (n <= 0 || fd_write_all(fd, server_buffer, (size_t)n) < 0) return -EIO;
		left -= (size_t)n;
	}
	return 0;
}

static _Noreturn void serve(int listen_fd, const char *dir)
{
	struct request request;
	char name[16];
	int fd = local_accept(listen_fd), r = chdir(dir);

	while (r == 0 && recv(fd, &request, sizeof request, MSG_WAITALL) == sizeof request) {
		snprintf(name, sizeof name, "%u", request.size);
		r = request.put ? receive_file(fd, name, request.size) : send_file(fd, name, request.size);
	}
	_exit(r < 0);
}

int file_floor_new(const char *dir, struct file_floor **ret, struct err *e)
{
	int listen_fd, fd;
	unsigned port;

	int r = local_listen(&listen_fd, &port, e);
	if (r < 0) return r;
	pid_t pid = fork();
	if (pid == 0) serve(listen_fd, dir);
	close(listen_fd);
	if (pid < 0) return err_set(e, -errno, "fork");
	r = local_connect(port, &fd, e);
	if (r < 0) return r;
	*ret = mem_new(sizeof **ret);
	**ret = (struct file_floor){.server = pid, .fd = fd, .buffer = mem_new(COPY_SIZE)};
	return 0;
}

struct file_floor *file_floor_free(struct file_floor *f)
{
	if (!f) return NULL;
	close(f->fd);
	while (waitpid(f->server, NULL, 0) < 0 && errno == EINTR) {
	}
	free(f->buffer);
	free(f);
	return NULL;
}

int file_floor_get(struct file_floor *f, size_t size, struct err *e)
{
	struct request request = {.put = 0, .size = (uint32_t)size};
	int r = fd_write_all(f->fd, &request, sizeof request);

	for (size_t left = size; r == 0 && left;) {
		ssize_t n = recv(f->fd, f->buffer, MIN(left, (size_t)COPY_SIZE), 0);
		if (n <= 0) r = n < 0 ? -errno : -ECONNRESET;
		else left -= (size_t)n;
	}
	return r < 0 ? err_set(e, r, "get from the file floor") : 0;
}

int file_floor_put(struct file_floor *f, const void *bytes, size_t size, struct err *e)
{
	struct request request = {.put = 1, .size = (uint32_t)size};
	char done;
	int r = fd_write_all(f->fd, &request, sizeof request);

	if (r == 0) r = fd_write_all(f->fd, bytes, size);
	if (r == 0 && recv(f->fd, &done, 1, 0) != 1) r = -ECONNRESET;
	return r < 0 ? err_set(e, r, "put to the file floor") : 0;
}

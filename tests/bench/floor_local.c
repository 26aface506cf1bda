#include "floor_local.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/fd.h"

int local_listen(int *ret_fd, unsigned *ret_port, struct err *e)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof at;
	auto_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0) return err_set(e, -errno, "make a socket");
	if (bind(fd, (struct sockaddr *)&at, sizeof at) < 0)
		return err_set(e, -errno, "bind to the loopback");
	if (listen(fd, 8) < 0) return err_set(e, -errno, "listen");
	if (getsockname(fd, (struct sockaddr *)&at, &len) < 0) return err_set(e, -errno, "ask for the port");
	*ret_port = ntohs(at.sin_port);
	*ret_fd = take_fd(&fd);
	return 0;
}

int local_connect(unsigned port, int *ret_fd, struct err *e)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	auto_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;

	if (fd < 0) return err_set(e, -errno, "make a socket");
	if (connect(fd, (struct sockaddr *)&at, sizeof at) < 0)
		return err_set(e, -errno, "connect to a floor");
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	*ret_fd = take_fd(&fd);
	return 0;
}

int local_accept(int listen_fd)
{
	int on = 1, fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);

	(void)close(listen_fd);
	if (fd >= 0) (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	return fd;
}

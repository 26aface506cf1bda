#include "base/net.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

void net_set_service_options(int listen_fd)
{
	const int on = 1, idle_s = 60, step_s = 20, steps = 3;

	(void)setsockopt(listen_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	(void)setsockopt(listen_fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	(void)setsockopt(listen_fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
	(void)setsockopt(listen_fd, IPPROTO_TCP, TCP_KEEPINTVL, &step_s, sizeof step_s);
	(void)setsockopt(listen_fd, IPPROTO_TCP, TCP_KEEPCNT, &steps, sizeof steps);
}

#include "base/net.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit.h"

TEST(a_connection_has_the_options_of_its_listener)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof at, size = sizeof(int);
	int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0), value = 0;

	net_set_service_options(listener);
	ASSERT_OK(bind(listener, (struct sockaddr *)&at, sizeof at));
	ASSERT_OK(listen(listener, 1));
	ASSERT_OK(getsockname(listener, (struct sockaddr *)&at, &len));
	/* The client is connected before anybody accepts: what it gets was decided at listen(). */
	ASSERT_OK(connect(client, (struct sockaddr *)&at, sizeof at));
	int served = accept(listener, NULL, NULL);
	ASSERT_OK(getsockopt(served, IPPROTO_TCP, TCP_NODELAY, &value, &size));
	ASSERT_TRUE(value != 0);
	ASSERT_OK(getsockopt(served, SOL_SOCKET, SO_KEEPALIVE, &value, &size));
	ASSERT_TRUE(value != 0);
	close(served);
	close(client);
	close(listener);
}

TESTS(RUN(a_connection_has_the_options_of_its_listener))

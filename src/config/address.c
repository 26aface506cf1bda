#include "config/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "config/value.h"

/* "0" to "65535", nothing else. -1 otherwise. */
static long port_of(const char *text)
{
	char *end;
	long port;

	if (text[0] < '0' || text[0] > '9') return -1;
	port = strtol(text, &end, 10);
	return *end || port > UINT16_MAX ? -1 : port;
}

static bool set_ipv4(struct address *a, const char *host, long port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&a->at;

	if (inet_pton(AF_INET, host, &in->sin_addr) != 1) return false;
	in->sin_family = AF_INET;
	in->sin_port = htons((uint16_t)port);
	a->len = sizeof *in;
	return true;
}

static bool set_ipv6(struct address *a, const char *host, long port)
{
	struct sockaddr_in6 *in = (struct sockaddr_in6 *)&a->at;

	if (inet_pton(AF_INET6, host, &in->sin6_addr) != 1) return false;
	in->sin6_family = AF_INET6;
	in->sin6_port = htons((uint16_t)port);
	a->len = sizeof *in;
	return true;
}

static int parse_place(const char *text, struct address *ret, struct err *e)
{
	struct address a = {0};
	const char *colon = strrchr(text, ':');
	char host[ADDRESS_TEXT];
	size_t len;
	long port;
	bool ok;

	if (!colon)
		return err_say(e, -EINVAL, "'%s' has no port: write HOST:PORT, such as 127.0.0.1:8787", text);
	port = port_of(colon + 1);
	if (port < 0) return err_say(e, -EINVAL, "'%s' is no port (0 to 65535)", colon + 1);
	len = (size_t)(colon - text);
	if (len >= sizeof host) return err_say(e, -EINVAL, "'%s' is no address", text);
	memcpy(host, text, len);
	host[len] = '\0';

	if (host[0] == '[' && host[len - 1] == ']') {
		host[len - 1] = '\0';
		ok = set_ipv6(&a, host + 1, port);
	} else {
		ok = set_ipv4(&a, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, port);
	}
	if (!ok)
		return err_say(e, -EINVAL,
			       "'%s' is no address: write an IPv4, an IPv6 in brackets, or localhost", host);
	*ret = a;
	return 0;
}

int address_parse(const char *text, struct address *ret, struct err *e)
{
	static const char profiles[] = "union|legacy|stable|preview|next";
	size_t len = strcspn(text, "=");
	const char *profile = text[len] ? text + len + 1 : "";
	struct address a;
	char place[128];
	int r;

	if (text[len] && !value_is_word_of(profile, profiles))
		return err_say(e, -EINVAL, "'%.60s' is no profile: write one of %s", profile, profiles);
	(void)snprintf(place, sizeof place, "%.*s", (int)len, text);
	r = parse_place(place, &a, e);
	if (r < 0) return r;
	(void)snprintf(a.profile, sizeof a.profile, "%s", profile);
	*ret = a;
	return 0;
}

int addresses_parse(const char *text, struct address ret[ADDRESSES_MAX], struct err *e)
{
	int count = 0;

	for (const char *at = text;; at++) {
		size_t len = strcspn(at, ",");
		char one[ADDRESS_TEXT + ADDRESS_PROFILE];
		int r;

		if (count == ADDRESSES_MAX)
			return err_say(e, -EINVAL, "more than %d addresses", ADDRESSES_MAX);
		(void)snprintf(one, sizeof one, "%.*s", (int)len, at);
		r = address_parse(one + strspn(one, " "), &ret[count], e);
		if (r < 0) return r;
		count++;
		at += len;
		if (!*at) return count;
	}
}

bool address_is_loopback(const struct address *a)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&a->at;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&a->at;

	if (a->at.ss_family == AF_INET) return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

void address_text(const struct address *a, char text[ADDRESS_TEXT])
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&a->at;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&a->at;
	char host[INET6_ADDRSTRLEN] = "";

	if (a->at.ss_family == AF_INET) {
		(void)inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
		(void)snprintf(text, ADDRESS_TEXT, "%s:%u", host, ntohs(v4->sin_port));
	} else {
		(void)inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
		(void)snprintf(text, ADDRESS_TEXT, "[%s]:%u", host, ntohs(v6->sin6_port));
	}
}

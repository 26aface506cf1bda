/*
 * address.h - HOST:PORT[=PROFILE] as text and as what bind(2) takes. Numbers only: no resolver is asked.
 */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

struct err;

#define ADDRESS_TEXT    64 /* "[ipv6]:65535" and a NUL */
#define ADDRESSES_MAX   8
#define ADDRESS_PROFILE 8

struct address {
	struct sockaddr_storage at;
	socklen_t len;
	char profile[ADDRESS_PROFILE + 1]; /* "": the server's */
};

/* "127.0.0.1:8787", "[::1]:0", "localhost:80=next". -EINVAL with a sentence. */
int address_parse(const char *text, struct address *ret, struct err *e);

/* A comma-separated list of at most ADDRESSES_MAX. The count, or -EINVAL. */
int addresses_parse(const char *text, struct address ret[ADDRESSES_MAX], struct err *e);

/* Whether only this host can reach it. */
bool address_is_loopback(const struct address *a);

void address_text(const struct address *a, char text[ADDRESS_TEXT]);

/* net.h - sockets, the way all our programs want them. */
#pragma once

/*
 * What a listening socket hands on to each connection (tcp(7)): no delay for small writes, and a peer that
 * vanished without a word is noticed after two minutes. Set before listen(): a connection made earlier would
 * go without. Sockets that are not TCP are left as they are.
 */
void net_set_service_options(int listen_fd);

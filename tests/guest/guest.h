/*
 * guest.h - a static program that runs inside a sandbox and tells what it finds: one fact a line, "name
 * value".
 *
 * It judges nothing: what the values should be stands in tests/contain/facts.def.
 */
#pragma once

#include <errno.h>

void fact(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "OK" when the call did not fail, else the name of the errno. RESULT is the call itself. */
void fact_call(const char *name, long result);

/* Who we are, what we see. */
void tell_identity(void);
void tell_processes(void);
void tell_proc(const char *host_word);
void tell_files(const char *host_path);
void tell_devices(void);
void tell_network(const char *host_socket);

/* What the kernel lets us do. */
void tell_mounting(void);
void tell_machinery(void);
void tell_sockets(void);
void tell_filter(void);

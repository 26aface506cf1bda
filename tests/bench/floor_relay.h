/*
 * floor_relay.h - what moving bytes costs when nothing is done with them.
 *
 * relay_floor_run: a program's pipe, a process that copies it to a unix socket, a process that copies that to
 * TCP, and a reader: the way of a command's output, without framing, base64, log, credit and HTTP.
 *
 * file_floor_*: a process that copies files to and from one TCP connection with read and write: the way of
 * GET and PUT.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct err;
struct file_floor;

/* ARGV is the program that writes; *RET_BYTES what arrived. */
int relay_floor_run(char *const argv[], double *ret_us, uint64_t *ret_bytes, struct err *e);

/* Serves files in DIR, each named after its size. */
int file_floor_new(const char *dir, struct file_floor **ret, struct err *e);
struct file_floor *file_floor_free(struct file_floor *f);

/* Fetches SIZE bytes, or stores those of BYTES; PUT before the first GET of a size. */
int file_floor_get(struct file_floor *f, size_t size, struct err *e);
int file_floor_put(struct file_floor *f, const void *bytes, size_t size, struct err *e);

/* report.h - the samples as a table for people and as JSON for programs. */
#pragma once

struct bench;
struct err;

void report_print(const struct bench *b);
int report_write_json(const struct bench *b, const char *path, struct err *e);

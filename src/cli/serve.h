/* serve.h - the command `tombolo serve`: a server in the foreground. */
#pragma once

/* Returns the exit status: 0 after a clean stop, 1 when it could not serve, 2 for wrong options. */
int serve_main(int argc, char **argv);

#include "agent/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

#define TTY_GID 5

/* Of bytes that are deleted by one key: characters, not bytes. */
static void set_utf8(int fd)
{
	struct termios t;

	if (tcgetattr(fd, &t) < 0) return;
	t.c_iflag |= IUTF8;
	(void)tcsetattr(fd, TCSANOW, &t);
}

int pty_open(uint32_t uid, uint16_t cols, uint16_t rows, int *ret_master_fd, int *ret_slave_fd, struct err *e)
{
	/* Not /dev/ptmx: what that is may be changed by the sandbox's root. */
	auto_close int master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	struct winsize size = {.ws_col = cols, .ws_row = rows};
	auto_close int slave = -1;
	int unlocked = 0;

	if (master < 0) return err_set(e, -errno, "open a terminal");
	if (ioctl(master, TIOCSPTLCK, &unlocked) < 0) return err_set(e, -errno, "unlock the terminal");
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0) return err_set(e, -errno, "open the program's end of the terminal");
	if (ioctl(slave, TIOCSWINSZ, &size) < 0) return err_set(e, -errno, "set the size of the terminal");
	set_utf8(slave);
	if (fchown(slave, uid, TTY_GID) < 0) return err_set(e, -errno, "give the terminal to user %u", uid);
	*ret_master_fd = take_fd(&master);
	*ret_slave_fd = take_fd(&slave);
	return 0;
}

void pty_resize(int master_fd, uint16_t cols, uint16_t rows)
{
	struct winsize size = {.ws_col = cols, .ws_row = rows}, before = {0};
	pid_t group = -1;

	(void)ioctl(master_fd, TIOCGWINSZ, &before);
	if (before.ws_col != cols || before.ws_row != rows) {
		(void)ioctl(master_fd, TIOCSWINSZ, &size); /* sends SIGWINCH by itself */
		return;
	}
	if (ioctl(master_fd, TIOCGPGRP, &group) == 0 && group > 1) (void)kill(-group, SIGWINCH);
}

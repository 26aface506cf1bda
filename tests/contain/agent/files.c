/* Files through the agent: read, replaced whole or not at all, and nothing from outside of the sandbox. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "rig.h"
#include "unit.h"

static void sh(const char *script)
{
	auto_run struct run r = {0};
	struct msg_open_exec m = RIG_SH(script);

	rig_run(&r, &m);
	if (r.end.code) fail_msg("%s: %s", script, buf_text(&r.err));
}

static void assert_sh(const char *script, const char *output)
{
	auto_run struct run r = {0};
	struct msg_open_exec m = RIG_SH(script);

	rig_run(&r, &m);
	ASSERT_STR(buf_text(&r.out), output);
}

static void assert_refused(bool write, uint32_t uid, const char *path, int error)
{
	auto_run struct run r = {0};

	rig_start_file(&r, write, uid, path);
	rig_until(run_ended, &r);
	ASSERT_FALSE(r.opened);
	ASSERT_EQ(r.end.reason, END_FAILED);
	ASSERT_EQ(r.end.error, error);
	ASSERT_TRUE(r.end_text[0] != '\0');
}

static void put(uint32_t uid, const char *path, const char *text)
{
	auto_run struct run r = {0};

	rig_start_file(&r, true, uid, path);
	rig_until(run_opened, &r);
	if (r.ended) fail_msg("%s", r.end_text);
	ASSERT_OK(fd_write_all(r.fd, text, strlen(text)));
	rig_commit(&r);
	rig_until(run_ended, &r);
	ASSERT_EQ(r.end.reason, END_DONE);
}

TEST(a_file_is_read_with_its_size_mode_and_time)
{
	auto_run struct run r = {0};
	char text[64] = "";

	sh("printf hello > f; chmod 640 f; touch -d @1234567890.5 f");
	rig_start_file(&r, false, 1000, "/workspace/f");
	rig_until(run_ended, &r);
	ASSERT_TRUE(r.opened);
	ASSERT_EQ(r.end.reason, END_DONE);
	ASSERT_EQ(r.about.size, 5);
	ASSERT_EQ(r.about.mode, 0640);
	ASSERT_EQ(r.about.mtime_ns, 1234567890500000000ull);
	ASSERT_EQ(read(r.fd, text, sizeof text), 5);
	ASSERT_STR(text, "hello");
	ASSERT_TRUE(write(r.fd, "x", 1) < 0);
	ASSERT_STR(buf_text(&r.out), "hello"); /* it is small: its content came along */
}

TEST(a_large_file_comes_as_a_descriptor_only)
{
	auto_run struct run r = {0};

	sh("head -c 100000 /dev/zero > large");
	rig_start_file(&r, false, 1000, "/workspace/large");
	rig_until(run_ended, &r);
	ASSERT_EQ(r.about.size, 100000);
	ASSERT_EQ(r.out.len, 0);
}

TEST(a_small_file_is_written_whole_in_one_step)
{
	auto_run struct run r = {0}, again = {0}, empty = {0}, refused = {0};

	rig_start_whole(&r, 1000, "/workspace/w/new.txt", "first");
	rig_until(run_ended, &r);
	ASSERT_EQ(r.end.reason, END_DONE);
	ASSERT_FALSE(r.opened);
	assert_sh("cat w/new.txt; stat -c ' %a %u' w/new.txt; ls -A w | wc -l", "first 644 1000\n1\n");
	rig_start_whole(&again, 1000, "/workspace/w/new.txt", "second");
	rig_until(run_ended, &again);
	assert_sh("cat w/new.txt", "second");
	rig_start_whole(&empty, 1000, "/workspace/w/empty", "");
	rig_until(run_ended, &empty);
	assert_sh("stat -c %s w/empty; ls -A w | wc -l", "0\n2\n");
	rig_start_whole(&refused, 1000, "/workspace/w", "x");
	rig_until(run_ended, &refused);
	ASSERT_EQ(refused.end.reason, END_FAILED);
	ASSERT_EQ(refused.end.error, EISDIR);
}

TEST(what_is_no_readable_plain_file_is_refused_with_its_reason)
{
	sh("mkdir -p d; mkfifo fifo; ln -sf loop loop; ln -sf /proc/1/environ magic; ln -sf "
	   "/proc/1/root/etc/passwd m2;"
	   "printf x > secret; chmod 000 secret; ln -sf /dev/null null");
	assert_refused(false, 1000, "/workspace/none", ENOENT);
	assert_refused(false, 1000, "/workspace/d", EISDIR);
	assert_refused(false, 1000, "/workspace/fifo", EINVAL);
	assert_refused(false, 1000, "/workspace/loop", ELOOP);
	assert_refused(false, 1000, "/workspace/magic", EACCES);
	assert_refused(false, 1000, "/workspace/m2", ELOOP);
	assert_refused(false, 1000, "/workspace/secret", EACCES);
	assert_refused(false, 1000, "/workspace/null", EINVAL);
	assert_refused(false, 1000, "/proc/self/status", EXDEV);
	assert_refused(false, 0, "/proc/self/environ", EACCES);
	assert_refused(false, 0, "/proc/self/exe", ELOOP);
	assert_refused(false, 1000, "/etc/passwd/x", ENOTDIR);
}

TEST(an_absolute_link_stays_inside)
{
	auto_run struct run r = {0};
	char text[32] = "";

	sh("ln -sf /workspace/target abs; printf inside > target; ln -sf ../../../../../workspace/target up");
	rig_start_file(&r, false, 1000, "/workspace/up");
	rig_until(run_ended, &r);
	ASSERT_EQ(read(r.fd, text, sizeof text), 6);
	ASSERT_STR(text, "inside");
}

TEST(a_write_makes_directories_and_belongs_to_the_user)
{
	put(1000, "/workspace/a/b/c.txt", "first");
	assert_sh("cat a/b/c.txt; stat -c ' %a %u %g' a/b/c.txt; stat -c '%a %u' a/b; ls -A a/b | wc -l",
		  "first 644 1000 1000\n755 1000\n1\n");
}

TEST(an_existing_file_keeps_its_mode_and_a_link_to_it_stays_a_link)
{
	sh("printf old > real; chmod 755 real; mkdir -p sub; ln -sf ../real sub/link; ln -sf new-target "
	   "dangling");
	put(1000, "/workspace/sub/link", "new");
	assert_sh("cat real; stat -c ' %a' real; readlink sub/link; ls -A sub", "new 755\n../real\nlink\n");
	put(1000, "/workspace/dangling", "made");
	assert_sh("cat new-target; readlink dangling", "madenew-target\n");
}

TEST(a_write_that_is_dropped_leaves_the_old_file_whole)
{
	auto_run struct run r = {0}, list = {0};

	sh("mkdir -p drop; printf old > drop/f");
	rig_start_file(&r, true, 1000, "/workspace/drop/f");
	rig_until(run_opened, &r);
	ASSERT_OK(fd_write_all(r.fd, "half", 4));
	rig_reset(&r, false);
	rig_start_list(&list);
	rig_until(run_ended, &list);
	assert_sh("cat drop/f; ls -A drop", "oldf\n");
}

TEST(writes_to_other_places_are_refused)
{
	sh("mkdir -p dir; mkfifo -m 666 pipe || true; ln -sfn / rootlink");
	assert_refused(true, 1000, "/workspace/dir", EISDIR);
	assert_refused(true, 1000, "/workspace/pipe", EINVAL);
	assert_refused(true, 1000, "/root/x", EACCES);
	assert_refused(true, 1000, "/workspace/rootlink/etc/new", EACCES);
	assert_refused(true, 1000, "/usr/bin/new", EROFS);
	assert_refused(true, 1000, "/workspace/real/x", ENOTDIR);
	assert_refused(true, 1000, "/workspace/", EISDIR);
}

TEST(links_that_flip_while_we_look_lead_nowhere_outside)
{
	auto_run struct run flip = {0};
	struct msg_open_exec m = RIG_SH(
		"mkdir -p race/d; printf inside > race/d/passwd; ln -sfn /proc/1/root/etc race/l; echo go;"
		"exec python3 -c \"\nimport ctypes\nc=ctypes.CDLL(None)\nwhile 1: "
		"c.renameat2(-100,b'race/d',-100,b'race/l',2)\"");
	unsigned right = 0;

	rig_start(&flip, &m);
	while (!flip.out_bytes)
		rig_pump(1000);
	for (int i = 0; i < 1500; i++) {
		auto_run struct run r = {0};
		char text[64] = "";

		rig_start_file(&r, false, 1000, "/workspace/race/d/passwd");
		rig_until(run_ended, &r);
		if (!r.opened) continue;
		ASSERT_TRUE(read(r.fd, text, sizeof text - 1) > 0);
		ASSERT_STR(text, "inside");
		right++;
	}
	ASSERT_TRUE(right > 0);
	rig_signal(&flip, 9);
	rig_until(run_ended, &flip);
}

RIG_TESTS(RUN(a_file_is_read_with_its_size_mode_and_time), RUN(a_large_file_comes_as_a_descriptor_only),
	  RUN(a_small_file_is_written_whole_in_one_step),
	  RUN(what_is_no_readable_plain_file_is_refused_with_its_reason), RUN(an_absolute_link_stays_inside),
	  RUN(a_write_makes_directories_and_belongs_to_the_user),
	  RUN(an_existing_file_keeps_its_mode_and_a_link_to_it_stays_a_link),
	  RUN(a_write_that_is_dropped_leaves_the_old_file_whole), RUN(writes_to_other_places_are_refused),
	  RUN(links_that_flip_while_we_look_lead_nowhere_outside))

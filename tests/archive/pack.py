"""tombolo-tar pack: what it writes, as the strictest client and as other programs read it."""
import io
import os
import socket
import subprocess
import tarfile

import profile_  # the name `profile` is taken by the standard library
from harness import BY_FD, PROGRAM_FD, Case, have, main, picture, tar, write


class Profile(Case):
    def names(self, *excludes):
        return sorted(m.name for m in profile_.members(self.pack(self.old, *excludes)))

    def test_an_empty_tree_is_its_root(self):
        os.mkdir(self.path("empty"))
        self.assertEqual([m.name for m in profile_.members(self.pack(self.path("empty")))], [b"./"])

    def test_content_modes_and_times(self):
        write(self.old + "/x", b"x" * 70000, 0o4751)
        os.utime(self.old + "/x", (1, 1234567890))
        os.chmod(self.old + "/kept", 0o3775)
        by_name = {m.name: m for m in profile_.members(self.pack(self.old))}
        self.assertEqual(by_name[b"./x"].content, b"x" * 70000)
        self.assertEqual((by_name[b"./x"].mode, by_name[b"./x"].mtime), (0o4751, 1234567890))
        self.assertEqual(by_name[b"./kept/"].mode, 0o3775)
        self.assertEqual(by_name[b"./link"].target, b"kept")

    def test_hard_links_are_independent_files_and_odd_things_are_left_out(self):
        os.link(self.old + "/a", self.old + "/b")
        os.mkfifo(self.old + "/fifo")
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(self.old + "/socket")
            by_name = {m.name: m for m in profile_.members(self.pack(self.old))}
        self.assertEqual(by_name[b"./a"].content, by_name[b"./b"].content)
        self.assertNotIn(b"./fifo", by_name)
        self.assertNotIn(b"./socket", by_name)

    def test_names_of_every_length_around_the_fields(self):
        os.mkdir(self.path("t"))
        wanted = set()
        for length in [1, 90, 96, 97, 98, 99, 100, 101, 150, 153, 154, 155, 200, 250, 252, 255]:
            write(self.path("t/") + "n" * length, b"1")
            wanted.add(b"./" + b"n" * length)
            os.makedirs(self.path("t/") + "d" * length + "/" + "e" * 98)
            wanted |= {b"./" + b"d" * length + b"/", b"./" + b"d" * length + b"/" + b"e" * 98 + b"/"}
            os.symlink("t" * length, self.path("t/l") + str(length))
            wanted.add(b"./l%d" % length)
        archive = self.pack(self.path("t"))
        self.assertEqual({m.name for m in profile_.members(archive)}, wanted | {b"./"})
        with tarfile.open(fileobj=io.BytesIO(archive)) as t:
            self.assertEqual({os.fsencode(n) for n in t.getnames()},
                             {n.rstrip(b"/") for n in wanted} | {b"."})

    def test_a_file_of_8_gib_fails_and_the_reason_names_it(self):
        with open(self.old + "/huge", "wb") as f:
            f.truncate(8 << 30)
        result = tar("pack", self.old)
        self.assertEqual(result.code, 2)
        self.assertIn("huge", result.message)
        self.assertNotIn(b"./huge", result.out)

    def test_an_unreadable_file_fails_but_the_rest_is_there(self):
        write(self.old + "/secret\n", b"", 0)
        os.mkdir(self.old + "/shut", 0)
        if os.geteuid() == 0:
            self.skipTest("root can read everything")
        result = tar("pack", self.old)
        self.assertEqual(result.code, 2)
        self.assertEqual(result.message.count("\n"), 1)
        self.assertIn(b"./kept/deep/file", [m.name for m in profile_.members(result.out)])

    def test_a_missing_root_is_a_failure_with_its_name(self):
        result = tar("pack", self.path("nowhere"))
        self.assertEqual((result.code, result.out), (2, b""))
        self.assertIn("nowhere", result.message)

    def test_a_reader_that_leaves_ends_it(self):
        with open(self.old + "/big", "wb") as f:
            f.truncate(64 << 20)
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(["tombolo-tar", "pack", self.old], executable=BY_FD, env={},
                              pass_fds=[PROGRAM_FD], stdout=writer, stderr=subprocess.PIPE, timeout=60)
        os.close(writer)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"Broken pipe", done.stderr)

    def test_a_changing_file_is_a_warning_and_the_archive_stays_whole(self):
        # The program blocks on the full pipe with most of the file unread: then the file changes.
        for name, size, word in [("shrinks", 1 << 20, "shrank"), ("grows", 96 << 20, "grew")]:
            with self.subTest(name):
                os.mkdir(self.path(name))
                with open(self.path(name) + "/big", "wb") as f:
                    f.truncate(64 << 20)
                child = subprocess.Popen(["tombolo-tar", "pack", self.path(name)], executable=BY_FD, env={},
                                         pass_fds=[PROGRAM_FD], bufsize=0, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE)
                head = child.stdout.read(4096)
                os.truncate(self.path(name) + "/big", size)
                rest, message = child.communicate(timeout=60)
                self.assertEqual(child.returncode, 1, message)
                self.assertIn(word.encode(), message)
                self.assertEqual(profile_.members(head + rest)[1].size, 64 << 20)

    # Field case C070
    def test_excludes(self):
        for name in [".git/x", "node_modules/y", "a_/b/z", "with", ".gitignore_", "sub/.git/keep"]:
            os.makedirs(self.old + "/" + name)
        write(self.old + "/.gitignore")
        write(self.old + "/ab")
        kept = self.names(".git", "./node_modules", "a_/b/", "", ".", "./")
        for gone in [b"./.git/", b"./.git/x/", b"./node_modules/", b"./node_modules/y/",
                     b"./a_/b/", b"./a_/b/z/"]:
            self.assertNotIn(gone, kept)
        for there in [b"./.gitignore", b"./ab", b"./a_/", b"./with/", b"./sub/.git/", b"./sub/.git/keep/"]:
            self.assertIn(there, kept)

    @have("tar")
    def test_excludes_match_as_tar_does(self):
        for name in ["x.pyc", "d/x.pyc", "d/e/y.pyc", "d/e/f", "[z]", "z", "q?", "qq"]:
            os.makedirs(os.path.dirname(self.old + "/" + name), exist_ok=True)
            write(self.old + "/" + name)
        for pattern in ["*.pyc", "d/*", "d/*/y*", "[a-d]", "*", "d/e", "?",
                        "\\[z\\]", "q\\?", "k*t/deep", "*/f*"]:
            with self.subTest(pattern):
                theirs = subprocess.run(["tar", "-C", self.old, "--exclude=./" + pattern, "-cf", "-", "."],
                                        check=True, stdout=subprocess.PIPE).stdout
                with tarfile.open(fileobj=io.BytesIO(theirs)) as t:
                    names = sorted(m.name.encode() + (b"/" if m.isdir() else b"") for m in t)
                self.assertEqual(self.names(pattern), names)

    def test_what_a_killed_restore_left_is_not_archived(self):
        os.mkdir(self.old + "/.tombolo-unpack-0123")
        os.makedirs(self.old + "/kept/.tombolo-unpack-0123")
        self.assertEqual([n for n in self.names() if b"tombolo" in n], [b"./kept/.tombolo-unpack-0123/"])

    @have("tar")
    def test_gnu_tar_reads_it_back_the_same(self):
        for i in range(300):
            write(self.old + f"/kept/f{i}", os.urandom(i * 11))
        write(self.old + "/kept/" + "n" * 250, os.urandom(3 << 20))
        os.mkdir(self.path("back"))
        subprocess.run(["tar", "-C", self.path("back"), "-xpf", "-"], input=self.pack(self.old), check=True)
        self.assertEqual(picture(self.path("back")), picture(self.old))


class Usage(Case):
    def test_anything_else_is_exit_3(self):
        for args in [[], ["pack"], ["unpack"], ["unpack", "a", "b"], ["list", "a"]]:
            self.assertEqual(tar(*args).code, 3)


if __name__ == "__main__":
    main()

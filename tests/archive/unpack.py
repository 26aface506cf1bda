"""tombolo-tar unpack: round trips, archives of other programs, hostile ones."""
import bz2
import fcntl
import gzip
import io
import lzma
import os
import resource
import signal
import stat
import subprocess
import tarfile

from harness import BY_FD, PROGRAM_FD, SANITIZED, Case, have, main, picture, tar, write


def archive(*members, format=tarfile.PAX_FORMAT):
    """Made of (name, type, content or target) or whole TarInfo objects."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as t:
        for m in members:
            if isinstance(m, tarfile.TarInfo):
                t.addfile(m)
                continue
            name, type_, content = m
            info = tarfile.TarInfo(name)
            info.type = type_
            info.mode = 0o755 if type_ == tarfile.DIRTYPE else 0o644
            if type_ == tarfile.REGTYPE:
                info.size = len(content)
                t.addfile(info, io.BytesIO(content))
            else:
                info.linkname = content
                t.addfile(info)
    return out.getvalue()


FILE, DIR, SYM, LINK = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE


class RoundTrip(Case):
    # Field case C069
    def test_an_odd_tree(self):
        root = self.path("odd")
        os.mkdir(root)
        odd = [b"new\nline", b'quo"te', b"quo'te", b"-dash", b" space ", b"\xff\xfe\x80",
               "grün-日本".encode(),
               b"$(x)`y`", b"a:b,c", b"\x01\x1b[31m", b"n" * 255, b"u" * 100 + b"\xff" * 150, b"{}*?[]"]
        for name in odd:
            path = os.fsencode(root) + b"/" + name
            write(path, name * 3)
            os.utime(path, (7, 1500000000 + len(name)))
            os.symlink(name, path[:240] + b".l")
        for mode in [0o000, 0o400, 0o555, 0o777, 0o4755, 0o2755, 0o1777, 0o6711]:
            os.mkdir(f"{root}/d{mode:o}")
            write(f"{root}/d{mode:o}/in", b"x" * mode, mode | 0o400)
            os.chmod(f"{root}/d{mode:o}", mode | 0o500)
        for d in range(3):
            os.makedirs(f"{root}/{d}/e/f/g")
        os.symlink("t" * 4000, root + "/longtarget")
        os.symlink("/etc/passwd", root + "/absolute")
        write(root + "/empty")
        write(root + "/block", b"b" * 512)
        for d, _, _ in os.walk(root, topdown=False):
            os.utime(d, (1, 1234567890))
        self.unpack(self.pack(root))
        self.assertEqual(picture(self.path("new")), picture(root))
        self.assertEqual(int(os.stat(self.path("new")).st_mtime), 1234567890)

    def test_a_path_of_5000_bytes_and_one_of_1000_levels(self):
        for name, levels in [("w" * 250, 20), ("d", 1000)]:
            with self.subTest(levels):
                root, to = self.path(f"from{levels}"), self.path(f"to{levels}")
                os.mkdir(root)
                fd = os.open(root, os.O_RDONLY)
                for _ in range(levels):
                    os.mkdir(name, dir_fd=fd)
                    below = os.open(name, os.O_RDONLY, dir_fd=fd)
                    os.close(fd)
                    fd = below
                os.close(os.open("bottom", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=fd))
                os.close(fd)
                self.unpack(self.pack(root), to)
                self.unpack(self.pack(root), to)  # over what is there: merging goes as deep
                fd = os.open(to, os.O_RDONLY)
                for _ in range(levels):
                    self.assertEqual(os.listdir(fd), [name])
                    below = os.open(name, os.O_RDONLY, dir_fd=fd)
                    os.close(fd)
                    fd = below
                self.assertEqual(os.listdir(fd), ["bottom"])
                os.close(fd)

    def test_holes_stay_holes(self):
        os.mkdir(self.path("sparse"))
        with open(self.path("sparse/file"), "wb") as f:
            f.truncate(256 << 20)
            f.seek(100 << 20)
            f.write(b"middle")
        with open(self.path("archive"), "wb") as f:
            f.write(self.pack(self.path("sparse")))
        with open(self.path("archive"), "rb") as f:
            self.unpack(f)
        st = os.stat(self.path("new/file"))
        self.assertEqual(st.st_size, 256 << 20)
        self.assertLess(st.st_blocks * 512, 1 << 20)
        with open(self.path("new/file"), "rb") as f:
            f.seek(100 << 20)
            self.assertEqual(f.read(7), b"middle\0")

    def test_nanoseconds_where_the_archive_has_them(self):
        info = tarfile.TarInfo("x")
        info.mtime = 1600000000.5
        self.unpack(archive(info))
        self.assertEqual(os.stat(self.path("new/x")).st_mtime_ns, 1600000000500000000)


class Merge(Case):
    def test_files_replace_and_others_stay(self):
        self.unpack(archive(("./a", FILE, b"new a"),
                            ("kept/more", FILE, b"m"), ("link", FILE, b"now a file")), self.old)
        with open(self.old + "/a", "rb") as f:
            self.assertEqual(f.read(), b"new a")
        self.assertEqual(sorted(os.listdir(self.old + "/kept")), ["deep", "more"])
        self.assertTrue(os.path.isfile(self.old + "/link") and not os.path.islink(self.old + "/link"))
        self.assertEqual(sorted(os.listdir(self.old)), ["a", "kept", "link"])

    def test_a_file_takes_the_place_of_an_empty_directory_only(self):
        os.mkdir(self.old + "/empty")
        self.assert_refused(archive(("x", FILE, b""), ("kept", FILE, b"")), "kept")
        self.unpack(archive(("empty", FILE, b"1")), self.old)
        self.assertTrue(os.path.isfile(self.old + "/empty"))

    def test_a_directory_takes_the_place_of_a_file(self):
        self.unpack(archive(("a/b", FILE, b"1")), self.old)
        self.assertTrue(os.path.isfile(self.old + "/a/b"))

    def test_a_shut_directory_is_opened_for_the_merge_and_shut_again(self):
        os.chmod(self.old + "/kept", 0o555)
        self.unpack(archive(("kept/new", FILE, b"1")), self.old)
        self.assertTrue(os.path.isfile(self.old + "/kept/new"))
        self.assertEqual(stat.S_IMODE(os.stat(self.old + "/kept").st_mode), 0o555)

    def test_the_archive_decides_the_mode_of_an_old_directory(self):
        info = tarfile.TarInfo("kept")
        info.type, info.mode, info.mtime = DIR, 0o711, 1000000000
        self.unpack(archive(info, ("kept/x", FILE, b"")), self.old)
        st = os.stat(self.old + "/kept")
        self.assertEqual((stat.S_IMODE(st.st_mode), st.st_mtime), (0o711, 1000000000))

    def test_the_last_of_two_members_wins(self):
        self.unpack(archive(("x", FILE, b"1"), ("x", FILE, b"22"), ("y", FILE, b"1"), ("y", SYM, "x")))
        with open(self.path("new/y"), "rb") as f:
            self.assertEqual(f.read(), b"22")

    def test_stale_staging_goes_and_a_live_one_stays(self):
        os.makedirs(self.old + "/.tombolo-unpack-dead/a/b")
        os.makedirs(self.old + "/.tombolo-unpack-live/a/b")
        fd = os.open(self.old + "/.tombolo-unpack-live", os.O_RDONLY)
        fcntl.flock(fd, fcntl.LOCK_EX)
        self.unpack(archive(("x", FILE, b"")), self.old)
        os.close(fd)
        self.assertEqual([n for n in os.listdir(self.old) if n.startswith(".")], [".tombolo-unpack-live"])

    # Field case C075
    def test_an_empty_archive_makes_the_root(self):
        self.unpack(bytes(1024))
        self.assertEqual(os.listdir(self.path("new")), [])
        self.unpack(bytes(10240), self.old)


class Dialects(Case):
    def test_hard_links_between_members(self):
        self.unpack(archive(("a/x", FILE, b"1"), ("b/y", LINK, "a/x"), ("./z", LINK, "./b/y")))
        inodes = {os.stat(self.path("new/") + n).st_ino for n in ["a/x", "b/y", "z"]}
        self.assertEqual(len(inodes), 1)

    def test_names_by_all_formats_of_python(self):
        names = ["short", "p" * 90 + "/" + "n" * 95, "ü" * 40]
        for format in [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]:
            extra = [] if format == tarfile.USTAR_FORMAT else [
                "x" * 200 + "/" + "y" * 200, "日" * 80, "\udcff" * 150]
            with self.subTest(format):
                self.unpack(archive(*[(n, FILE, n.encode("utf-8", "surrogateescape")) for n in names + extra],
                                    ("link", SYM, "t" * (90 if format == tarfile.USTAR_FORMAT else 900)),
                                    format=format), self.path(f"f{format}"))
                found = {p: w for p, w in picture(self.path(f"f{format}")).items() if w[0] == stat.S_IFREG}
                self.assertEqual(set(found), {os.fsencode(n) for n in names + extra})

    # Field case C073
    @have("tar")
    def test_all_formats_of_gnu_tar(self):
        with open(self.old + "/holes", "wb") as f:
            for at in range(0, 40):
                f.seek(at << 17)
                f.write(b"data")
            f.truncate(16 << 20)
        os.link(self.old + "/a", self.old + "/b")
        for format in ["v7", "oldgnu", "gnu", "ustar", "pax"]:
            for sparse in [[], ["--sparse"]]:
                if sparse and format in ("v7", "ustar"):
                    continue
                for members in [["."], ["a", "b", "holes", "kept", "link"]]:
                    with self.subTest(format=format, sparse=sparse, members=members):
                        made = subprocess.run(["tar", "-C", self.old, "--format", format, *sparse, "-cf", "-",
                                               *members], check=True, stdout=subprocess.PIPE).stdout
                        to = self.path(f"{format}{len(sparse)}{len(members)}")
                        self.unpack(made, to)
                        self.assertEqual(picture(to), picture(self.old))

    def test_compressed(self):
        plain = archive(("x", FILE, os.urandom(200000)), ("y", FILE, b"1"))
        for name, pack in [("gz", gzip.compress), ("xz", lzma.compress), ("bz2", bz2.compress)]:
            with self.subTest(name):
                self.unpack(pack(plain), self.path(name))
                self.assertEqual(len(picture(self.path(name))), 2)
                for cut in [len(pack(plain)) // 2, len(pack(plain)) - 3]:
                    self.assertEqual(tar("unpack", self.old, stdin=pack(plain)[:cut]).code, 2)
        packed = bytearray(gzip.compress(plain))
        packed[len(packed) // 2] ^= 1
        self.assert_refused(bytes(packed), "archive")

    @have("zstd")
    def test_zstd(self):
        plain = archive(("x", FILE, b"1" * 200000))
        self.unpack(subprocess.run(["zstd", "-c"], input=plain, check=True, stdout=subprocess.PIPE).stdout)
        self.assertEqual(os.stat(self.path("new/x")).st_size, 200000)

    def test_unknown_keys_and_global_headers_are_ignored(self):
        info = tarfile.TarInfo("x")
        info.pax_headers = {"LIBARCHIVE.creationtime": "1.5", "SCHILY.xattr.com.apple.provenance": "\x01\x02",
                            "VENDOR.key": "v"}
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", pax_headers={"comment": "c", "VENDOR.g": "g"}) as t:
            t.addfile(info)
            t.addfile(tarfile.TarInfo("._x"))
        self.unpack(out.getvalue())
        self.assertEqual(sorted(os.listdir(self.path("new"))), ["._x", "x"])

    def test_fifos_are_skipped_with_a_warning(self):
        made = archive(("f", tarfile.FIFOTYPE, ""), ("x", FILE, b""))
        self.assertIn("fifo", self.unpack(made, code=1).message)
        self.assertEqual(os.listdir(self.path("new")), ["x"])


class Hostile(Case):
    def test_names_that_lead_out(self):
        for name, why in [("/etc/x", "absolute"), ("../outside/file", ".."),
                          ("a/../../outside/x", ".."), ("..", ".."),
                          ("./../x", ".."), ("kept/..", ".."), ("//x", "absolute")]:
            with self.subTest(name):
                self.assert_refused(archive(("ok", FILE, b""), (name, FILE, b"evil")), why)
                self.assert_refused(archive((name, DIR, "")), why)
                self.assert_refused(archive((name, SYM, "x")), why)

    def test_ways_through_symlinks(self):
        out = self.path("outside")
        for members in [
                [("l", SYM, out), ("l/file", FILE, b"evil")],
                [("l", SYM, "../outside"), ("l/new", FILE, b"evil")],
                [("d/", DIR, ""), ("d/l", SYM, "../.."), ("d/l/x", DIR, "")],
                [("l", SYM, out), ("l", DIR, ""), ("l/file", FILE, b"evil")],
                [("l", SYM, "."), ("l/l/x", SYM, "y")],
                [("link/deep/file", FILE, b"through a link of the old tree")],
                [("link", DIR, "")],
                [("l", SYM, out), ("h", LINK, "l/file")]]:
            with self.subTest(members):
                self.assert_refused(archive(*members), "")

    def test_hard_links_that_lead_out(self):
        for to in ["/etc/passwd", "../outside/file", "a", "nowhere", "."]:
            with self.subTest(to):
                self.assert_refused(archive(("h", LINK, to)), "is linked to")

    def test_devices(self):
        for type_ in [tarfile.CHRTYPE, tarfile.BLKTYPE]:
            self.assert_refused(archive(("ok", FILE, b""), ("dev", type_, "")), "device")

    # Field case C068
    def test_cut_at_any_place(self):
        made = archive(("./", DIR, ""), ("a", FILE, b"x" * 3000), ("n" * 200, FILE, b"y" * 10),
                       ("z", FILE, b""))
        end = len(made.rstrip(b"\0"))
        end += -end % 512
        for cut in sorted({1, 100, 511, 513, 1023, 2000, *range(0, end + 1, 512)}):
            with self.subTest(cut):
                self.assert_refused(made[:cut], "archive")

    # Field case C076
    def test_one_bit_in_a_header(self):
        made = archive(("a", FILE, b"x" * 600), ("b", FILE, b"y" * 600))
        for at in [0, 100, 124, 130, 148, 156, 257, 1536, 1536 + 99, 1536 + 124, 1536 + 150]:
            with self.subTest(at):
                broken = bytearray(made)
                broken[at] ^= 4
                self.assert_refused(bytes(broken), "archive")

    def test_garbage(self):
        for garbage in [b"", b"x", b"not an archive\n" * 500, b"\x1f\x8b" + b"\0" * 600,
                        b"\xfd7zXZ\0" + b"\1" * 600,
                        b"\x28\xb5\x2f\xfd" + b"\xff" * 600, b"PK\3\4" + bytes(600)]:
            with self.subTest(garbage[:8]):
                self.assert_refused(garbage, "archive")

    def test_a_huge_sparse_member_takes_no_space_and_a_huge_dense_one_ends_at_the_cut(self):
        def pax(name, records, size):
            info = tarfile.TarInfo(name)
            info.pax_headers, info.size = records, size
            return info.tobuf(tarfile.PAX_FORMAT)

        sparse = pax("s", {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "s",
                           "GNU.sparse.realsize": str(1 << 40)}, 512)
        sparse += b"1\n1099511627776\n0\n".ljust(512, b"\0")
        result = tar("unpack", self.old, stdin=sparse + bytes(1024))
        if result.code == 0:
            self.assertLess(os.stat(self.old + "/s").st_blocks, 100)
            os.unlink(self.old + "/s")
        else:
            self.assertEqual(result.code, 2)  # a file system without files of this size
        dense = tarfile.TarInfo("d")
        dense.size = 1 << 40
        self.assert_refused(dense.tobuf(tarfile.GNU_FORMAT) + b"x" * 5000, "archive")

    def test_ten_thousand_levels_in_one_refused_archive(self):
        made = io.BytesIO()
        path = "d/" * 10000
        info = tarfile.TarInfo(path + "x")
        made.write(info.tobuf(tarfile.PAX_FORMAT))
        made.write(archive(("/evil", FILE, b"")))
        self.assert_refused(made.getvalue(), "absolute")

    def test_a_full_disk_is_named_and_leaves_the_old_tree(self):
        made = archive(("big", FILE, b"x" * (4 << 20)))
        os.makedirs(self.path("limited"))
        before = picture(self.old)

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        done = subprocess.run(["tombolo-tar", "unpack", self.old], executable=BY_FD, env={},
                              pass_fds=[PROGRAM_FD], input=made, capture_output=True, preexec_fn=limit, restore_signals=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"write './big': File too large", done.stderr)
        self.assertEqual(picture(self.old), before)


class Memory(Case):
    def peak(self, feed):
        """Peak resident KiB of an unpack, once FEED has written all but the end of an archive to it."""
        child = subprocess.Popen(["tombolo-tar", "unpack", self.path("new")], executable=BY_FD, env={},
                                 pass_fds=[PROGRAM_FD], stdin=subprocess.PIPE)
        feed(child.stdin)
        child.stdin.flush()
        # Its own high-water mark: what wait4() tells holds that of the process that forked it.
        with open(f"/proc/{child.pid}/status", encoding="ascii") as status:
            peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
        child.communicate(bytes(1024), timeout=60)
        self.assertEqual(child.returncode, 0)
        return peak

    def test_stays_flat(self):
        def many(pipe):
            for i in range(5000):
                info = tarfile.TarInfo(f"{i % 100}/{i}/")
                info.type = DIR
                pipe.write(info.tobuf(tarfile.USTAR_FORMAT))

        def large(pipe):
            info = tarfile.TarInfo("large")
            info.size = 64 << 20
            pipe.write(info.tobuf(tarfile.USTAR_FORMAT))
            for _ in range(64):
                pipe.write(b"x" * (1 << 20))

        bound = (400 if SANITIZED else 8) << 10
        self.assertLess(self.peak(many), bound)
        self.assertLess(self.peak(large), bound)


if __name__ == "__main__":
    main()

"""What the tests of tombolo-tar share: the program under test, trees and pictures of trees.

The program runs as it does in a sandbox: by descriptor, without an environment, as an ordinary user.
Started by root, the tests are that user themselves (uid 1000) from the first line on.
"""
# All that is needed, before the user changes: an ordinary one may be unable to read the library.
import encodings.ascii
import fcntl  # noqa: F401
import hashlib
import os
import resource  # noqa: F401
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

PROGRAM_FD = os.open(sys.argv.pop(1), os.O_RDONLY)
BY_FD = f"/proc/self/fd/{PROGRAM_FD}"

SANITIZED = b"__asan_init" in os.pread(PROGRAM_FD, 1 << 30, 0)

if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(1000)
    os.setuid(1000)
os.umask(0o022)


class Result:
    def __init__(self, code, out, message):
        self.code, self.out, self.message = code, out, message

    def __repr__(self):
        return f"exit {self.code}: {self.message}"


def tar(*args, stdin=b""):
    """Runs the program. STDIN is bytes, or a file."""
    feed = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin}
    done = subprocess.run(["tombolo-tar", *args], executable=BY_FD, env={}, pass_fds=[PROGRAM_FD],
                          capture_output=True, timeout=120, cwd="/", **feed)
    return Result(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))


def write(path, content=b"", mode=None):
    with open(path, "wb") as f:
        f.write(content)
    if mode is not None:
        os.chmod(path, mode)


def picture(root, mtimes=True):
    """{path: what is there}, by descriptors: paths may be longer than the kernel takes."""
    seen = {}

    def look(fd, prefix):
        for name in os.listdir(fd):
            name = os.fsencode(name)
            path = prefix + name
            st = os.stat(name, dir_fd=fd, follow_symlinks=False)
            what = [stat.S_IFMT(st.st_mode), st.st_mode & 0o7777]
            if mtimes:
                what.append(int(st.st_mtime))
            if stat.S_ISREG(st.st_mode):
                with open(os.open(name, os.O_RDONLY, dir_fd=fd), "rb") as f:
                    what.append(hashlib.sha256(f.read()).hexdigest())
            elif stat.S_ISLNK(st.st_mode):
                what.append(os.readlink(name, dir_fd=fd))
            elif stat.S_ISDIR(st.st_mode):
                below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
                look(below, path + b"/")
                os.close(below)
            seen[path] = tuple(what)

    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    look(fd, b"")
    os.close(fd)
    return seen


class Case(unittest.TestCase):
    """Each test has its own directory, and `old`: a tree with content that must survive every refusal."""

    maxDiff = 2000

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="tombolo-archive-")
        self.old = os.path.join(self.dir, "old")
        os.makedirs(self.old + "/kept/deep")
        write(self.old + "/kept/deep/file", b"before")
        write(self.old + "/a", b"old a")
        os.symlink("kept", self.old + "/link")
        os.mkdir(self.dir + "/outside")
        write(self.dir + "/outside/file", b"not yours")

    def tearDown(self):
        subprocess.run(["chmod", "-R", "u+rwX", self.dir], check=False, stderr=subprocess.DEVNULL)
        subprocess.run(["rm", "-rf", self.dir], check=True)

    def path(self, name):
        return os.path.join(self.dir, name)

    def unpack(self, archive, root=None, code=0):
        result = tar("unpack", root or self.path("new"), stdin=archive)
        self.assertEqual(result.code, code, result)
        return result

    def pack(self, root, *excludes, code=0):
        result = tar("pack", root, *excludes)
        self.assertEqual(result.code, code, result)
        return result.out

    def assert_refused(self, archive, why):
        """Exit 2 with one line that holds WHY; the old tree and what lies beside it are as before."""
        before = picture(self.dir)
        root_time = os.stat(self.old).st_mtime_ns
        result = tar("unpack", self.old, stdin=archive)
        self.assertEqual(result.code, 2, result)
        self.assertIn(why, result.message)
        self.assertEqual(result.message.count("\n"), 1)
        self.assertEqual(picture(self.dir), before)
        self.assertEqual(os.stat(self.old).st_mtime_ns, root_time)


def main():
    unittest.main(verbosity=1)


def have(*programs):
    return unittest.skipUnless(all(shutil.which(p) for p in programs), f"needs {', '.join(programs)}")

#!/usr/bin/env python3
"""vm.py BUILD_DIR [TEST]... - what has been built, on a kernel and under a cgroup hierarchy that this machine does not have.

QEMU boots Debian's own kernel 6.1, the oldest that Tombolo supports, with cgroup v2 alone, a disk of ext4 with project
quotas, and nothing else: no systemd, no network. On the disk are the programs of BUILD_DIR at the same paths as here,
the libraries they need, and some tools of /usr for the sandboxes. inside.sh runs there as the first process; its results come
over the serial line, one a line, and are printed here: "ok NAME", "not ok NAME: WHY", "skip NAME: WHY". The last of them is
"machine": whether it came to its end. One that hangs is ended after PATIENCE_S or SILENCE_S, and what it said last is printed.

Exit status: 0 all passed; 1 something failed, or the machine did not come to its end; 77 there is no QEMU or no kernel.
"""
import os
import re
import select
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
KERNEL_PACKAGE = "linux-image-cloud-amd64"
MODULES = ["virtio_pci", "virtio_blk", "overlay", "loop", "veth", "quota_v2", "fuse"]
DISK_MB = 1536
MEMORY_MB = 1536
PATIENCE_S = 600    # when the host is quiet, a boot takes 5 s, and all a minute and a half
DOWNLOAD_S = 300    # once for a build directory
SILENCE_S = 330     # longer than inside.sh lets a test run

# What an emulated processor is slow at, and what nothing is tested by here: guards against other tenants of a real one, a page
# table of five levels, the long way to the end of a grace period. Its time stamps are the host's, whose rate a kernel that boots
# on a busy host measures wrong; tsc=unstable is why a second is a second.
PROCESSOR = "max,la57=off,smap=off,smep=off"
COMMAND_LINE = """console=ttyS0 quiet panic=-1 oops=panic tsc=unstable mitigations=off no5lvl nokaslr nowatchdog
    rcupdate.rcu_expedited=1 cgroup_no_v1=all audit=0 random.trust_cpu=on""".split()

# For the sandboxes: what a command of a test may call.
TOOLS = """basename bash cat chmod cksum cp cut date dd df dirname echo env expr false find flock getent grep head id kill ln locale
    ls mkdir mkfifo mknod mktemp mount mv nohup nproc od perl printenv printf ps pwd python3 readlink rm rmdir script sed seq setsid sh
    sha256sum sleep sort stat stty sync tail tar tee test timeout touch tput tr true truncate tty umount uname uniq unshare wc yes
    mkfs.ext4""".split()


class Skip(Exception):
    pass


def say(text):
    print(f"# vm: {text}", flush=True)


def output_of(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


# ---- the kernel ----

def unpack_kernel(directory):
    """Debian's package, unpacked and not installed: the directory with boot/ and lib/modules/VERSION."""
    target = f"{directory}/kernel"
    if os.path.exists(f"{target}/complete"):
        return target
    try:
        package = re.search(r"Depends: (linux-image-6\S+)", output_of("apt-cache", "depends", KERNEL_PACKAGE)).group(1)
        os.makedirs(directory, exist_ok=True)
        subprocess.run(["apt-get", "-qq", "download", package], cwd=directory, check=True, stderr=subprocess.DEVNULL,
                       timeout=DOWNLOAD_S)
    except (OSError, AttributeError, subprocess.SubprocessError):
        raise Skip(f"the package {KERNEL_PACKAGE} cannot be had") from None
    [archive] = [name for name in os.listdir(directory) if name.startswith(package)]
    shutil.rmtree(target, ignore_errors=True)
    subprocess.run(["dpkg-deb", "-x", f"{directory}/{archive}", target], check=True)
    os.unlink(f"{directory}/{archive}")
    open(f"{target}/complete", "w").close()
    return target


def modules_in_order(modules_dir):
    """Paths of MODULES and of all they need, each after what it needs."""
    files, needs = {}, {}
    for folder, _, names in os.walk(modules_dir):
        files.update({name[:-3].replace("-", "_"): f"{folder}/{name}" for name in names if name.endswith(".ko")})
    order = []

    def add(name):
        if name not in files or files[name] in order: # built in, or already there
            return
        if name not in needs:
            needs[name] = re.search(rb"\0depends=([^\0]*)", open(files[name], "rb").read()).group(1).decode()
        for other in filter(None, needs[name].split(",")):
            add(other.replace("-", "_"))
        order.append(files[name])

    for name in MODULES:
        add(name)
    return order


# ---- the disk ----

class Tree:
    """A small Debian below a directory, copied from this machine."""

    def __init__(self, root):
        self.root = root
        for path in ("usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "proc", "sys", "dev", "run", "root", "var", "vm"):
            os.makedirs(f"{root}/{path}")
        os.makedirs(f"{root}/tmp")
        os.chmod(f"{root}/tmp", 0o1777)
        for name in ("bin", "sbin", "lib", "lib64"):
            os.symlink(f"usr/{name}", f"{root}/{name}")

    def put(self, path):
        """One file, with the links on its way; not through the links of a merged /usr."""
        target = self.root + os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        if os.path.lexists(target):
            return
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.islink(path):
            os.symlink(os.readlink(path), target)
            self.put(os.path.normpath(os.path.join(os.path.realpath(os.path.dirname(path)), os.readlink(path))))
        else:
            shutil.copy2(path, target)

    def put_program(self, path):
        self.put(path)
        listed = subprocess.run(["ldd", path], text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        for library in re.findall(r"(/\S+) \(0x", listed):
            self.put(library)

    def put_tool(self, name):
        path = shutil.which(name, path="/usr/bin:/usr/sbin")
        if path:
            self.put_program(path)

    def write(self, path, text, mode=0o644):
        target = f"{self.root}/{path}"
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w") as file:
            file.write(text)
        os.chmod(target, mode)


def programs_of(build):
    """Executables of a build directory, without what only compiles and what only measures."""
    for folder, _, names in os.walk(build):
        if re.search(r"/(meson-|vm/|tests/(bench|fuzz)|.*\.p$)", folder[len(build):] + "/"):
            continue
        for name in names:
            path = f"{folder}/{name}"
            if os.access(path, os.X_OK) and os.path.isfile(path) and open(path, "rb").read(4) == b"\x7fELF":
                yield path


def put_python(tree):
    """The interpreter and its library, without tests and what needs a screen."""
    version = output_of("/usr/bin/python3", "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))").strip()
    for folder, folders, names in os.walk(version):
        # __pycache__ stays: to compile is what a start of Python would do most of the time.
        folders[:] = [f for f in folders if f not in ("test", "tests", "idlelib", "tkinter", "lib2to3", "pydoc_data", "ensurepip")
                      and not f.startswith("config-")]
        for name in names:
            tree.put(f"{folder}/{name}")


def put_folder(tree, folder):
    """Locales and terminals: what programs complain of when it is missing."""
    for below, _, names in os.walk(folder):
        for name in names:
            tree.put(f"{below}/{name}")


def make_disk(work, build, only):
    tree = Tree(f"{work}/root")
    for name in TOOLS:
        tree.put_tool(name)
    tree.put_program("/bin/busybox")
    put_python(tree)
    for folder in ("/usr/lib/locale/C.utf8", "/usr/lib/terminfo"):
        put_folder(tree, folder)
    for path in programs_of(build):
        tree.put_program(path)
    tree.write("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/nonexistent:/bin/false\n")
    tree.write("etc/group", "root:x:0:\nnogroup:x:65534:\n")
    tree.write("etc/debian_version", "12\n")
    for name in ("inside.sh", "smoke.py"):
        tree.write(f"vm/{name}", open(f"{HERE}/{name}").read(), 0o755)
    tree.write("vm/build", build + "\n")
    tree.write("vm/only", " ".join(only) + "\n")
    disk = f"{work}/disk.ext4"
    subprocess.run(["mkfs.ext4", "-q", "-F", "-O", "quota,project", "-E", "quotatype=prjquota,root_owner=0:0", "-d", tree.root,
                    disk, f"{DISK_MB}M"], check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(tree.root)
    return disk


def make_initramfs(work, modules):
    root = f"{work}/initramfs"
    os.makedirs(f"{root}/bin")
    for name in ("dev", "proc", "sys", "disk", "modules"):
        os.makedirs(f"{root}/{name}")
    shutil.copy2("/bin/busybox", f"{root}/bin/busybox")
    for path in modules:
        shutil.copy2(path, f"{root}/modules/")
    load = "\n".join(f"insmod /modules/{os.path.basename(path)}" for path in modules)
    with open(f"{root}/init", "w") as file:
        file.write(f"""#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
{load}
mount -t ext4 -o prjquota /dev/vda /disk
exec switch_root /disk /vm/inside.sh
""")
    os.chmod(f"{root}/init", 0o755)
    image = f"{work}/initramfs.cpio"
    with open(image, "wb") as file:
        find = subprocess.Popen(["find", "."], cwd=root, stdout=subprocess.PIPE)
        subprocess.run(["/bin/busybox", "cpio", "-o", "-H", "newc"], cwd=root, check=True, stdin=find.stdout, stdout=file,
                       stderr=subprocess.DEVNULL)
    return image


# ---- the machine ----

def lines_of(machine):
    """What it says, until it ends or one of the two patiences does; then it is killed."""
    end, text = time.monotonic() + PATIENCE_S, b""
    while select.select([machine.stdout], [], [], max(0, min(SILENCE_S, end - time.monotonic())))[0]:
        if not (more := os.read(machine.stdout.fileno(), 1 << 16)):
            return
        *lines, text = (text + more).split(b"\n")
        yield from (line.decode(errors="replace").rstrip() for line in lines)
    yield text.decode(errors="replace")
    yield "vm.py: it is silent, or takes too long"


def follow(lines):
    """Prints results as they come. Returns (passed, failed, whether the last line came)."""
    passed, failed, last = 0, 0, []
    for line in lines:
        if os.environ.get("VERBOSE"):
            print(f"    {line}", flush=True)
        match = re.match(r"VM (ok|not ok|skip|end)\b ?(.*)", line)
        if not match:
            last.append(line)
            continue
        if match[1] == "end":
            return passed, failed, True
        passed += match[1] == "ok"
        failed += match[1] == "not ok"
        if match[1] == "not ok":
            print("\n".join(f"    {text}" for text in last[-60:]))
        print(f"{match[1]} {match[2]}", flush=True)
        last = []
    print("\n".join(f"    {text}" for text in last[-60:]))
    return passed, failed, False


def boot(kernel, initramfs, disk):
    command = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio", "-no-reboot",
               "-accel", "tcg,thread=multi,tb-size=512", "-cpu", PROCESSOR, "-smp", "2",
               "-m", str(MEMORY_MB), "-kernel", kernel, "-initrd", initramfs, "-append", " ".join(COMMAND_LINE),
               "-drive", f"file={disk},format=raw,if=virtio,cache=unsafe"]
    began = time.monotonic()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as machine:
        passed, failed, ended = follow(lines_of(machine))
        machine.kill()
    say(f"{passed} passed, {failed} failed in {time.monotonic() - began:.0f} s")
    print("ok machine" if ended else "not ok machine: it ended before its tests did")
    return ended and passed and not failed


def main(build, *only):
    build = os.path.realpath(build)
    if not shutil.which("qemu-system-x86_64"):
        raise Skip("there is no qemu-system-x86_64")
    kernel = unpack_kernel(f"{build}/vm")
    work = f"{build}/vm/run"
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    [version] = os.listdir(f"{kernel}/lib/modules")
    say(f"{version}, cgroup v2, {MEMORY_MB} MiB")
    disk = make_disk(work, build, only)
    initramfs = make_initramfs(work, modules_in_order(f"{kernel}/lib/modules/{version}/kernel"))
    passed = boot(f"{kernel}/boot/vmlinuz-{version}", initramfs, disk)
    shutil.rmtree(work, ignore_errors=True)
    return 0 if passed else 1


if __name__ == "__main__":
    try:
        sys.exit(main(*(sys.argv[1:] or ["build"])))
    except Skip as reason:
        print(f"skip vm: {reason}")
        sys.exit(77)

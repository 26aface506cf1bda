#!/usr/bin/env python3
"""smoke.py TOMBOLO - the whole server on this machine, by its own command and by plain HTTP: a life of a sandbox, limits that
bite, and what is left afterwards. Prints "VM ok NAME" or "VM not ok NAME: WHY" for each; see inside.sh."""
import base64
import glob
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request

TOMBOLO = sys.argv[1]
STATE = "/var/lib/tombolo"
PORT = 8787
URL = f"http://127.0.0.1:{PORT}"


def check(name, test):
    try:
        test()
        print(f"VM ok server_{name}", flush=True)
    except Exception as e:  # whatever it was, the next test still tells something
        print(f"VM not ok server_{name}: {type(e).__name__} {e}", flush=True)


def cli(*words, stdin=None):
    done = subprocess.run([TOMBOLO, *words], input=stdin, capture_output=True, text=True, timeout=100,
                          env={"TOMBOLO_URL": URL, "PATH": os.environ["PATH"]})
    return done.returncode, done.stdout, done.stderr


def ask(method, path, body=None):
    request = urllib.request.Request(URL + path, method=method, data=None if body is None else json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=100) as answer:
        return answer.read().decode()


def execute(sandbox, script, **more):
    """(the exit event, standard output) of `sh -c SCRIPT`."""
    text = ask("POST", f"/v1/sandbox/{sandbox}/exec", {"argv": ["sh", "-c", script], **more})
    end, out = None, b""
    for event in text.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in event.split("\n") if ": " in line)
        if fields.get("event") == "stdout":
            out += base64.b64decode(fields["data"])
        elif fields.get("event") in ("exit", "error"):
            end = json.loads(fields["data"])
    return end, out.decode()


def equal(found, wanted):
    assert found == wanted, f"found {found!r}, wanted {wanted!r}"


def until(holds, what):
    """Looks again until it holds; only a hang comes to the end of it."""
    end = time.monotonic() + 60
    while not (result := holds()):
        assert time.monotonic() < end, f"not after 60 s: {what}"
        time.sleep(0.02)
    return result


def groups():
    return [path for path in glob.glob("/sys/fs/cgroup/tombolo-*/*/") if "/_" not in path]


def create(**limits):
    return json.loads(ask("POST", "/v1/sandbox", {"limits": limits}))["id"]


def remove(sandbox):
    ask("DELETE", f"/v1/sandbox/{sandbox}")
    until(lambda: not groups(), f"no group is left of {sandbox}")


def pids_of(text):
    """Of the processes with TEXT in their command line."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                if text.encode() in file.read():
                    found.append(int(path.split("/")[2]))
        except OSError:  # it ended while we looked
            pass
    return found


def serves():
    try:
        return ask("GET", "/health")
    except OSError:
        return False


def kill_program(name):
    """Until another one is there and answers."""
    [old] = pids_of(name)
    os.kill(old, signal.SIGKILL)
    until(lambda: pids_of(name) not in ([], [old]), f"another {name}")
    until(serves, "it serves again")


# ---- tests ----

def life():
    code, out, err = cli("create")
    equal((code, err), (0, ""))
    sandbox = out.strip()
    equal(cli("exec", sandbox, "--", "sh", "-c", "echo hi; exit 3"), (3, "hi\n", ""))
    with open("/tmp/there", "w") as file:
        file.write("and back\n" * 1000)
    equal(cli("cp", "/tmp/there", f"{sandbox}:/workspace/x"), (0, "", ""))
    equal(cli("cp", f"{sandbox}:/workspace/x", "/tmp/back"), (0, "", ""))
    equal(open("/tmp/back").read(), open("/tmp/there").read())
    equal(cli("rm", sandbox)[0], 0)


def who_and_where():
    sandbox = create()
    end, out = execute(sandbox, "id -u; cat /proc/self/cgroup; ls /sys/fs/cgroup 2>/dev/null; echo $$")
    equal(end["exit_code"], 0)
    equal(out.split("\n")[0], "1000")
    remove(sandbox)


def memory_bites():
    sandbox = create(memory_mb=64)
    end, _ = execute(sandbox, "exec python3 -c 'len(b\"x\" * (200 << 20))'")
    equal((end["reason"], end["signal"]), ("oom", "SIGKILL"))
    end, out = execute(sandbox, "echo alive")
    equal((end["exit_code"], out), (0, "alive\n"))
    remove(sandbox)


def pids_bite():
    sandbox = create(pids=64)
    end, _ = execute(sandbox, "for i in $(seq 100); do sleep 600 & done; wait", timeout_ms=60000)
    equal(end["reason"], "pids")
    [group] = groups()
    hits = int(open(f"{group}/pids.events").read().split()[1])
    assert hits > 0, "pids.events counts nothing"
    remove(sandbox)


def cpu_bites():
    sandbox = create(cpu=0.2)
    execute(sandbox, "timeout 3 sh -c 'while :; do :; done'")
    [group] = groups()
    stat = dict(line.split() for line in open(f"{group}/cpu.stat"))
    assert int(stat["nr_throttled"]) >= 5, stat
    assert int(stat["usage_usec"]) < 1_800_000, stat
    remove(sandbox)


def disk_bites():
    sandbox = create(disk_mb=64)
    execute(sandbox, "true")
    told = json.loads(ask("GET", f"/v1/sandbox/{sandbox}"))["limits"]
    equal((told["disk_bytes"], told["disk_enforced"], told["disk_backend"]), (64 << 20, True, "project"))
    end, out = execute(sandbox, "head -c 100m /dev/zero > /workspace/big; stat -c %s /workspace/big")
    assert int(out) <= 64 << 20, (out, told, json.loads(ask("GET", f"/v1/sandbox/{sandbox}")))
    remove(sandbox)


def leaf_and_kill():
    """A timeout takes the whole tree, also what has left its session: each exec has a group of its own."""
    sandbox = create()
    ends = []
    command = threading.Thread(target=lambda: ends.append(execute(
        sandbox, "setsid sleep 4711 >/dev/null 2>&1 & sleep 4711", timeout_ms=2000)[0]))
    command.start()
    until(lambda: glob.glob("/sys/fs/cgroup/tombolo-*/*/x*/cgroup.procs"), "the group of an exec")
    command.join(60)
    equal([end["reason"] for end in ends], ["timeout"])
    equal(pids_of("4711"), [])
    remove(sandbox)


def survives(name):
    """A process goes on over the death of a program of the server, and its log has all it said."""
    sandbox = create()
    script = "echo begun; while [ ! -e go ]; do sleep 0.1; done; echo done; exit 9"
    pid = json.loads(ask("POST", f"/v1/sandbox/{sandbox}/processes", {"argv": ["sh", "-c", script]}))["id"]
    kill_program(name)
    equal(json.loads(ask("GET", f"/v1/sandbox/{sandbox}/processes/{pid}"))["state"], "running")
    equal(execute(sandbox, "touch go")[0]["exit_code"], 0)
    text = ask("GET", f"/v1/sandbox/{sandbox}/processes/{pid}/logs?follow=true")
    events = [json.loads(frame[len("data: "):]) for frame in text.strip().split("\n\n")]
    equal(b"".join(base64.b64decode(event["data"]) for event in events if event["type"] == "stdout"), b"begun\ndone\n")
    equal(events[-1]["exit"], {"code": 9, "timedOut": False})
    remove(sandbox)


def front_dies():
    survives("tombolo-front")


def keeper_dies():
    survives("tombolo-keeper")


def main():
    read_fd, write_fd = os.pipe()
    os.set_inheritable(write_fd, True)
    server = subprocess.Popen([TOMBOLO, "serve", "--state-dir", STATE, "--listen", f"127.0.0.1:{PORT}", "--ready-fd",
                               str(write_fd)], pass_fds=[write_fd])
    os.close(write_fd)
    started = os.read(read_fd, 100)
    check("starts", lambda: equal(started.strip().decode(), f"127.0.0.1:{PORT}"))
    if started:
        only = os.environ["ONLY"].split()
        for test in (life, who_and_where, memory_bites, pids_bite, cpu_bites, disk_bites, leaf_and_kill, front_dies,
                     keeper_dies):
            if not only or f"server_{test.__name__}" in only:
                check(test.__name__, test)
    server.send_signal(signal.SIGTERM)
    check("stops", lambda: equal(server.wait(60), 0))
    check("leaves_no_cgroup", lambda: equal(glob.glob("/sys/fs/cgroup/tombolo-*"), []))
    check("leaves_no_mount", lambda: equal([line for line in open("/proc/self/mountinfo") if STATE in line], []))
    check("leaves_no_sandbox", lambda: equal(os.listdir(f"{STATE}/sandboxes") + os.listdir(f"{STATE}/trash"), []))


main()

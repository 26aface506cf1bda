#!/usr/bin/env python3
"""Checks that code includes only from its own room and from lower floors, and names the room when it does.

The floors are read from the table of ARCHITECTURE.md, so the page cannot drift from the code. Beyond the floors there
are the nevers of the same page. A room may write down its inner order in one of its headers, the highest first: its
files then include only from lines below their own (what they call: calls.py). A file and its _private header are one.
The check first proves on made-up samples that it can fail.
"""
import os
import re
import sys

# room: rooms it may never include although they lie lower
NEVERS = {
    "agent": {"loop", "http", "config", "sandbox"},
    "keeper": {"http"},
    "isolation": {"http"},
    "bucket": {"http"},
    "sandbox": {"http"},
    "http": {"sandbox", "routes"},
}
# `config` holds the options; only a program's first file reads them and hands plain values on.
CONFIG_READERS = re.compile(r"^src/(cli|front|keeper|agent)/(main|serve)\w*\.[ch]$")
ORDER = re.compile(r"^ \* The room's inner order.*?\n \*\n(.*?)\n \*(?:/|\n)", re.M | re.S)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def floors_of(page):
    """{"base": 1, ...} from rows like `| 4 | `sandbox`; `agent`, `keeper`, `cli` | ... |`."""
    floors = {}
    for floor, rooms in re.findall(r"^\| (\d) \| ([^|]+) \|", page, flags=re.M):
        for room in re.findall(r"`(\w+)`", rooms):
            floors[room] = int(floor)
    return floors


def judge(path, line, floors):
    """A sentence about what is wrong with LINE of PATH, or None."""
    found = INCLUDE.match(line)
    if not found:
        return None
    target, room = found.group(1), path.split("/")[1]
    if "/" not in target:
        return f'"{target}" does not name its room'
    other = target.split("/")[0]
    if room not in floors:
        return f"room {room} has no floor in ARCHITECTURE.md"
    if other == room:
        return None
    if other not in floors:
        return f"there is no room {other}"
    if other == "config" and not CONFIG_READERS.match(path):
        return f"{room} includes config, which only a program's main file may"
    if other in NEVERS.get(room, ()):
        return f"{room} never includes {other}"
    if floors[other] >= floors[room]:
        return f"{room} (floor {floors[room]}) includes {other} (floor {floors[other]})"
    return None


def order_of(text):
    """{"bond": 1, ...}, heights, of lines like ` *   placing, bond     the way up`; {}: no order."""
    table = ORDER.search(text)
    lines = re.findall(r"^ \*   (\w+(?:, \w+)*)", table.group(1), flags=re.M) if table else []
    return {file: height for height, files in enumerate(reversed(lines)) for file in files.split(", ")}


def file_of(path):
    return path.split("/")[-1].split(".")[0].removesuffix("_private")


def stands_below(other, file, order):
    return other == file or order[other] < order[file]


def judge_inside(path, line, order):
    """A sentence about what is wrong with LINE of PATH in a room with that inner order, or None."""
    found = INCLUDE.match(line)
    room, file = path.split("/")[1], file_of(path)
    if not order or not found or not found.group(1).startswith(room + "/") or found.group(1).endswith((".def", ".inc")):
        return None  # tables know nobody
    other = file_of(found.group(1))
    for name in (file, other):
        if name not in order:
            return f"{name} has no place in the inner order of {room}"
    if not stands_below(other, file, order):
        return f"{file} includes {other}, which does not stand below it in the inner order of {room}"
    return None


def prove_that_order_can_fail():
    order = order_of("/*\n * The room's inner order:\n *\n *   main\n *   up, aside   words, words\n *   low\n */\n")
    bad = [("low.h", "up"), ("up.c", "aside"), ("up.c", "stranger"), ("low.c", "up_private"), ("low_private.h", "up")]
    good = [("up.c", "up"), ("up.c", "low"), ("main.c", "low"), ("up.c", "low_private"), ("up_private.h", "up")]
    wrong = [s for s in bad + good
             if bool(judge_inside(f"src/keeper/{s[0]}", f'#include "keeper/{s[1]}.h"', order)) != (s in bad)]
    if wrong:
        sys.exit(f"the check itself is broken: it misjudges {wrong}")


def prove_that_it_can_fail(floors):
    bad = [
        ("src/base/buf.c", '#include "loop/loop.h"'),
        ("src/http/http.c", '#include "wire/frame.h"'),
        ("src/keeper/slot.c", '#include "http/http.h"'),
        ("src/agent/spawn.c", '#include "loop/loop.h"'),
        ("src/routes/exec.c", '#include "config/options.h"'),
        ("src/wire/link.c", '# include "link.h"'),
        ("src/sandbox/x.c", '#include "nowhere/x.h"'),
        ("src/cli/main.c", '#include "keeper/keeper.h"'),
    ]
    good = [
        ("src/wire/link.c", '#include "base/buf.h"'),
        ("src/wire/link.c", '#include "wire/frame.h"'),
        ("src/front/main.c", '#include "config/options.h"'),
        ("src/front/main.c", "#include <errno.h>"),
    ]
    wrong = [s for s in bad if not judge(*s, floors)] + [s for s in good if judge(*s, floors)]
    if wrong:
        sys.exit(f"the check itself is broken: it misjudges {wrong}")


def main(top):
    os.chdir(top)
    with open("ARCHITECTURE.md") as page:
        floors = floors_of(page.read())
    prove_that_it_can_fail(floors)
    prove_that_order_can_fail()

    files = sorted(os.path.join(where, name) for where, _, names in os.walk("src") for name in names
                   if name.endswith((".c", ".h", ".def")))
    texts = {path: open(path).read() for path in files}
    orders = {}
    for path, text in texts.items():
        orders.setdefault(path.split("/")[1], {}).update(order_of(text))
    complaints = []
    for path, text in texts.items():
        for number, line in enumerate(text.splitlines(), 1):
            complaint = judge(path, line, floors) or judge_inside(path, line, orders[path.split("/")[1]])
            if complaint:
                complaints.append(f"{path}:{number}: {complaint}")
    print("\n".join(complaints) or f"{len(files)} files keep to their floors")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

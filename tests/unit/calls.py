#!/usr/bin/env python3
"""Checks that no two files of a room need each other, and that files of a room with an inner order call only downwards.

What calls whom is read from the objects of the build, so that nothing is missed and no comment is taken for a call; a
table of one file that another reads counts, too. Orders are those of floors.py; in the sentence "... goes up: name()"
after an order stand the calls that may. The check first proves on made-up samples that it can fail.
"""
import os
import re
import subprocess
import sys

from floors import ORDER, order_of, stands_below

UP = re.compile(r"goes? up:([^.]*)\.")


def ups_of(text):
    """Names of the functions that may be called from below."""
    order = ORDER.search(text)
    sentence = UP.search(text, order.end()) if order else None
    return set(re.findall(r"(\w+)\(\)", sentence.group(1))) if sentence else set()


def symbols_of(paths):
    """{path: (what the object there defines for others, what it wants of them), ...}; one nm for all of PATHS."""
    symbols = {path: (set(), set()) for path in paths}
    lines = subprocess.run(["nm", "-A", *paths], capture_output=True, text=True, check=True).stdout.splitlines()
    for line in lines:
        path, _, rest = line.partition(".o:")
        *_, kind, name = rest.split()
        if kind.isupper():
            symbols[path + ".o"][kind == "U"].add(name)
    return symbols


def arrows_of(room):
    """[(file, other, name), ...]: FILE wants NAME of OTHER. ROOM: {file: symbols, ...}."""
    owners = {name: file for file, (defined, _) in room.items() for name in defined}
    return sorted((file, owners[name], name) for file, (_, wanted) in room.items() for name in wanted
                  if owners.get(name, file) != file)


def circle_in(arrows):
    """Files that need each other, in a circle, or []."""
    below = {}
    for file, other, _ in arrows:
        below.setdefault(file, []).append(other)
    done = set()

    def walk(file, way):
        if file in way:
            return way[way.index(file):] + [file]
        if file in done:
            return []
        for other in below.get(file, []):
            circle = walk(other, way + [file])
            if circle:
                return circle
        done.add(file)
        return []

    return next((circle for file in below if (circle := walk(file, []))), [])


def judge(room, arrows, order, ups):
    """Sentences about what is wrong in ROOM."""
    if not order:
        circle = circle_in(arrows)
        return [f"{room}: these need each other: {' -> '.join(circle)}"] if circle else []
    return [f"{room}: {file} wants {name} of {other}, which does not stand below it in the room's inner order"
            for file, other, name in arrows
            if name not in ups and not (file in order and other in order and stands_below(other, file, order))]


def prove_that_it_can_fail():
    order = {"up": 1, "low": 0, "base": 0}
    samples = [
        (bool(judge("a", [("up", "low", "f"), ("low", "up", "g")], {}, set())), True),
        (bool(judge("a", [("up", "low", "f"), ("low", "mid", "g"), ("mid", "up", "h")], {}, set())), True),
        (bool(judge("a", [("up", "low", "f"), ("up", "base", "g"), ("low", "base", "g")], {}, set())), False),
        (bool(judge("a", [("low", "up", "g")], order, set())), True),
        (bool(judge("a", [("low", "base", "g")], order, set())), True),
        (bool(judge("a", [("low", "up", "g")], order, {"g"})), False),
        (bool(judge("a", [("up", "low", "g")], order, set())), False),
        (ups_of("/*\n * The room's inner order:\n *\n *   up\n *\n * One call goes up: g().\n */"), {"g"}),
    ]
    wrong = [i for i, (got, wanted) in enumerate(samples) if got != wanted]
    if wrong:
        sys.exit(f"the check itself is broken: it misjudges samples {wrong}")


def main(source, build):
    prove_that_it_can_fail()
    orders, ups, rooms = {}, {}, {}
    for where, _, names in os.walk(os.path.join(source, "src")):
        for name in names:
            if name.endswith(".h"):
                room = os.path.relpath(where, source).split("/")[1]
                with open(os.path.join(where, name)) as file:
                    text = file.read()
                orders.setdefault(room, {}).update(order_of(text))
                ups.setdefault(room, set()).update(ups_of(text))
    # Not what is a library's: our objects are called as their sources are.
    objects = {os.path.join(where, name): (os.path.relpath(where, build).split("/")[1], name[:-4])
               for where, _, names in os.walk(os.path.join(build, "src")) for name in names if name.endswith(".c.o")}
    objects = {path: (room, file) for path, (room, file) in objects.items()
               if os.path.exists(os.path.join(source, "src", room, file + ".c"))}
    for path, symbols in symbols_of(objects).items():
        room, file = objects[path]
        rooms.setdefault(room, {})[file] = symbols
    complaints = [sentence for room, files in sorted(rooms.items())
                  for sentence in judge(room, arrows_of(files), orders.get(room), ups.get(room, set()))]
    print("\n".join(complaints) or f"{len(rooms)} rooms call downwards")
    return 1 if complaints or not rooms else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))

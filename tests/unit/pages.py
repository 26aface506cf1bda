#!/usr/bin/env python3
"""Checks that pages for people repeat the tables of the code without a mistake: docs/wire.md and the man pages."""
import os
import re
import sys


def read(path):
    with open(path) as f:
        return f.read()


def messages_of_the_code(text):
    fields = {name: ", ".join(f"{t} {n}" for t, n in re.findall(r"F\((\w+), (\w+)\)", row)) or "none"
              for name, row in re.findall(r"^#define FIELDS_(\w+)\(F\)(.*)$", text, flags=re.M)}
    return {name: (int(number), fields[name])
            for name, number in re.findall(r"^MESSAGE\((\w+),\s*(\d+),", text, flags=re.M)}


def messages_of_the_page(text):
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \| ([^|]+) \|", text, flags=re.M)
    return {name: (int(number), fields) for number, name, fields in rows}


def options_of_the_code(text):
    return {name.replace("_", "-"): default
            for name, default in re.findall(r'^OPTION\((\w+), \w+, "([^"]*)"', text, flags=re.M)}


def options_of_the_page(text):
    """.It Fl -listen Ar value  ...  Default: \"x\" lines look like: .Dq x"""
    return set(re.findall(r"^\.It Fl -([a-z-]+)", text, flags=re.M))


def commands_of_the_code(text):
    return set(re.findall(r'^\t\{"(\w+)", ', text, flags=re.M))


def compare(what, code, page):
    """Sentences about every difference of two dictionaries or sets."""
    found = [f"{what}: {key} is missing on the page" for key in sorted(set(code) - set(page))]
    found += [f"{what}: {key} is on the page only" for key in sorted(set(page) - set(code))]
    if isinstance(code, dict):
        found += [f"{what}: {key} is {code[key]} in the code and {page[key]} on the page"
                  for key in sorted(set(code) & set(page)) if code[key] != page[key]]
    return found


def main(top):
    os.chdir(top)
    wire, serve = messages_of_the_code(read("src/wire/messages.def")), options_of_the_code(read("src/config/options.def"))
    commands = commands_of_the_code(read("src/cli/main.c"))
    if len(wire) < 20 or len(serve) < 10 or len(commands) < 8:
        sys.exit("the tables of the code were not understood")

    wrong = compare("docs/wire.md", wire, messages_of_the_page(read("docs/wire.md")))
    wrong += compare("man/tombolo-serve.8", set(serve), options_of_the_page(read("man/tombolo-serve.8")))
    page = read("man/tombolo.1")
    wrong += compare("man/tombolo.1", commands, set(re.findall(r"^\.It Ic (\w+)", page, flags=re.M)))
    client_options = set(re.findall(r'^\t\{"([a-z-]+)", (?:\'.\'|0), ', "".join(
        read(f"src/cli/{name}.c") for name in ("cp", "exec", "sandboxes")), flags=re.M)) | {"url"}
    wrong += compare("man/tombolo.1", client_options, options_of_the_page(page) - {"help"})
    print("\n".join(wrong) or f"{len(wire)} messages, {len(serve)} options, {len(commands)} commands: the pages agree")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

#!/usr/bin/env python3
"""Checks that src/routes/routes.def and api/openapi.json say the same: paths, methods, operationIds, both ways."""
import json
import os
import re
import sys

NAMES = re.compile(r":(\w+)|\{(\w+)\}|\*$")


def shape(path):
    """A path without the names of its parts: they are ours in the table and the contract's in the document."""
    return NAMES.sub("{}", path)


def table(text):
    rows = re.findall(r'^ROUTE\((\w+),\s*"([^"]+)",\s*\w+,\s*(\w+),\s*(\w+),\s*\w+,\s*(\w+)\)', text, flags=re.M)
    return {(method, shape(path)): (operation, credentials) for method, path, credentials, _, operation in rows}


def document(spec):
    found = {}
    for path, methods in spec["paths"].items():
        for method, operation in methods.items():
            is_open = operation.get("security", spec["security"]) == []
            found[method.upper(), shape(path)] = (operation["operationId"], is_open)
    return found


def differences(routes, spec):
    described = document(spec)
    found = [f"{m} {p} is in routes.def only" for m, p in sorted(set(routes) - set(described))]
    found += [f"{m} {p} is in openapi.json only" for m, p in sorted(set(described) - set(routes))]
    for key in sorted(set(routes) & set(described)):
        (operation, credentials), (described_operation, is_open) = routes[key], described[key]
        if operation != described_operation:
            found.append(f"{key[0]} {key[1]} is {operation} in routes.def and {described_operation} in openapi.json")
        if is_open != (credentials == "NONE"):
            found.append(f"{key[0]} {key[1]}: the two disagree about the key")
    ids = [operation for operation, _ in described.values()]
    found += [f"operationId {i} is used twice" for i in sorted(set(ids)) if ids.count(i) > 1]
    return found


def check_that_it_can_fail(routes, spec):
    """A check that never fails is none: it must see each kind of difference."""
    first = next(iter(routes))
    fewer = {k: v for k, v in routes.items() if k != first}
    renamed = {**routes, first: ("somethingElse", routes[first][1])}
    for name, damaged in {"a missing route": fewer, "another operation": renamed,
                          "a new route": {**routes, ("PATCH", "/v1/nowhere"): ("x", "BEARER")}}.items():
        if not differences(damaged, spec):
            sys.exit(f"the check does not notice {name}")


def main(top):
    os.chdir(top)
    with open("src/routes/routes.def") as f:
        text = f.read()
    with open("api/openapi.json") as f:
        spec = json.load(f)
    routes = table(text)
    if len(routes) != len(re.findall(r"^ROUTE\(", text, flags=re.M)):
        sys.exit("routes.def was not understood")
    wrong = differences(routes, spec)
    if not wrong:
        check_that_it_can_fail(routes, spec)
    sys.exit("\n".join(wrong) or None)


main(sys.argv[1])

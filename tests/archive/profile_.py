"""The archive profile of the contract, checked as strictly as the strictest client does: block by block."""

BLOCK = 512


class Member:
    def __init__(self, name, type_, mode, size, mtime, target, content):
        self.name, self.type, self.mode, self.size = name, type_, mode, size
        self.mtime, self.target, self.content = mtime, target, content


def text(field):
    return field.split(b"\0", 1)[0]


def number(field):
    digits = field.rstrip(b"\0 ")
    assert digits and all(c in b"01234567" for c in digits), f"not octal: {field!r}"
    return int(digits, 8)


def pax_records(body):
    records = {}
    while body:
        length, _ = body.split(b" ", 1)
        record = body[:int(length)]
        assert record.endswith(b"\n"), "a pax record ends with a newline"
        key, value = record[len(length) + 1:-1].split(b"=", 1)
        assert key in (b"path", b"linkpath"), f"pax key {key!r}"
        assert key not in records
        records[key] = value
        body = body[int(length):]
    return records


def members(archive):
    """All members; AssertionError when the archive leaves the profile."""
    found, pax, at = [], {}, 0
    while archive[at:at + BLOCK].strip(b"\0"):
        head = archive[at:at + BLOCK]
        at += BLOCK
        assert head[257:265] == b"ustar\x0000", "ustar magic"
        assert number(head[148:156]) == sum(head[:148]) + 8 * 32 + sum(head[156:]), "checksum"
        type_, size = chr(head[156]), number(head[124:136])
        content = archive[at:at + size]
        assert len(content) == size, "cut off"
        at += size + -size % BLOCK
        assert not archive[at - (-size % BLOCK):at].strip(b"\0"), "padding"
        if type_ == "x":
            assert not pax, "two pax headers in a row"
            pax = pax_records(content)
            continue
        name = text(head[:100])
        if text(head[345:500]):
            name = text(head[345:500]) + b"/" + name
        name, target = pax.pop(b"path", name), pax.pop(b"linkpath", text(head[157:257]))
        assert not pax
        found.append(Member(name, type_, number(head[100:108]), size, number(head[136:148]), target, content))
    assert len(archive) - at >= 2 * BLOCK and not archive[at:].strip(b"\0"), "two zero blocks at the end"
    validate(found)
    return found


def validate(found):
    seen, directories = set(), set()
    assert found[0].name == b"./" and found[0].type == "5", "the root comes first"
    for m in found:
        assert m.type in "052", f"type {m.type} of {m.name!r}"
        assert m.name.startswith(b"./") and b"//" not in m.name, m.name
        assert m.name.endswith(b"/") == (m.type == "5"), m.name
        parts = m.name[2:].rstrip(b"/").split(b"/") if m.name != b"./" else []
        assert b".." not in parts and b"." not in parts and b"" not in parts, m.name
        key = tuple(parts)
        assert key not in seen, f"{m.name!r} twice"
        assert not parts or key[:-1] in directories, f"{m.name!r} before its directory"
        seen.add(key)
        if m.type == "5":
            directories.add(key)
        assert m.type == "0" or m.size == 0
        assert (m.type == "2") == bool(m.target)

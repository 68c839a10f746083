"""Group of tests/agent/run: tar streams of somebody who means harm, into a volume."""
import gzip
import io
import os
import random
import stat
import struct
import subprocess
import tarfile
import threading
import time

from agentlib import draw_seed, id_text, new_id, payload, ticket

REG, DIR, SYM, LNK, CHR, BLK, FIFO = (tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE,
                                      tarfile.BLKTYPE, tarfile.FIFOTYPE)
TENANT, VOLUME_PUT = b"T" * 16, 4


def tar(*entries, format=tarfile.PAX_FORMAT, end=True):
    """Entries: (name, type, content or target), then fields of TarInfo."""
    out = io.BytesIO()
    for name, kind, what, *more in entries:
        m = tarfile.TarInfo(name)
        m.type, m.mode = kind, 0o755
        for field, value in (more[0] if more else {}).items():
            setattr(m, field, value)
        data = what if kind == REG else b""
        m.size = len(data)
        m.linkname = what if kind in (SYM, LNK) else ""
        out.write(m.tobuf(format, "utf-8", "surrogateescape") + data + bytes(-len(data) % 512))
    return out.getvalue() + (bytes(1024) if end else b"")


def sparse(name, real_size):
    """GNU's old sparse format: a few bytes that say they are many."""
    head = bytearray(tarfile.TarInfo(name).tobuf(tarfile.GNU_FORMAT))
    head[156:157] = b"S"
    head[124:136] = b"%011o\0" % 512
    head[386:398], head[398:410] = b"\x80" + (real_size - 512).to_bytes(11, "big"), b"%011o\0" % 512
    head[483:495] = b"\x80" + real_size.to_bytes(11, "big")
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head) + b"x" * 512 + bytes(1024)


class Volume:
    """A volume of a node, seen from outside: its stream of files, and its files on disk."""

    def __init__(self, n):
        self.n, self.id, self.stream = n, new_id(), 100000
        self.root = os.path.join(n.state, "volumes", id_text("ten_", TENANT), id_text("vol_", self.id))

    def put(self, data, path="/in", timeout_s=60):
        """(code, text) of the end."""
        self.stream += 1
        stream, peer, body = self.stream, self.n.peer, payload([path])
        t = ticket(self.n, VOLUME_PUT, self.id, TENANT, body)
        peer.send("tree_open", struct.pack("@QII", stream, 0, len(body)) + t + body.ljust(32768, b"\0"))
        event = peer.until(lambda: next((e for e in peer.exec_events if e[1] == stream), None))
        if event is None or event[2] != 0:
            return event[2:4] if event else (None, "no answer")

        def write(fd):
            try:
                with os.fdopen(fd, "wb") as f:
                    f.write(data)
            except OSError:
                pass  # it has seen enough
        writer = threading.Thread(target=write, args=(event[4][0],), daemon=True)
        writer.start()
        done = peer.until(lambda: next((e for e in peer.exec_events if e[0] == "done" and e[1] == stream), None), timeout_s)
        return done[2:4] if done else (None, "no end")

    def files(self):
        """Names below the volume, and what they are."""
        found = {}
        for base, dirs, names, fd in os.fwalk(self.root):
            for name in dirs + names:
                found[os.path.relpath(base + "/" + name, self.root)] = os.lstat(name, dir_fd=fd)
        return found


def hostile(n, tap):
    n.want()  # tickets are of an epoch that is known
    volume = Volume(n)
    filled = volume.put(tar(("keep", REG, b"mine")), "/")[0], volume.put(tar((".", DIR, b""), ("./x", REG, b"")))[0]
    tap.check(filled == (0, 0), "a volume is filled", filled)
    check_names(volume, tap)
    check_kinds(volume, tap)
    check_size(n, volume, tap)
    check_noise(n, volume, tap)
    _, out, _ = n.run("/bin/echo", "well")
    tap.check(out == b"well\n" and n.process.poll() is None, "and agentd is well")


def outside(volume):
    return {name: (info.st_size, info.st_mode) for name, info in volume.files().items() if not (name + "/").startswith("in/")}


def check_names(volume, tap):
    before = outside(volume)
    for name, data in {
            "an absolute name": tar(("/evil", REG, b"x")),
            "a name that climbs": tar(("../evil", REG, b"x")),
            "one that climbs half-way": tar(("a/b/../../../evil", REG, b"x")),
            "one that climbs at its end": tar(("a/..", DIR, b"")),
            "a component too long": tar(("x" * 300, REG, b"x")),
            "a path too long": tar(("/".join(["y" * 200] * 30), REG, b"x")),
            "a hard link out": tar(("h", LNK, "/keep")),
            "a hard link that climbs": tar(("h", LNK, "../keep")),
            "a hard link by a link": tar(("s", SYM, "/"), ("h", LNK, "s/keep")),
            "a character device": tar(("d", CHR, b"", {"devmajor": 1, "devminor": 5})),
            "a disk": tar(("d", BLK, b"", {"devmajor": 254, "devminor": 0})),
            "a pipe": tar(("d", FIFO, b"")),
            "what is no type": tar(("d", b"Z", b""))}.items():
        code, text = volume.put(data)
        there = [f for f, info in volume.files().items() if not stat.S_ISREG(info.st_mode) and not stat.S_ISDIR(info.st_mode) and
                 not stat.S_ISLNK(info.st_mode)]
        linked = os.stat(os.path.join(volume.root, "keep")).st_nlink
        is_fine = name in ("what is no type", "a path too long")  # a file, as POSIX has it; made step by step
        tap.check((code not in (0, None) or (is_fine and code is not None)) and there == [] and linked == 1 and outside(volume) == before,
                  name + " is refused, and leaves nothing elsewhere", (code, text, there, linked))


def check_kinds(volume, tap):
    """What changes what it is on the way, and what it brings along."""
    before = outside(volume)
    for name, data in {
            "a directory that becomes a link": tar(("d", DIR, b""), ("d", SYM, "/"), ("d/evil", REG, b"x")),
            "a link that becomes a directory": tar(("e", SYM, ".."), ("e/evil", REG, b"x")),
            "a link to a link": tar(("f", SYM, "g"), ("g", SYM, ".."), ("f/evil", REG, b"x")),
            "a file by a link": tar(("k", SYM, "../keep"), ("k", REG, b"theirs")),
            "a file that becomes a link": tar(("l", REG, b"x"), ("l", SYM, "../keep"), ("l", REG, b"theirs")),
            "a hard link to a link": tar(("m", SYM, "../keep"), ("o", LNK, "m"), ("o", REG, b"theirs"))}.items():
        code, text = volume.put(data)
        tap.check(code is not None and outside(volume) == before and
                  open(os.path.join(volume.root, "keep"), "rb").read() == b"mine", name + " writes nothing elsewhere", (code, text))
    code, text = volume.put(tar(("su", REG, b"x", {"mode": 0o7777, "uid": 0, "pax_headers": {
        "SCHILY.xattr.security.capability": "\x01\x00\x00\x02\xff", "SCHILY.xattr.user.overlay.redirect": "/",
        "SCHILY.xattr.trusted.overlay.opaque": "y"}}), ("sd", DIR, b"", {"mode": 0o7777})), "/in")
    paths = [os.path.join(volume.root, "in", name) for name in ("su", "sd")]
    tap.check(code == 0 and [os.lstat(p).st_mode & 0o7000 for p in paths] == [0, 0] and not any(os.listxattr(p) for p in paths),
              "set-user-id, sticky and attributes stay behind", (code, text))


def check_size(n, volume, tap):
    """A little that says it is a lot."""
    begin = time.monotonic()
    code, text = volume.put(sparse("holes", 1 << 60))
    info = volume.files().get("in/holes")
    tap.check(code is not None and (info is None or info.st_blocks * 512 < 1 << 20) and time.monotonic() - begin < 20,
              "a file of an exbibyte of holes takes no room and no time", (code, text, info))
    bomb = tar(("bomb", REG, bytes(64 << 20)))
    packed = {"gzip": gzip.compress(bomb), "gzip in gzip": gzip.compress(gzip.compress(bomb))}
    for program in ("zstd", "xz", "bzip2"):
        if subprocess.run(["sh", "-c", "command -v " + program], capture_output=True, check=False).returncode == 0:
            packed[program] = subprocess.run([program, "-q", "-c"], input=bomb, capture_output=True, check=True).stdout
    for name, data in packed.items():
        code, text = volume.put(data)
        tap.check(code not in (0, None) and "in/bomb" not in volume.files(), "what %s has packed is not unpacked" % name, (code, text))
    many = b"".join(tar(("many/%d/%d" % (i % 100, i), REG, b""), format=tarfile.USTAR_FORMAT, end=False) for i in range(30000))
    begin = time.monotonic()
    code, text = volume.put(many + bytes(1024), timeout_s=120)
    count = sum(len(names) for _, _, names in os.walk(os.path.join(volume.root, "in/many")))
    tap.check(code == 0 and count == 30000, "30000 files of nothing arrive one by one", (code, text, count, time.monotonic() - begin))
    with open("/proc/%d/status" % n.process.pid, encoding="ascii") as f:
        rss = next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))
    tap.check(rss < 200 * 1024, "and cost agentd no memory", rss)


def check_noise(n, volume, tap):
    """Streams that are cut, and bytes that are not what they were."""
    rng, before, unended = random.Random(draw_seed()), outside(volume), []
    whole = tar(("n", DIR, b""), ("n/a", REG, b"a" * 700), ("n/s", SYM, "a"), ("n/h", LNK, "n/a"),
                ("n/" + "long" * 60, REG, b"b" * 30))
    for i in range(60):
        data = bytearray(whole[:rng.randrange(len(whole))] if i % 3 == 0 else whole)
        for _ in range(rng.randrange(1, 8) if i % 3 else 0):
            data[rng.randrange(len(data))] = rng.randrange(256)
        if volume.put(bytes(data), timeout_s=20)[0] is None:
            unended.append(i)
    tap.check(unended == [] and outside(volume) == before, "60 spoiled streams end, and leave nothing elsewhere", unended)
    tap.check(volume.put(os.urandom(100000))[0] not in (0, None), "noise is no stream")

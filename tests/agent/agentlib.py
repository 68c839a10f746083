"""What the tests of the privileged half play: a controller that signs, and a network half that talks.

Written from the documents (src/wire/grant.h, src/agent/ipc.h), not from their C: a second reading of
both formats. Needs libsodium for Ed25519 and busybox-static for a root file system.
"""
import array
import ctypes
import hashlib
import json
import os
import random
import select
import shutil
import socket
import struct
import subprocess
import tempfile
import time

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
UID_BASE = 1000000000
EXITED, GONE, RUNNING, STOPPING, WAITING, PREPARING = 4, 5, 2, 3, 0, 1
END = ["none", "exit", "oom", "stopped", "not_granted", "time_limit", "fenced", "start_failed", "lost",
       "no_program"]

TAGS = ["", "desired_begin", "desired_chunk", "desired_end", "contact", "log_ack", "image_ready",
        "inventory_get", "exec_open", "exec_resize", "exec_close", "tree_open", "hello",
        "desired_result", "observed", "need_image", "log_ready", "inventory", "exec_opened",
        "exec_exited", "tree_opened", "tree_done", "challenge"]
CHUNK = 32 * 1024


def pause(seconds=0.01):
    """One step of a poll."""
    select.select([], [], [], seconds)


def soon(condition, timeout_s=10):
    """The first true value of condition(), or the last false one at the deadline."""
    end = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value
        pause()


def draw_seed():
    """$BERTH_TEST_SEED, or a new one; printed, so that a run can be repeated."""
    value = int(os.environ.get("BERTH_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)
    print("# BERTH_TEST_SEED=%d" % value, flush=True)
    return value


def boot_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def new_id():
    return os.urandom(16)


def words(identifier):
    return struct.unpack(">QQ", identifier)


def wire_id(identifier):
    return struct.pack("<QQ", *words(identifier))


def id_text(prefix, identifier):
    number = int.from_bytes(identifier, "big")
    digits = [ALPHABET[number >> (5 * i) & 31] for i in reversed(range(26))]
    return prefix + "".join(digits)


class Key:
    """An Ed25519 key pair."""
    sodium = ctypes.CDLL("libsodium.so.23")

    def __init__(self):
        public, secret = ctypes.create_string_buffer(32), ctypes.create_string_buffer(64)
        self.sodium.crypto_sign_keypair(public, secret)
        self.public, self.secret = public.raw, secret.raw

    def sign(self, data):
        signature = ctypes.create_string_buffer(64)
        self.sodium.crypto_sign_detached(signature, None, data, ctypes.c_ulonglong(len(data)), self.secret)
        return signature.raw


def sha(data):
    return hashlib.sha256(data).digest()


def payload(args, **more):
    """`more`: env, hosts, targets (lists), cwd, hostname, upload_path, port."""
    def text(value):
        value = value if isinstance(value, bytes) else value.encode()
        return struct.pack("<I", len(value)) + value
    lists = [args, more.pop("env", ()), more.pop("hosts", ()), more.pop("targets", ())]
    head = struct.pack("<7I", 0x50475242, 1, *map(len, lists), more.pop("port", 0))
    texts = [more.pop(name, "") for name in ("cwd", "hostname", "upload_path")]
    assert not more, more
    return head + b"".join(text(s) for s in sum(map(list, lists), texts))


class Grant:
    """One allocation. Change fields before it goes into a set."""

    def __init__(self, args, **more):
        self.allocation, self.workload = new_id(), new_id()
        self.tenant = more.pop("tenant", b"T" * 16)
        self.attempt, self.rank, self.count = 1, 0, 1
        self.uid_base, self.uid_count = UID_BASE, 65536
        self.cpu_milli, self.memory_mib, self.pids_max, self.shm_mib = 1000, 128, 64, 0
        self.time_limit_s, self.grace_s, self.fence_after_s = 0, 2, 0
        self.is_stop, self.stop_cause, self.contact_loss = False, 0, 0
        self.devices, self.volumes = [], []
        self.image = self.upload = bytes(32)
        inner = {k: more.pop(k) for k in list(more) if k in
                 ("env", "cwd", "hostname", "upload_path", "port", "hosts", "targets")}
        self.payload = payload(args, **inner)
        self.targets = inner.get("targets", ())
        for name, value in more.items():
            assert hasattr(self, name), name
            setattr(self, name, value)

    @property
    def key(self):
        return (self.allocation, self.attempt)

    @property
    def name(self):
        return "%s.%d" % (id_text("alc_", self.allocation), self.attempt)

    def encode(self):
        out = wire_id(self.allocation) + wire_id(self.workload) + wire_id(self.tenant)
        out += struct.pack("<16I", self.attempt, self.rank, self.count, self.uid_base, self.uid_count,
                           self.cpu_milli, self.memory_mib, self.pids_max, self.shm_mib,
                           self.time_limit_s, self.grace_s, self.fence_after_s, len(self.devices),
                           len(self.volumes), int(self.is_stop) | self.contact_loss << 8,
                           self.stop_cause)
        for index, milli in self.devices:
            out += struct.pack("<HHIII", index, milli, index, 0, 0)
        out += bytes(16 * (16 - len(self.devices)))
        for (volume, read_only), target in zip(self.volumes, self.targets):
            out += wire_id(volume) + struct.pack("<I", int(read_only)) + sha(target.encode())
        out += bytes(52 * (8 - len(self.volumes)))
        return out + self.image + sha(self.payload) + self.upload


def signed_set(key, node, epoch, generation, grants):
    body = struct.pack("<II", 0x53475242, 1) + wire_id(node)
    body += struct.pack("<QQqII", epoch, generation, time.time_ns(), len(grants), 880)
    body += b"".join(g.encode() for g in grants)
    return body + key.sign(body)


def ticket(node, kind, object_, tenant, data, **other):
    """For an allocation or a volume of a Node, in the run that its agentd has told last, unless told otherwise."""
    how = {"tty": False, "attempt": 0, "key": node.key, "epoch": node.epoch, **other}
    body = struct.pack("<II", 0x54475242, 1) + wire_id(node.node) + struct.pack("<Q", how["epoch"])
    body += wire_id(node.peer.run) + wire_id(new_id()) + wire_id(object_) + wire_id(tenant)
    body += struct.pack("<IIII", kind | int(how["tty"]) << 8, how["attempt"], UID_BASE, 65536) + sha(data)
    return body + how["key"].sign(body)


def contact(key, node, epoch, generation, challenge):
    body = struct.pack("<II", 0x43475242, 1) + wire_id(node) + struct.pack("<QQ", epoch, generation)
    body += wire_id(challenge)
    return body + key.sign(body)


IPC_VERSION = 3


class Observed:
    FORMAT = "@4Q3I2iI2qQqII160s"

    def __init__(self, data):
        f = struct.unpack(self.FORMAT, data)
        self.allocation = struct.pack(">QQ", f[0], f[1])
        self.attempt, self.state, self.end = f[4:7]
        self.exit_code, self.signal, self.is_oom = f[7:10]
        self.started_ns, self.ended_ns, self.log_bytes = f[10:13]
        self.checkpointed_ns, self.checkpoints, self.extended_s = f[13:16]
        self.reason = f[16].rstrip(b"\0").decode()

    def __repr__(self):
        return "state=%d end=%s code=%d signal=%d oom=%d %r" % (
            self.state, END[self.end], self.exit_code, self.signal, self.is_oom, self.reason)


class Closed(Exception):
    pass


class Peer:
    """The network half."""

    def __init__(self, path, deadline_s=20):
        self.observed, self.logs, self.results, self.gone = {}, {}, [], set()
        self.log_complete, self.exec_events, self.hello, self.needs = set(), [], None, []
        self.full_count, self.health, self.why, self.challenges = 0, [], [], []
        until = time.monotonic() + deadline_s
        while True:
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            try:
                self.socket.connect(path)
                break
            except (ConnectionRefusedError, FileNotFoundError):
                self.socket.close()
                if time.monotonic() > until:
                    raise
                select.select([], [], [], 0.01)

    def close(self):
        self.socket.close()
        for fd in self.logs.values():
            os.close(fd)
        self.logs = {}

    def send(self, tag, body=b""):
        self.socket.send(struct.pack("@II", TAGS.index(tag), IPC_VERSION) + body)

    def send_set(self, signed, payloads=()):
        data = signed + b"".join(struct.pack("<I", len(p)) + p for p in payloads)
        self.send("desired_begin", struct.pack("@II", len(signed), len(data)))
        for at in range(0, len(data), CHUNK):
            part = data[at:at + CHUNK]
            self.send("desired_chunk", struct.pack("@II", at, len(part)) + part.ljust(CHUNK, b"\0"))
        self.send("desired_end")

    def on_challenge(self, body, fds):
        """Kept with the moment before which it was made."""
        self.challenges.append((struct.pack(">QQ", *struct.unpack("@2Q", body)), boot_ns()))

    def log_ack(self, key, offset, is_final):
        self.send("log_ack", struct.pack("@2QIIQ", *words(key[0]), key[1], int(is_final), offset))

    def image_ready(self, digest, kind, tenant, path, error=""):
        self.send("image_ready", digest + struct.pack("@II2Q256s160s", kind, int(error != ""),
                                                      *words(tenant), path.encode(), error.encode()))

    def exec_open(self, stream, ticket_bytes, data, rows=24, columns=80):
        self.send("exec_open", struct.pack("@QHHI", stream, rows, columns, len(data)) + ticket_bytes +
                  data.ljust(CHUNK, b"\0") + b"\0" * self.exec_pad)

    exec_pad = 0

    def receive(self, timeout_s):
        """Takes one message; False when none came in time."""
        ready, _, _ = select.select([self.socket], [], [], timeout_s)
        if not ready:
            return False
        fds = array.array("i")
        data, control, _, _ = self.socket.recvmsg(1 << 20, socket.CMSG_SPACE(3 * 4))
        for level, kind, bytes_ in control:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(bytes_[:len(bytes_) - len(bytes_) % 4])
        if not data:
            raise Closed()
        tag = TAGS[struct.unpack_from("@I", data)[0]]
        getattr(self, "on_" + tag)(data[8:], list(fds))
        return True

    def on_hello(self, body, fds):
        node = struct.pack(">QQ", *struct.unpack_from("@2Q", body))
        epoch, generation = struct.unpack_from("@2Q", body, 16)
        self.hello = (node, epoch, generation)
        self.run = struct.pack(">QQ", *struct.unpack_from("@2Q", body, 32))

    def on_desired_result(self, body, fds):
        epoch, generation, code, _ = struct.unpack_from("@QQII", body)
        self.results.append((code, epoch, generation, body[24:].rstrip(b"\0").decode()))

    def on_observed(self, body, fds):
        is_full, _, first, count = struct.unpack_from("@4I", body)
        if is_full and first == 0:
            self.observed, self.full_count = {}, self.full_count + 1
        size = struct.calcsize(Observed.FORMAT)
        for i in range(count):
            entry = Observed(body[40 + i * size:40 + (i + 1) * size])
            key = (entry.allocation, entry.attempt)
            if entry.state == GONE:
                self.observed.pop(key, None)
                self.gone.add(key)
            else:
                self.observed[key] = entry

    def on_log_ready(self, body, fds):
        hi, lo, attempt, complete, _, _ = struct.unpack_from("@2QIIQQ", body)
        key = (struct.pack(">QQ", hi, lo), attempt)
        if fds:
            if key in self.logs:
                os.close(self.logs[key])
            self.logs[key] = fds[0]
        if complete:
            self.log_complete.add(key)

    def on_need_image(self, body, fds):
        self.needs.append((body[:32], struct.unpack_from("@I", body, 32)[0]))

    DEVICE = "@IIiiiIII" + "q64s96s48s24s64s"

    def on_inventory(self, body, fds):
        """The number of devices, and their health in order."""
        self.inventory = struct.unpack_from("@I", body)[0]
        size = struct.calcsize(self.DEVICE)
        first = 8 + 16 + 64 + 64 + 1024
        devices = [struct.unpack_from(self.DEVICE, body, first + i * size) for i in range(self.inventory)]
        self.health = [d[6] for d in devices]
        self.why = [d[13].split(b"\0")[0].decode() for d in devices]

    def on_exec_opened(self, body, fds):
        stream, code, is_tty = struct.unpack_from("@QII", body)
        self.exec_events.append(("opened", stream, code, body[16:].rstrip(b"\0").decode(), fds))

    def on_exec_exited(self, body, fds):
        stream, code, sig = struct.unpack_from("@Qii", body)
        self.exec_events.append(("exited", stream, code, sig, body[16:].rstrip(b"\0").decode()))

    def on_tree_opened(self, body, fds):
        stream, code, _ = struct.unpack_from("@QII", body)
        self.exec_events.append(("tree", stream, code, body[16:].rstrip(b"\0").decode(), fds))

    def on_tree_done(self, body, fds):
        stream, code, _ = struct.unpack_from("@QII", body)
        self.exec_events.append(("done", stream, code, body[16:].rstrip(b"\0").decode()))

    def until(self, condition, timeout_s=30):
        """Receives until the condition holds; its value, or None at the deadline."""
        end = time.monotonic() + timeout_s
        while True:
            value = condition()
            if value:
                return value
            left = end - time.monotonic()
            if left <= 0:
                return None
            self.receive(left)

    def wait_state(self, grant, states, timeout_s=30):
        states = states if isinstance(states, tuple) else (states,)

        def there():
            entry = self.observed.get(grant.key)
            return entry if entry is not None and entry.state in states else None
        return self.until(there, timeout_s)


def read_spool(fd):
    """(stdout, stderr, gaps) of a spool: gaps are (stream, offset, lost, cause)."""
    streams, gaps, at = {1: b"", 2: b""}, [], 0
    while True:
        head = os.pread(fd, 32, at)
        if len(head) < 32:
            return streams[1], streams[2], gaps
        magic, kind, stream, size, cause, offset, _ = struct.unpack("<IHHIIQq", head)
        assert magic == 0x474f4c42, "no record at %d" % at
        body = os.pread(fd, size, at + 32)
        if kind == 2:
            gaps.append((stream, offset, struct.unpack("<Q", body)[0], cause))
        else:
            streams[stream] += body
        at += 32 + size


def make_rootfs(path):
    """A root made of busybox, readable by any uid."""
    for name in ("bin", "proc", "sys", "dev", "tmp", "etc", "data", "work"):
        os.makedirs(os.path.join(path, name))
    shutil.copy("/bin/busybox", os.path.join(path, "bin/busybox"))
    applets = subprocess.run(["/bin/busybox", "--list"], check=True, capture_output=True, text=True)
    for name in applets.stdout.split():
        if name != "busybox":
            os.symlink("busybox", os.path.join(path, "bin", name))
    os.makedirs(os.path.join(path, "run/berth"))
    with open(os.path.join(path, "etc/hosts"), "w", encoding="ascii"):
        pass
    os.mknod(os.path.join(path, "data/kmsg"), 0o666 | 0o020000, os.makedev(1, 11))
    os.chmod(path, 0o755)


def oci_layout(path, root):
    """An OCI image layout of one layer out of a directory: the image's digest."""
    blobs = os.path.join(path, "blobs/sha256")
    os.makedirs(blobs)

    def add(data):
        name = hashlib.sha256(data).hexdigest()
        with open(os.path.join(blobs, name), "wb") as f:
            f.write(data)
        return "sha256:" + name, len(data)

    layer = subprocess.run(["tar", "-C", root, "--numeric-owner", "--owner=0", "--group=0", "-cf", "-", "."],
                           check=True, capture_output=True).stdout
    layer_digest, layer_size = add(layer)
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {"Cmd": ["/bin/true"]},
                         "rootfs": {"type": "layers", "diff_ids": [layer_digest]}}).encode()
    config_digest, config_size = add(config)
    manifest = json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": config_digest,
                   "size": config_size},
        "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": layer_digest,
                    "size": layer_size}]}).encode()
    digest, size = add(manifest)
    with open(os.path.join(path, "index.json"), "w", encoding="ascii") as f:
        json.dump({"schemaVersion": 2, "manifests": [{
            "mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest, "size": size}]}, f)
    with open(os.path.join(path, "oci-layout"), "w", encoding="ascii") as f:
        f.write('{"imageLayoutVersion":"1.0.0"}')
    return bytes.fromhex(digest[7:])


class Node:
    """A private agentd with its state, and the controller's key it trusts."""

    def __init__(self, agentd, *options):
        self.dir = tempfile.mkdtemp(prefix="berth-agent-")
        os.chmod(self.dir, 0o711)
        self.state = os.path.join(self.dir, "s")
        self.run_dir = tempfile.mkdtemp(prefix="berth-agent-", dir="/dev/shm")
        os.chmod(self.run_dir, 0o711)
        self.socket = os.path.join(self.dir, "agentd.sock")
        self.rootfs = os.path.join(self.dir, "rootfs")
        os.makedirs(self.state)
        make_rootfs(self.rootfs)
        self.key, self.node = Key(), new_id()
        self.cgroup = "/berth-test-" + os.urandom(4).hex()
        self.epoch, self.generation = 1, 0
        with open(os.path.join(self.state, "identity"), "w", encoding="ascii") as f:
            f.write("node %s\ncontroller %s\n" % (id_text("nod_", self.node), self.key.public.hex()))
        self.command = [agentd, "--state", self.state, "--run", self.run_dir, "--socket", self.socket, "--peer-user", "0",
                        "--rootfs", self.rootfs, "--cgroup", self.cgroup, "--gpu", "sim:4xh100", "--unpacker",
                        os.path.join(os.path.dirname(agentd), "image/berth-unpack"), *options]
        self.process, self.peer, self.exit_code = None, None, 0

    def start(self):
        log = open(os.path.join(self.dir, "agentd.log"), "ab")
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        return self

    def connect(self, tries=20):
        """A child of an agentd that was killed holds its listener until it has become its program: then again."""
        for left in reversed(range(tries)):
            if self.peer is not None:
                self.peer.close()
            self.peer = Peer(self.socket)
            try:
                assert self.peer.until(lambda: self.peer.hello), "no hello"
                return self.peer
            except (Closed, ConnectionResetError):
                if left == 0:
                    raise
            pause(0.05)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def want(self, *grants, epoch=None, generation=None, key=None):
        """Signs a newer set of these grants, sends it, and returns the answer."""
        if generation is None:
            self.generation += 1
            generation = self.generation
        epoch = self.epoch if epoch is None else epoch
        signed = signed_set(key or self.key, self.node, epoch, generation, grants)
        return self.offer(signed, [g.payload for g in grants])

    def offer(self, signed, payloads=()):
        count = len(self.peer.results)
        self.peer.send_set(signed, payloads)
        self.peer.until(lambda: len(self.peer.results) > count)
        return self.peer.results[-1] if len(self.peer.results) > count else None

    def challenge(self, timeout_s=5):
        """The next one that comes: (number, boot_ns() after it was made), or None."""
        self.peer.challenges = []
        self.peer.until(lambda: self.peer.challenges, timeout_s)
        return self.peer.challenges[0] if self.peer.challenges else None

    def answer(self, challenge, **other):
        """As the controller does for a heartbeat, unless told otherwise."""
        words_ = {"key": self.key, "node": self.node, "epoch": self.epoch, "generation": self.generation, **other}
        self.peer.send("contact", contact(challenge=challenge[0], **words_))

    def run(self, *args, timeout_s=30, **more):
        """Runs one grant to its end: (observed, stdout, stderr)."""
        grant = Grant(list(args), **more)
        self.want(grant)
        entry = self.peer.wait_state(grant, EXITED, timeout_s)
        out, err, _ = self.spool(grant)
        return entry, out, err

    def spool(self, grant):
        path = os.path.join(self.state, "alloc", grant.name, "log")
        try:
            fd = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return b"", b"", []
        try:
            return read_spool(fd)
        finally:
            os.close(fd)

    def log_text(self):
        with open(os.path.join(self.dir, "agentd.log"), encoding="utf-8", errors="replace") as f:
            return f.read()

    def shims(self):
        """Processes of ours that hold an attempt's lock, by name of the attempt."""
        found = {}
        root = os.path.join(self.run_dir, "alloc")
        for name in os.listdir(root) if os.path.isdir(root) else []:
            try:
                with open(os.path.join(root, name, "lock"), encoding="ascii") as f:
                    pid = int(f.read().split("\n")[0])
                with open("/proc/%d/cmdline" % pid, encoding="utf-8") as f:
                    if name in f.read():
                        found[name] = pid
            except (OSError, ValueError):
                continue
        return found

    def init_pid(self, grant):
        with open(os.path.join(self.run_dir, "alloc", grant.name, "pid"), encoding="ascii") as f:
            return int(f.read())

    def lease_ns(self):
        """The boot clock's time that fenced work's lease counts from; 0: there is none."""
        try:
            with open(os.path.join(self.run_dir, "lease"), "rb") as f:
                return struct.unpack("<IIq", f.read(16))[2]
        except FileNotFoundError:
            return 0

    def done(self):
        """Ends everything that was started, by its pid, and removes every trace."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.exit_code = self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()
                self.exit_code = -9
        for name, pid in self.shims().items():
            subprocess.run([self.command[0].replace("berth-agentd", "berth-shim"), "clean",
                            os.path.join(self.state, "alloc", name),
                            os.path.join(self.run_dir, "alloc", name)], check=False)
            end = time.monotonic() + 10
            while os.path.exists("/proc/%d" % pid) and time.monotonic() < end:
                pause()
        if self.peer is not None:
            self.peer.close()
        for base, dirs, _ in os.walk("/sys/fs/cgroup", topdown=False):
            if self.cgroup in base:
                try:
                    os.rmdir(base)
                except OSError:
                    pass
        shutil.rmtree(self.dir, ignore_errors=True)
        shutil.rmtree(self.run_dir, ignore_errors=True)


def is_alive(pid):
    """A process that is there and not only waits for its parent to look at its end."""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Tap:
    def __init__(self):
        self.count, self.failed = 0, 0

    def skip(self, name, reason):
        self.count += 1
        print("ok %d - %s # SKIP %s" % (self.count, name, reason), flush=True)

    def check(self, condition, name, detail=""):
        self.count += 1
        if not condition:
            self.failed += 1
        print("%s %d - %s" % ("ok" if condition else "not ok", self.count, name), flush=True)
        if not condition and detail != "":
            for line in str(detail).split("\n"):
                print("# " + line, flush=True)
        return condition

    def finish(self):
        print("1..%d" % self.count, flush=True)
        return 1 if self.failed else 0


tap = Tap()


def sh(script, **more):
    return Grant(["/bin/sh", "-c", script], **more)

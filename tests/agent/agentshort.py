"""Groups of tests/agent/run about what is short, stuck or senseless: shims, grants, descriptors, disk."""
import ctypes
import os
import resource
import signal
import subprocess
import time

from agentlib import (END, EXITED, PREPARING, RUNNING, STOPPING, WAITING, Grant, is_alive, oci_layout, make_rootfs, pause,
                      sh, signed_set, soon)
from agentstart import spare_of

PTRACE_ATTACH, PTRACE_DETACH = 16, 17
LIBC = ctypes.CDLL(None, use_errno=True)


def trace(pid):
    """Stops a process in a way that no SIGCONT undoes; it can still be killed."""
    LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    return LIBC.ptrace(PTRACE_ATTACH, pid, None, None) == 0


def cpu_s(pid):
    with open("/proc/%d/stat" % pid, encoding="utf-8") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wedge(n, tap):
    """Shims and helpers that do not answer."""
    n.want()
    stuck = soon(lambda: spare_of(n))
    os.kill(stuck, signal.SIGSTOP)
    g = sh("echo once; sleep 60")
    n.want(g)
    entry = n.peer.wait_state(g, RUNNING, 40)
    tap.check(entry is not None and n.shims().get(g.name) not in (None, stuck) and not is_alive(stuck),
              "a shim that has not begun is killed, and another one begins", (entry, stuck, n.log_text()))
    tap.check(soon(lambda: n.spool(g)[0] == b"once\n") and "has not begun" in n.log_text(), "the work runs once; the log says why",
              n.spool(g))
    stopped = sh("sleep 300", time_limit_s=2, grace_s=1)
    n.want(g, stopped)
    n.peer.wait_state(stopped, RUNNING)
    os.kill(n.shims()[stopped.name], signal.SIGSTOP)
    entry = n.peer.wait_state(stopped, EXITED, 20)
    tap.check(entry is not None and END[entry.end] == "time_limit", "a shim that was stopped keeps its deadlines all the same", entry)
    shim, pid = n.shims()[g.name], n.init_pid(g)
    tap.check(trace(shim), "a shim is traced")
    n.want()
    tap.check(n.peer.wait_state(g, STOPPING) is not None, "and its work is to stop")
    os.waitpid(shim, os.WNOHANG | 0x40000000)  # __WALL: the tracer hears of it, too
    entry = n.peer.wait_state(g, EXITED, 40)
    tap.check(entry is not None and END[entry.end] == "lost" and not is_alive(pid), "it is killed, with all it has left behind",
              (entry, n.log_text()[-2000:]))


def faults(n, tap):
    """A grant that makes no sense ends with the reason, and harms no other."""
    good, runs = sh("echo good; sleep 60"), sh("sleep 60")
    n.want(runs)
    n.peer.wait_state(runs, RUNNING)
    for name, change, word in (("no memory", {"memory_mib": 0}, "memory_mib"), ("no core", {"cpu_milli": 1}, "cpu_milli"),
                               ("ids of the machine", {"uid_base": 0}, "uid_base"),
                               ("an endless grace", {"grace_s": 1 << 31}, "grace_s"),
                               ("a device twice", {"devices": [(1, 500), (1, 500)]}, "twice"),
                               ("fence at once", {"contact_loss": 1, "fence_after_s": 0}, "fence_after_s"),
                               ("a contact loss of the future", {"contact_loss": 7}, "on_contact_loss")):
        bad = sh("true", **change)
        code = n.want(runs, bad)[0]
        entry = n.peer.wait_state(bad, EXITED, 10)
        tap.check(code == 0 and entry is not None and END[entry.end] == "start_failed" and word in entry.reason,
                  "%s: told as an attempt that has ended" % name, (code, entry))
    bad = sh("true")
    encode = bad.encode
    bad.encode = lambda: encode()[:48 + 14 * 4] + b"\x00\x00\x80\x00" + encode()[48 + 15 * 4:]
    foreign = sh("true", tenant=b"F" * 16)
    n.want(runs, bad, foreign, good)
    for g, word in ((bad, "bits that version"), (foreign, "share uids")):
        entry = n.peer.wait_state(g, EXITED, 10)
        tap.check(entry is not None and END[entry.end] == "start_failed" and word in entry.reason, "%s: told as well" % word, entry)
    tap.check(n.peer.wait_state(good, RUNNING) is not None, "a good grant of the same set starts")
    runs.memory_mib = 0
    n.want(runs, good)
    tap.check(n.peer.until(lambda: n.peer.observed[runs.key].state != RUNNING, 2) is None,
              "what runs goes on when its grant is spoiled later", n.peer.observed[runs.key])
    runs.is_stop, runs.grace_s = True, 0
    n.want(runs, good)
    entry = n.peer.wait_state(runs, EXITED, 10)
    tap.check(entry is not None and END[entry.end] == "stopped", "and stops when that says so", entry)
    tap.check(n.want(good, good)[0] != 0, "the same allocation twice is no set at all")
    n.want()
    n.peer.wait_state(good, EXITED)


def held_fds(pid):
    """Those that it keeps, without what is open for a moment."""
    taken = None
    for _ in range(20):
        now = {int(fd) for fd in os.listdir("/proc/%d/fd" % pid)}
        taken = now if taken is None else taken & now
        pause()
    return taken


class Descriptors:
    """A process that gets no descriptor any more, or a few, until it is let go."""

    def __init__(self, pid, left=0):
        self.pid = pid
        self.before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        taken = held_fds(pid)
        limit = 0
        while limit in taken or left > 0:
            left -= limit not in taken
            limit += 1
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, self.before[1]))

    def release(self):
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, self.before)


def descriptors(n, tap):
    """An agentd without descriptors loses nothing, does not spin, says why, and goes on when there are some."""
    n.want()
    soon(lambda: spare_of(n))
    old = sh("trap 'echo after; exit 7' USR1; echo before; while :; do sleep 0.05; done", devices=[(1, 1000)])
    n.want(old)
    n.peer.wait_state(old, RUNNING)
    soon(lambda: n.spool(old)[0] == b"before\n")
    n.peer.until(lambda: old.key in n.peer.logs)
    new = [sh("echo new", devices=[(1, 1000)]), sh("echo two", devices=[(2, 1000)])]
    n.want(old, new[0])
    n.peer.wait_state(new[0], WAITING)
    short = Descriptors(n.process.pid)
    code = n.want(old, *new)[0]
    os.kill(n.init_pid(old), signal.SIGUSR1)
    begin, since = cpu_s(n.process.pid), time.monotonic()
    n.peer.until(lambda: False, 4)
    used = (cpu_s(n.process.pid) - begin) / (time.monotonic() - since)
    tap.check(n.process.poll() is None and used < 0.2, "without descriptors it lives, and does not spin", (used, n.log_text()[-1500:]))
    short.release()
    entry = n.peer.wait_state(old, EXITED, 20)
    tap.check(entry is not None and (END[entry.end], entry.exit_code) == ("exit", 7), "an end that could not be read then is told", entry)
    n.peer.until(lambda: old.key in n.peer.log_complete)
    tap.check(n.spool(old)[0] == b"before\nafter\n" and old.key in n.peer.log_complete, "with its whole log", n.spool(old))
    if code != 0:  # not even the set could be remembered
        n.want(old, *new)
    for g in new:
        entry = n.peer.wait_state(g, EXITED, 40)
        tap.check(entry is not None and entry.exit_code == 0, "what could not start then starts", (entry, n.log_text()[-1500:]))
    tap.check([n.spool(g)[0] for g in new] == [b"new\n", b"two\n"], "once")
    # else theirs come free, and are enough
    tap.check(soon(lambda: not n.shims() and spare_of(n), 30), "the shims of what ended are gone", n.shims())
    few = Descriptors(n.process.pid, left=2)
    g = sh("echo late")
    n.want(g)
    entry = n.peer.wait_state(g, (WAITING, EXITED), 20)
    tap.check(entry is not None and "open files" in entry.reason, "a start that finds too few waits, and says so", entry)
    few.release()
    entry = n.peer.wait_state(g, EXITED, 40)
    tap.check(entry is not None and entry.exit_code == 0 and n.spool(g)[0] == b"late\n", "until there are enough", entry)
    check_deaf(n, tap)


def check_deaf(n, tap):
    folder = "/proc/%d/fd" % n.process.pid
    soon(lambda: not n.shims() and spare_of(n))
    count = len(os.listdir(folder))
    n.peer.close()
    soon(lambda: len(os.listdir(folder)) < count)
    short = Descriptors(n.process.pid)
    peer = subprocess.Popen(["python3", "-c", "import socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET);"
                             "s.connect(sys.argv[1]); print('up', flush=True); s.recv(9)", n.socket], stdout=subprocess.PIPE)
    peer.stdout.readline()
    begin, lines = cpu_s(n.process.pid), len(n.log_text())
    time_out = time.monotonic() + 3
    while time.monotonic() < time_out:
        soon(lambda: peer.poll() is not None, 0.5)
    tap.check(cpu_s(n.process.pid) - begin < 0.5 and n.log_text()[lines:].count("refused") < 10 and peer.poll() is None,
              "a connection that cannot be taken waits, and wakes nobody all the time", n.log_text()[-1500:])
    short.release()
    tap.check(peer.wait(20) == 0, "until it is taken")
    n.connect()


class Disk:
    """The node's state on a small disk of its own."""

    def __init__(self, n, mib):
        self.n, self.path = n, os.path.join(n.state, "fill")
        n.process.terminate()
        n.process.wait()
        n.peer.close()
        identity = open(os.path.join(n.state, "identity"), encoding="ascii").read()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%dm,mode=711" % mib, "small", n.state], check=True)
        with open(os.path.join(n.state, "identity"), "w", encoding="ascii") as f:
            f.write(identity)
        n.start()
        n.connect()

    def fill(self):
        with open(self.path, "wb", buffering=0) as f:
            for size in (65536, 4096, 1):
                try:
                    while True:
                        f.write(b"x" * size)
                except OSError:
                    continue

    def empty(self):
        os.unlink(self.path)

    def done(self):
        subprocess.run(["umount", "-l", self.n.state], check=False)


def full_disk(n, tap):
    disk = Disk(n, 24)
    try:
        check_full_start(n, tap, disk)
        check_full_log(n, tap, disk)
        check_full_image(n, tap, disk)
    finally:
        n.want()
        n.peer.until(lambda: not n.shims(), 10)
        n.process.terminate()
        n.exit_code = n.process.wait()
        disk.done()


def check_full_start(n, tap, disk):
    old = sh("trap 'exit 9' TERM; while :; do sleep 0.05; done", devices=[(1, 1000)], grace_s=20)
    new = sh("echo new", devices=[(1, 1000)])
    n.want(old, new)
    n.peer.wait_state(old, RUNNING)
    n.peer.wait_state(new, WAITING)
    soon(lambda: catches(n, old, signal.SIGTERM))
    disk.fill()
    code, _, _, text = n.want(old, new)
    tap.check(code == 0, "a set is remembered on the fullest disk: in the place of the one before", text)
    tap.check(n.peer.observed[old.key].state == RUNNING, "and what it keeps goes on")
    os.kill(n.init_pid(old), signal.SIGTERM)
    entry = n.peer.wait_state(old, EXITED)
    tap.check(entry is not None and entry.exit_code == 9, "an end is written on the fullest disk", entry)
    entry = n.peer.until(lambda: n.peer.observed.get(new.key) if "No space left" in n.peer.observed[new.key].reason else None, 20)
    tap.check(entry is not None and entry.state in (WAITING, PREPARING), "a start waits for room, and says so",
              (entry, n.peer.observed.get(new.key)))
    n.kill()
    n.start()
    n.connect()
    entry = n.peer.until(lambda: n.peer.observed.get(old.key))
    tap.check(entry is not None and entry.exit_code == 9, "the end outlives agentd", entry)
    code, _, _, text = n.want(new)
    tap.check(code != 0 and "No space left" in text, "a set that cannot be remembered is refused with the reason", text)
    disk.empty()
    n.want(new)
    entry = n.peer.wait_state(new, EXITED, 40)
    tap.check(entry is not None and entry.exit_code == 0 and n.spool(new)[0] == b"new\n", "with room it starts, once",
              (entry, n.log_text()[-1500:]))


def catches(n, g, number):
    """Whether the shell below berth-init has set its trap."""
    with open("/proc/%d/task/%d/children" % (n.init_pid(g), n.init_pid(g)), encoding="ascii") as f:
        child = f.read().split()[0]
    with open("/proc/%s/status" % child, encoding="ascii") as f:
        caught = next(int(line.split()[1], 16) for line in f if line.startswith("SigCgt"))
    return caught >> (number - 1) & 1


def check_full_log(n, tap, disk):
    say = "trap 'head -c 50000 /dev/zero | tr \"\\\\0\" %s' %s; "
    g = sh(say % ("a", "USR1") + say % ("b", "USR2") + say % ("c", "WINCH") + "trap 'exit 0' TERM; while :; do sleep 0.02; done",
           grace_s=20)
    n.want(g)
    n.peer.wait_state(g, RUNNING)
    soon(lambda: catches(n, g, signal.SIGTERM))

    def says(number):
        os.kill(n.init_pid(g), number)
        n.peer.until(lambda: False, 1)

    says(signal.SIGUSR1)
    disk.fill()
    says(signal.SIGUSR2)
    disk.empty()
    says(signal.SIGWINCH)
    disk.fill()
    os.kill(n.init_pid(g), signal.SIGTERM)
    entry = n.peer.wait_state(g, EXITED)
    out, _, gaps = n.spool(g)
    lost = sum(gap[2] for gap in gaps)
    tap.check(entry is not None and entry.exit_code == 0 and out.startswith(b"a" * 50000) and out.endswith(b"c" * 50000),
              "output before and after a full disk is kept", (entry, len(out), gaps))
    tap.check(gaps and all(gap[3] == 2 for gap in gaps) and lost + len(out) == 150000, "what was lost is told, to the byte",
              (len(out), gaps))
    disk.empty()
    g = sh("trap 'head -c 200000 /dev/zero; echo last >&2; exit 0' TERM; echo first; while :; do sleep 0.02; done", grace_s=20)
    n.want(g)
    n.peer.wait_state(g, RUNNING)
    soon(lambda: n.spool(g)[0] == b"first\n")
    disk.fill()
    os.kill(n.init_pid(g), signal.SIGTERM)
    n.peer.wait_state(g, EXITED)
    out, err, gaps = n.spool(g)
    lost = {1: 0, 2: 0}
    for stream, _, count, _ in gaps:
        lost[stream] += count
    tap.check(len(out) + lost[1] == 200006 and len(err) + lost[2] == 5 and lost[1] > 0,
              "also when the disk stays full to the end", (len(out), len(err), gaps))
    disk.empty()


def check_full_image(n, tap, disk):
    root, layout = os.path.join(n.dir, "image-root"), os.path.join(n.dir, "layout")
    make_rootfs(root)
    os.unlink(os.path.join(root, "data/kmsg"))
    with open(os.path.join(root, "bulk"), "wb") as f:
        f.write(os.urandom(4 << 20))
    image = oci_layout(layout, root)
    before = sorted(os.listdir(os.path.join(n.state, "images/layers")))
    with open(disk.path, "wb") as f:
        f.write(b"x" * (19 << 20))
    g = sh("wc -c </bulk", image=image)
    n.want(g)
    n.peer.until(lambda: (image, 0) in n.peer.needs)
    n.peer.image_ready(image, 0, b"T" * 16, layout)
    entry = n.peer.until(lambda: n.peer.observed[g.key] if "space" in n.peer.observed[g.key].reason else None, 20)
    tap.check(entry is not None and entry.state == WAITING, "an image that finds no room is waited for, and that is told",
              (entry, n.peer.observed.get(g.key), n.log_text()[-1500:]))
    tap.check(sorted(os.listdir(os.path.join(n.state, "images/layers"))) == before and
              soon(lambda: not os.listdir(os.path.join(n.state, "images/tmp"))), "nothing of it is left, or counts")
    disk.empty()
    n.peer.needs = []
    tap.check(n.peer.until(lambda: (image, 0) in n.peer.needs, 20), "it is asked for again")
    n.peer.image_ready(image, 0, b"T" * 16, layout)
    entry = n.peer.wait_state(g, EXITED, 30)
    tap.check(entry is not None and n.spool(g)[0] == b"4194304\n", "and with room the work runs", (entry, n.spool(g)))

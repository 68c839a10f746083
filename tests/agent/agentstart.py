"""Groups of tests/agent/run about how work starts: what the runtime still does, and the shim made ahead."""
import contextlib
import os
import signal
import time

from agentlib import EXITED, RUNNING, END, Grant, is_alive, soon


def sh(script):
    return Grant(["/bin/sh", "-c", script])


def start(n, node, tap):
    """Work runs when its program does, whatever the runtime has left to do."""
    gate, runtime = os.path.join(n.dir, "gate"), os.path.join(n.dir, "runtime")
    with open(runtime, "w", encoding="ascii") as f:
        f.write("#!/bin/sh\n/usr/bin/crun \"$@\" || exit\n"
                "case \"$*\" in *' run '*) while [ ! -e %s ]; do sleep 0.02; done; exit $(cat %s);; esac\n" % (gate, gate))
    os.chmod(runtime, 0o755)
    slow = node("--crun", runtime)
    try:
        g = sh("echo up; sleep 60")
        slow.want(g)
        tap.check(slow.peer.wait_state(g, RUNNING) is not None and not os.path.exists(gate),
                  "it is told to run while the runtime has not ended")
        pid = slow.init_pid(g)
        with open(gate, "w", encoding="ascii") as f:
            f.write("0")
        slow.want()
        entry = slow.peer.wait_state(g, EXITED)
        tap.check(entry is not None and END[entry.end] == "not_granted" and slow.spool(g)[0] == b"up\n" and
                  not is_alive(pid), "and is stopped like any other", entry)
        os.unlink(gate)
        g = sh("sleep 60")
        slow.want(g)
        slow.peer.wait_state(g, RUNNING)
        pid = slow.init_pid(g)
        with open(gate, "w", encoding="ascii") as f:
            f.write("7")
        entry = slow.peer.wait_state(g, EXITED)
        tap.check(entry is not None and END[entry.end] == "start_failed" and "7" in entry.reason,
                  "a runtime that fails in the end has started nothing", entry)
        tap.check(slow.peer.until(lambda: not is_alive(pid)), "and nothing is left of it")
    finally:
        slow.done()


def small(n, tap):
    """The least share of a core is for the work, not for setting it up."""
    g = Grant(["/bin/sh", "-c", "while :; do :; done"], cpu_milli=10, grace_s=0)
    n.want(g)
    entry = n.peer.wait_state(g, RUNNING)
    quota = "/sys/fs/cgroup/cpu%s/%s/cpu.cfs_quota_us" % (n.cgroup, g.name)
    if not os.path.exists(quota):
        quota = "/sys/fs/cgroup%s/%s/cpu.max" % (n.cgroup, g.name)
    with open(quota, encoding="ascii") as f:
        tap.check(entry is not None and f.read().split()[0] == "1000", "whoever hears that it runs finds it limited", entry)
    times = {}
    for milli in (10, 1000):
        times[milli] = []
        for _ in range(5):
            h = Grant(["/bin/sleep", "60"], cpu_milli=milli, grace_s=0)
            since = time.monotonic()
            n.want(g, h)
            n.peer.wait_state(h, RUNNING)
            times[milli].append(time.monotonic() - since)
            n.want(g)
            n.peer.wait_state(h, EXITED)
    print("# start: %d ms with 10 milli of a core, %d ms with one" % tuple(min(times[m]) * 1000 for m in (10, 1000)))
    tap.check(min(times[10]) < 4 * min(times[1000]) + 0.1, "and the smallest work starts about as fast as any", times)
    n.want()
    n.peer.wait_state(g, EXITED)


def spare_of(n):
    """The process id of the shim that waits for work, if there is one."""
    with open("/proc/%d/task/%d/children" % (n.process.pid, n.process.pid), encoding="ascii") as f:
        pids = [int(pid) for pid in f.read().split()]
    for pid in pids:
        with contextlib.suppress(OSError):
            with open("/proc/%d/cmdline" % pid, "rb") as f:
                if f.read().split(b"\0")[1:2] == [b"spare"]:
                    return pid
    return None


def spare(n, tap):
    """A shim is made ahead, for what comes alone."""
    n.want()
    first = soon(lambda: spare_of(n))
    tap.check(first is not None, "one waits where nothing starts")
    g = sh("echo up; sleep 60")
    n.want(g)
    n.peer.wait_state(g, RUNNING)
    with open("/proc/%d/cmdline" % first, "rb") as f:
        words = [word for word in f.read().split(b"\0") if word]
    tap.check(n.shims().get(g.name) == first and words[1] == b"run" and words[2].endswith(g.name.encode()),
              "it takes the attempt, and tells whose it is", words)
    second = soon(lambda: spare_of(n))
    tap.check(second is not None and second != first, "then there is another one")
    os.kill(second, signal.SIGKILL)
    h = sh("echo too; sleep 60")
    n.want(g, h)
    tap.check(n.peer.wait_state(h, RUNNING) is not None and n.shims().get(h.name) != second,
              "work starts also when the one that waits was killed")
    third = soon(lambda: spare_of(n))
    n.kill()
    tap.check(third is not None and soon(lambda: not is_alive(third)), "it ends with an agentd that has no work for it")
    n.start()
    n.connect()
    n.want(g, h)
    tap.check(n.peer.wait_state(g, RUNNING) is not None and n.shims().get(g.name) == first, "what it took goes on")
    n.want()
    for each in (g, h):
        entry = n.peer.wait_state(each, EXITED)
        tap.check(entry is not None and END[entry.end] == "not_granted", "and ends like any other", entry)
    tap.check(n.spool(g)[0] == b"up\n" and n.spool(h)[0] == b"too\n", "with its log")

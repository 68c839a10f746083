"""Groups of tests/agent/run about how work starts: what the runtime still does, and the shim made ahead."""
import contextlib
import os
import signal

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

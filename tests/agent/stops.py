"""Groups of tests/agent/run: how work is stopped."""
import os
import signal

from agentlib import END, EXITED, RUNNING, STOPPING, boot_ns, is_alive, sh, tap


def want_ready(n, script, grace_s):
    """Work that runs and has set its traps: it says so."""
    g = sh(script, grace_s=grace_s)
    n.want(g)
    n.peer.wait_state(g, RUNNING)
    n.peer.until(lambda: n.spool(g)[0] == b"up\n", 20)
    return g


def test_stop(n):
    """TERM, grace, KILL."""
    polite = want_ready(n, "trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.05; done", 20)
    polite.is_stop, polite.stop_cause = True, 1
    n.want(polite)
    entry = n.peer.wait_state(polite, EXITED)
    tap.check(entry.exit_code == 5 and END[entry.end] == "stopped", "TERM lets it finish", entry)
    tap.check(n.spool(polite)[0] == b"up\nbye\n", "and its last words are kept")
    rude = want_ready(n, "trap '' TERM; echo up; while :; do sleep 0.05; done", 1)
    asked = boot_ns()
    rude.is_stop = True
    n.want(rude)
    tap.check(n.peer.wait_state(rude, STOPPING) is not None, "a stop in progress is reported")
    entry = n.peer.wait_state(rude, EXITED)
    tap.check(entry.signal == 9 and END[entry.end] == "stopped", "KILL ends what ignores TERM", entry)
    tap.check(0.9e9 < entry.ended_ns - asked < 4e9, "after the grace", entry)
    slow = want_ready(n, "trap '' TERM; echo up; while :; do sleep 0.05; done", 3600)
    slow.is_stop = True
    n.want(slow)
    n.peer.wait_state(slow, STOPPING)
    slow.grace_s = 0
    n.want(slow)
    tap.check(n.peer.wait_state(slow, EXITED, 10) is not None, "a shorter grace asked later counts")
    orphans = sh("(trap '' TERM; sleep 300) & (setsid sleep 300) & exec sleep 300", grace_s=0)
    n.want(orphans)
    n.peer.wait_state(orphans, RUNNING)
    procs = "/sys/fs/cgroup/pids%s/%s/cgroup.procs" % (n.cgroup, orphans.name)
    if not os.path.exists(procs):
        procs = "/sys/fs/cgroup%s/%s/cgroup.procs" % (n.cgroup, orphans.name)
    n.peer.until(lambda: len(open(procs).read().split()) >= 3, 5)
    pids = [int(p) for p in open(procs).read().split()]
    n.want()
    entry = n.peer.wait_state(orphans, EXITED)
    tap.check(END[entry.end] == "not_granted", "what is not in the newest set is stopped", entry)
    tap.check(len(pids) >= 3 and not any(is_alive(p) for p in pids),
              "with every process of it", pids)
    ending = want_ready(n, "trap 'echo bye' TERM; echo up; while :; do sleep 0.05; done", 1)
    os.kill(n.shims()[ending.name], signal.SIGTERM)
    entry = n.peer.wait_state(ending, EXITED, 10)
    tap.check(entry is not None and END[entry.end] == "lost" and "shut down" in entry.reason and entry.signal == 9,
              "the machine's SIGTERM to a shim is a stop, and no end of the work's own", entry)
    tap.check(n.spool(ending)[0] == b"up\nbye\n", "with its grace", n.spool(ending))
    never = sh("true")
    never.is_stop = True
    n.want(never)
    entry = n.peer.wait_state(never, EXITED)
    tap.check(entry is not None and END[entry.end] == "stopped" and entry.started_ns == 0,
              "what is asked to stop before it was here never starts", entry)

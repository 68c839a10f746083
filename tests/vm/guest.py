#!/usr/bin/env python3
"""Runs inside the machine that tests/vm/run boots: Berth from its packages, under systemd. TAP on stdout.

usage: guest.py core|full|again|NAME,...     again: what is left of `full` after the machine was started anew
"""
import contextlib
import http.server
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import berthbox
import registry
from berthbox import Tap, is_alive, until

HERE = pathlib.Path(__file__).resolve().parent
CGROUPS = pathlib.Path("/sys/fs/cgroup")
UNITS = ("berthd.service", "berth-agentd.service", "berth-agent.service")
PACKAGES = ("berth", "berth-controller", "berth-agent")
MARK = pathlib.Path("/root/work-before")  # of `full`, for `again`
MIB = 1024 * 1024
SLOW_S = 15
# systemd's own measure, 0 (closed) to 10, for units as they run here.
EXPOSURE_MAX = {"berthd.service": 2.0, "berth-agent.service": 2.5, "berth-agentd.service": 8.5}
tap = Tap()


def run(*command, **more):
    return subprocess.run([str(w) for w in command], check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **{"stdin": None if "input" in more else subprocess.DEVNULL, "timeout": 300, **more})


def done_well(name, *command, **more):
    begin = time.monotonic()
    done = run(*command, **more)
    tap.check(done.returncode == 0, name, done.stdout[-1500:])
    if time.monotonic() - begin > SLOW_S:
        tap.note("that took %.0f s" % (time.monotonic() - begin))
    return done.stdout


def property_of(unit, name):
    return run("systemctl", "show", "-p", name, "--value", unit).stdout.strip()


def main_pid(unit):
    return int(property_of(unit, "MainPID") or 0)


def is_active(unit):
    return property_of(unit, "ActiveState") == "active"


def journal(*units, lines=30):
    options = [w for unit in units for w in ("-u", unit)]
    return run("journalctl", "--no-pager", "-o", "cat", "-n", lines, *options).stdout


def cgroup_mode():
    kind = run("stat", "-f", "-c", "%T", CGROUPS).stdout.strip()
    unified = run("stat", "-f", "-c", "%T", CGROUPS / "unified").stdout.strip()
    return "v2" if kind == "cgroup2fs" else "hybrid" if unified == "cgroup2fs" else "v1"


class Installed(berthbox.Box):
    """The installation that packages and units make, instead of one of the test's own."""

    def __init__(self):  # pylint: disable=super-init-not-called
        self.dir, self.socket, self.nodes, self.tls = "/root", "/run/berth/berthd.sock", [], None
        self.mode = cgroup_mode()

    def program(self, name):
        return "/usr/bin/" + name

    def attempt(self, workload):
        """(name of the running attempt, process id of its first process); the second is 0 without one."""
        rows = [a for a in self.must("GET", "/v1/allocations")["items"] if a["workload"] == workload]
        if not rows:
            return "", 0
        name = "%s.%d" % (rows[0]["id"], rows[0]["attempt"])
        with contextlib.suppress(OSError, ValueError):
            pid = int(pathlib.Path("/run/berth/agent/alloc", name, "pid").read_text(encoding="ascii"))
            return name, pid if is_alive(pid) else 0
        return name, 0

    def cgroup(self, workload, controller):
        tree = CGROUPS if self.mode == "v2" else CGROUPS / controller
        return tree / "berth" / self.attempt(workload)[0]

    def limit(self, workload, controller, v1, v2):
        path = self.cgroup(workload, controller) / (v2 if self.mode == "v2" else v1)
        return path.read_text(encoding="ascii").strip() if path.exists() else "no " + str(path)

    def start_work(self, text="up", **spec):
        """Work that runs and has written `text`."""
        work = self.submit(**spec)["id"]
        self.wait(work, "running", timeout_s=30)
        if not until(lambda: text.encode() in self.logs(work), 30):
            tap.note("no %r of %s: %r\n%s" % (text, work, self.show(work), journal("berth-agentd", "berth-agent")))
        return work

    def end_work(self, *works):
        for work in works:
            self.must("POST", "/v1/workloads/%s/cancel" % work, {})
        return [self.wait(work) for work in works]


def node_is_there(box):
    view = box.api("GET", "/v1/nodes/vm")
    return view.status == 200 and view.json.get("is_usable") and view.json["cpu_milli"] > 0


def settle(box):
    """Everything answers again after a change of units."""
    is_good = until(box.is_ready, 30) and until(lambda: box.node_view("vm").get("contact") == "ok", 30)
    if not is_good:
        tap.note(journal(*UNITS))
    return is_good


# ---- installation ------------------------------------------------------------------------------

def debs(*names):
    return [str(next(HERE.glob(name + "_*.deb"))) for name in names]


def test_install(_):
    done_well("dpkg -i of the controller", "dpkg", "-i", *debs("berth", "berth-controller"))
    done_well("dpkg -i of the agent, on the same machine", "dpkg", "-i", *debs("berth-agent"))
    state = run("dpkg-query", "-W", "-f", "${Package} ${db:Status-Abbrev}\n", *PACKAGES).stdout.split("\n")
    tap.equal(sorted(s.strip() for s in state if s), sorted("%s ii" % p for p in PACKAGES), "all are installed")
    users = run("getent", "passwd", "berthd", "berth-agent").stdout
    tap.check(users.count("nologin") == 2, "users without a login", users)
    owners = run("stat", "-c", "%n %U %a", "/run/berth", "/var/lib/berth", "/var/lib/berth/agent", "/etc/berth").stdout
    tap.equal(owners.split("\n")[:4], ["/run/berth berthd 755", "/var/lib/berth berthd 711", "/var/lib/berth/agent root 711",
                                       "/etc/berth root 755"], "directories with their owners")
    tap.equal([property_of(u, "UnitFileState") for u in UNITS], ["disabled"] * 3, "nothing is enabled")
    done = run("systemctl", "start", *UNITS)
    tap.equal((done.returncode, [property_of(u, "ActiveState") for u in UNITS]), (0, ["inactive"] * 3),
              "nothing runs before it was set up, and that is no failure")


def test_set_up(box):
    done_well("berthd init as its user", "runuser", "-u", "berthd", "--", "berthd", "init")
    done_well("berthd is enabled and ready", "systemctl", "enable", "--now", "berthd")
    tap.check(is_active("berthd") and box.is_ready(), "it answers", journal("berthd"))
    token = box.cli("node", "join-token", "-q")
    tap.check(token.returncode == 0, "a join token", token)
    done_well("the node joins", "berth-agent", "join", "--server", "localhost", "--token-file", "-", "--ca",
              "/var/lib/berth/ca.pem", "--name", "vm", input=token.stdout.decode())
    pathlib.Path("/etc/default/berth-agentd").write_text("OPTIONS=--gpu sim:4xh100\n", encoding="ascii")
    done_well("the agent is enabled", "systemctl", "enable", "--now", "berth-agentd", "berth-agent")
    tap.check(until(lambda: node_is_there(box), 60), "the node can take work", journal("berth-agentd", "berth-agent"))
    view = box.node_view("vm")
    tap.equal(len(box.all("/v1/devices")), 4, "options of the unit come from /etc/default")
    tap.check(not view.get("problems"), "and it has no problem with this machine", view)
    tap.note("%s, %s, %s" % (os.uname().release, run("systemctl", "--version").stdout.split("\n")[0],
                             run("crun", "--version").stdout.split("\n")[0]))
    box.must("PATCH", "/v1/settings", {"backoff_base_s": 1, "backoff_max_s": 1, "grace_s": 1})
    box.must("POST", "/v1/tenants", {"path": "amber"})
    done = box.cli("image", "import", "busybox", str(HERE / "busybox.tar"), timeout=200)
    tap.check(done.returncode == 0, "an image is imported", (done, journal("berthd")))
    tap.equal(run("systemctl", "--failed", "--no-legend", "--plain").stdout, "", "no unit has failed")


# ---- work --------------------------------------------------------------------------------------

def test_work(box):
    done = box.cli("submit", "-p", "amber", "-i", "busybox", "-g", "1", "--cpus", "0.5", "-m", "64M", "--wait", "--", "sh", "-c",
                   "echo hello; id -u; echo err >&2", timeout=200)
    work = box.all("/v1/workloads")[0]["id"]
    tap.check(done.returncode == 0, "submit --wait of a container with limits",
              (done, box.show(work), journal("berth-agentd", "berth-agent")))
    tap.equal(box.logs(work, stream="stdout"), b"hello\n0\n", "its output")
    view = box.run(script="exit 7")
    tap.equal((view["state"], view.get("exit", {}).get("code")), ("failed", 7), "its exit code")


def spin_share(box, work, seconds=4.0):
    """Of one core, while work does nothing but compute."""
    def used():
        if box.mode == "v2":
            return int(re.search(r"usage_usec (\d+)", box.limit(work, "cpu", "", "cpu.stat"))[1]) / 1e6
        return int(box.limit(work, "cpuacct", "cpuacct.usage", "")) / 1e9
    before, begin = used(), time.monotonic()
    berthbox.pause(seconds)
    return (used() - before) / (time.monotonic() - begin)


def test_limits(box):
    work = box.start_work(script="echo up; while :; do :; done", cpu_milli=300, memory_mib=48)
    tap.equal(box.limit(work, "memory", "memory.limit_in_bytes", "memory.max"), str(48 * MIB), "the kernel has the limit of memory")
    swap = box.limit(work, "memory", "memory.memsw.limit_in_bytes", "memory.swap.max")
    tap.check(swap in ("0" if box.mode == "v2" else str(48 * MIB),) or swap.startswith("no "), "swap is no way around it", swap)
    tap.note("swap: " + swap)
    processes = box.limit(work, "pids", "pids.max", "pids.max")
    tap.check(processes.isdigit(), "the kernel has a limit of processes", processes)
    quota = box.limit(work, "cpu", "cpu.cfs_quota_us", "cpu.max")
    tap.equal(quota, "30000 100000" if box.mode == "v2" else "30000", "the kernel has the share of a core")
    share = spin_share(box, work)
    tap.check(0.1 < share < 0.36, "work that computes gets its share and no more", share)
    tap.note("share of a core: %.3f of 0.300" % share)
    check_processes(box, work)
    check_devices(box, work)
    box.end_work(work)
    leftovers = [str(p) for p in CGROUPS.rglob("alc_*")]
    tap.equal(leftovers, [], "no cgroup is left")


def check_processes(box, work):
    """The limit is of a cgroup that all of the work's processes are in: a lower one bites."""
    path = box.cgroup(work, "pids") / "pids.max"
    path.write_text("8", encoding="ascii")
    done = box.cli("exec", "-T", work, "--", "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 1 & done; wait; echo all")
    count = int((path.parent / "pids.current").read_text(encoding="ascii"))
    tap.check(b"all" not in done.stdout and b"fork" in done.stderr and count <= 8, "no more processes than that", (done, count))


def check_devices(box, work):
    """What a process of root's own may open, once it is in the work's cgroup."""
    procs = box.cgroup(work, "devices") / "cgroup.procs"
    probe = "echo $$ >%s && for d in null zero urandom kmsg vda; do (: </dev/$d) 2>/dev/null && echo $d; done" % procs
    done = run("sh", "-c", probe)
    tap.equal(done.stdout.split(), ["null", "zero", "urandom"], "of the machine's devices only harmless ones can be opened")


def test_memory(box):
    view = box.run(memory_mib=32, script="head -c 100m /dev/zero | tail >/dev/null", timeout_s=60)
    tap.equal((view["state"], view["cause"]), ("failed", "out_of_memory"), "too much memory is told apart")
    view = box.run(memory_mib=32, script="kill -9 $$")
    tap.equal((view["state"], view["cause"]), ("failed", "failed"), "from a kill")
    work = box.start_work(memory_mib=64, script="(head -c 100m /dev/zero | tail >/dev/null); echo up; exit 0")
    view = box.wait(work)
    tap.equal(view["state"], "succeeded", "a part of the work that was killed for memory leaves the verdict to the work")
    tap.check(all(is_alive(main_pid(u)) for u in UNITS), "nothing of ours was killed")


def test_exec(box):
    work = box.start_work(script="echo up; sleep 600", cpu_milli=500, memory_mib=64)
    done = box.cli("exec", "-T", work, "--", "sh", "-c", "echo out; echo err >&2; cat; exit 5", input=b"in\n")
    tap.equal((done.returncode, done.stdout, done.stderr), (5, b"out\nin\n", b"err\n"), "exec, its streams and its status")
    done = box.cli("exec", "-T", work, "--", "sh", "-c", "grep -E '^(NoNewPrivs|CapEff|Seccomp):' /proc/self/status; ls /sys; mount -t tmpfs x /tmp")
    words = done.stdout.decode().split()
    tap.check(words == ["CapEff:", "0" * 16, "NoNewPrivs:", "1", "Seccomp:", "2"] and done.returncode != 0,
              "a command inside has no more rights than the work", done)
    check_oom_score(box, work)
    script = "cat /proc/self/cgroup; cat /proc/net/dev | wc -l; ls /proc | grep -c '^[0-9]'"
    done = box.cli("exec", "-T", work, "--", "sh", "-c", script)
    tap.check(b"berth" not in done.stdout and b"systemd" not in done.stdout.replace(b"name=systemd", b""),
              "nor does it see where it is", done)
    box.end_work(work)


def check_oom_score(box, work):
    """Where the machine itself runs out of memory, work goes first, and cannot change that."""
    _, pid = box.attempt(work)
    score = pathlib.Path("/proc/%d/oom_score_adj" % pid).read_text(encoding="ascii").strip()
    ours = [pathlib.Path("/proc/%d/oom_score_adj" % main_pid(u)).read_text(encoding="ascii").strip() for u in UNITS[:2]]
    tap.equal((int(score) > 0, ours), (True, ["-900"] * 2), "it is ended for the machine's memory before us (%s)" % score)
    done = box.cli("exec", "-T", work, "--", "sh", "-c", "cat /proc/self/oom_score_adj; echo -900 >/proc/self/oom_score_adj; "
                   "cat /proc/self/oom_score_adj; exec grep SigIgn /proc/self/status")
    tap.equal(done.stdout.decode().split(), [score, score, "SigIgn:", "0" * 16], "and so is a command in it, for good")


def processes_of(box, work):
    """Of its cgroup, in whichever tree has it."""
    name, pids = box.attempt(work)[0], set()
    for procs in CGROUPS.rglob("cgroup.procs"):
        if name in procs.parts:
            with contextlib.suppress(OSError):
                pids.update(int(word) for word in procs.read_text(encoding="ascii").split())
    return pids


def test_cancel(box):
    script = "trap '' TERM; for i in 1 2 3 4 5; do setsid sh -c 'trap \"\" TERM; sleep 600; sleep 600' & done; echo up; wait; sleep 600"
    work = box.start_work(script=script, grace_s=1, memory_mib=64)
    until(lambda: len(processes_of(box, work)) >= 11, 20)
    pids = processes_of(box, work)
    tap.check(len(pids) >= 11, "work that ignores TERM, in sessions of its own", pids)
    view = box.end_work(work)[0]
    tap.equal((view["state"], view["cause"]), ("cancelled", "admin_cancelled"), "cancel ends it")
    tap.check(until(lambda: not any(is_alive(p) for p in pids), 10), "and all of its processes", [p for p in pids if is_alive(p)])
    tap.check(until(lambda: not list(CGROUPS.rglob("alc_*")), 10), "and its cgroups", list(map(str, CGROUPS.rglob("alc_*"))))


def test_registry(box):
    """Controller and node fetch an image with the programs and the filters that their units leave them."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), registry.Shelf)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    host = "localhost:%d" % server.server_port
    registry.Shelf.blobs, listed, _ = registry.docker_layout(box, "docker", "echo from a registry")
    registry.Shelf.tags = {"v1": listed}
    pathlib.Path("/etc/berth/berthd.yaml").write_text('plain_http_registries: ["%s"]\n' % host, encoding="ascii")
    pathlib.Path("/etc/default/berth-agent").write_text("OPTIONS=--registry %s --plain-http\n" % host, encoding="ascii")
    done_well("both are told of a registry", "systemctl", "restart", "berthd", "berth-agent")
    settle(box)
    answer = box.api("POST", "/v1/images", {"name": "fetched", "source": host + "/d/app:v1"}, timeout=200)
    tap.check(answer.status == 201, "an image is named by a tag", (answer, journal("berthd")))
    work = box.submit(image="fetched")["id"]
    view = box.wait(work)
    tap.check(view["state"] == "succeeded" and box.logs(work) == b"from a registry\n", "work runs from it",
              (view, box.logs(work), journal("berth-agent", "berth-agentd")))
    server.shutdown()


# ---- units -------------------------------------------------------------------------------------

TICKS = "trap 'exit 3' USR1; i=0; while :; do i=$((i+1)); echo tick $i; sleep 0.5 & wait $!; done"


def last_tick(box, work):
    found = re.findall(rb"tick (\d+)", box.logs(work))
    return int(found[-1]) if found else 0


def check_survival(box, work, pid, name):
    """The same process goes on writing, and what it writes arrives."""
    is_settled = settle(box)
    seen = last_tick(box, work)
    is_going_on = until(lambda: last_tick(box, work) > seen + 1, 30)
    now = box.attempt(work)[1]
    inside = box.cli("exec", "-T", work, "--", "echo", "inside", timeout=120)
    tap.check(inside.stdout == b"inside\n", "exec in it works", inside)
    tap.check(is_settled and is_going_on and pid == now, name, (is_settled, seen, last_tick(box, work), pid, now, box.show(work),
                                                                journal(*UNITS)))


def start_ticks(box):
    work = box.start_work("tick 2", script=TICKS, cpu_milli=200, memory_mib=48)
    return work, box.attempt(work)[1]


def test_restarts(box, units=UNITS):
    work, pid = start_ticks(box)
    for unit in units:
        before = main_pid(unit)
        done_well("systemctl restart " + unit, "systemctl", "restart", unit)
        tap.check(main_pid(unit) not in (0, before), "it is another process", (before, main_pid(unit)))
        check_survival(box, work, pid, "running work goes on")
    lines = re.findall(rb"tick (\d+)", box.logs(work))
    tap.equal([int(w) for w in lines], list(range(1, len(lines) + 1)), "no line of its output was lost or came twice")
    os.kill(pid, signal.SIGUSR1)
    view = box.wait(work)
    tap.equal((view["state"], view.get("exit", {}).get("code"), view["attempt"]), ("failed", 3, 1), "its exit code is known")


def test_restart(box):
    test_restarts(box, UNITS[1:2])
    check_nothing_left(box)


def test_crashes(box):
    work, pid = start_ticks(box)
    for unit in UNITS:
        before = main_pid(unit)
        os.kill(before, signal.SIGKILL)
        tap.check(until(lambda u=unit, b=before: main_pid(u) not in (0, b) and is_active(u), 30), unit + " comes back when killed")
        check_survival(box, work, pid, "running work goes on")
    limits = [("memory", "memory.limit_in_bytes", "memory.max"), ("pids", "pids.max", "pids.max"), ("cpu", "cpu.cfs_quota_us", "cpu.max")]
    before = [box.limit(work, *each) for each in limits]
    done_well("systemctl daemon-reload", "systemctl", "daemon-reload")
    done_well("systemctl daemon-reexec", "systemctl", "daemon-reexec")
    done_well("other services come and go", "systemd-run", "--wait", "-p", "MemoryMax=64M", "-p", "CPUQuota=50%", "-p", "TasksMax=9", "true")
    check_survival(box, work, pid, "running work goes on")
    tap.equal([box.limit(work, *each) for each in limits], before, "with its limits")
    check_devices(box, work)
    box.end_work(work)
    check_nothing_left(box)


def check_nothing_left(box):
    """Of work, once it has ended and was told."""
    places = [pathlib.Path("/run/berth/agent/alloc"), pathlib.Path("/var/lib/berth/agent/alloc"), pathlib.Path("/run/berth/agent/runtime")]

    def left():
        mounts = pathlib.Path("/proc/%d/mountinfo" % main_pid("berth-agentd")).read_text(encoding="ascii")
        return [str(p) for place in places if place.exists() for p in place.iterdir()] + \
            [line for line in mounts.split("\n") if "/alloc/" in line] + [str(p) for p in CGROUPS.rglob("alc_*")]
    tap.check(until(lambda: not left(), 20), "no directory, mount or cgroup is left of it", left())


def test_obstacle(box):
    """What keeps a unit from starting passes after more tries than systemd would make."""
    done_well("systemctl stop of the controller", "systemctl", "stop", "berthd")
    with socket.create_server(("127.0.0.1", 7878)):
        run("systemctl", "start", "--no-block", "berthd")
        until(lambda: int(property_of("berthd", "NRestarts")) >= 6, 30, 1)
        tap.check(not is_active("berthd"), "it cannot start while another has its port")
    tap.check(until(lambda: is_active("berthd"), 15), "and starts by itself once it has not", journal("berthd"))
    settle(box)


def test_stops(box):
    work, pid = start_ticks(box)
    done_well("systemctl stop of the agent", "systemctl", "stop", "berth-agent", "berth-agentd")
    tap.check(is_alive(pid), "running work goes on")
    tap.equal([property_of(u, "Result") for u in UNITS], ["success"] * 3, "a stop is no failure")
    done_well("systemctl stop of the controller", "systemctl", "stop", "berthd")
    tap.check(is_alive(pid), "running work goes on")
    done_well("systemctl start of all", "systemctl", "start", *UNITS)
    check_survival(box, work, pid, "it is adopted")
    done_well("systemctl stop of the privileged half", "systemctl", "stop", "berth-agentd")
    os.kill(pid, signal.SIGUSR1)
    tap.check(until(lambda: not is_alive(pid), 10), "work ends while nobody looks")
    done_well("systemctl start", "systemctl", "start", "berth-agentd")
    view = box.wait(work)
    tap.equal((view["state"], view.get("exit", {}).get("code")), ("failed", 3), "how it ended is told later")


def test_hardening(_):
    for unit in UNITS:
        text = run("systemd-analyze", "security", "--no-pager", unit).stdout
        match = re.search(r"Overall exposure level for [^:]+: ([0-9.]+)", text)
        tap.check(match and float(match[1]) <= EXPOSURE_MAX[unit], "%s: exposure of at most %s" % (unit, EXPOSURE_MAX[unit]), text[-300:])
        tap.note(match[0] if match else "no measure")
        status = pathlib.Path("/proc/%d/status" % main_pid(unit)).read_text(encoding="ascii")
        found = dict(re.findall(r"^(NoNewPrivs|CapEff|CapBnd|Seccomp|Uid):\s+(\S+)", status, re.M))
        if unit == "berth-agentd.service":
            tap.check(found["CapBnd"] != "000001ffffffffff" and found["Uid"] == "0", "root, with fewer capabilities", found)
        else:
            tap.check((found["CapEff"], found["NoNewPrivs"], found["Seccomp"]) == ("0" * 16, "1", "2") and found["Uid"] != "0",
                      "no root, no capability, a filter of calls", found)
    text = run("systemd-analyze", "verify", "--man=no", *UNITS).stdout
    tap.equal([line for line in text.split("\n") if "berth" in line], [], "systemd-analyze verify has nothing to say")
    complaints = [line for line in journal(*UNITS, lines=2000).split("\n") if '"level":"error"' in line]
    tap.equal(complaints, [], "nothing was logged as an error")


# ---- upgrade, removal --------------------------------------------------------------------------

def test_upgrade(box):
    work, pid = start_ticks(box)
    before = [main_pid(u) for u in UNITS]
    done_well("dpkg -i of the same packages while work runs", "dpkg", "-i", *debs(*PACKAGES))
    after = [main_pid(u) for u in UNITS]
    tap.check(all(a not in (0, b) for a, b in zip(after, before)), "each program is another process", (before, after))
    check_survival(box, work, pid, "running work goes on")
    view = box.run(script="echo new")
    tap.equal((view["state"], box.logs(view["id"])), ("succeeded", b"new\n"), "new work starts")
    done = run("berth", "doctor")
    tap.check(done.returncode == 0, "berth doctor has nothing to say", done.stdout)
    box.end_work(work)


def test_removal(box):
    work, pid = start_ticks(box)
    said = done_well("dpkg -r while work runs", "dpkg", "-r", "berth-agent")
    tap.check("still runs" in said, "says that work still runs", said)
    tap.check(is_alive(pid) and not main_pid("berth-agentd"), "and leaves it alone", said)
    done_well("dpkg -i again", "dpkg", "-i", *debs("berth-agent"))
    tap.equal([property_of(u, "ActiveState") for u in UNITS[1:]], ["inactive"] * 2, "a removal had disabled it")
    done_well("enabled again", "systemctl", "enable", "--now", "berth-agentd", "berth-agent")
    check_survival(box, work, pid, "the work is adopted")
    box.end_work(work)
    said = done_well("dpkg --purge of all", "dpkg", "--purge", *PACKAGES)
    tap.check("still runs" not in said, "no work is left to speak of", said)
    left = run("dpkg-query", "-W", "-f", "${Package} ${db:Status-Abbrev}\n", *PACKAGES).stdout
    tap.check(" ii" not in left and " rc" not in left, "no package is left", left)
    tap.equal([property_of(u, "LoadState") for u in UNITS], ["not-found"] * 3, "no unit")
    tap.equal(run("sh", "-c", "pgrep -a berth").stdout, "", "no process")
    tap.equal([str(p) for d in ("/usr", "/etc/systemd") for p in pathlib.Path(d).rglob("*berth*")], [], "no file of theirs")
    tap.check(pathlib.Path("/var/lib/berth/berth.db").exists() and pathlib.Path("/var/lib/berth-agent").exists(), "state stays")
    done_well("dpkg -i of all at once", "dpkg", "-i", *debs(*reversed(PACKAGES)))
    done_well("enabled again", "systemctl", "enable", "--now", *UNITS)
    tap.check(settle(box) and until(lambda: node_is_there(box), 60), "what was is there again", journal(*UNITS))
    view = box.run(script="echo again")
    tap.equal(view["state"], "succeeded", "and takes work")


def leave_work(box):
    """For `again`: work that the end of the machine interrupts."""
    work = box.start_work(script="trap 'echo bye; exit 1' TERM; echo up $(cat /proc/sys/kernel/random/boot_id); while :; do sleep 0.2; done")
    stubborn = box.start_work(script="trap '' TERM; echo up; while :; do sleep 1; done")
    MARK.write_text(json.dumps([work, stubborn]), encoding="ascii")
    os.sync()


def test_new_boot(box):
    """All of it starts by itself, and so does the work that was running."""
    tap.check(until(lambda: all(map(is_active, UNITS)), 60), "after a new start of the machine all units run", journal(*UNITS))
    tap.check(settle(box) and until(lambda: node_is_there(box), 60), "the node is back", journal(*UNITS))
    works = json.loads(MARK.read_text(encoding="ascii"))
    views = [box.wait(work, "running", timeout_s=60) for work in works]
    tap.equal([v["state"] for v in views], ["running"] * 2, "work that the machine's end has interrupted runs again")
    tap.check(all(v["attempt"] == 2 for v in views), "as a new attempt", views)
    tap.note([(v["attempt"], v["failures"]) for v in views])
    first = box.logs(works[0], attempt=1)
    tap.check(b"up" in first, "what its first attempt wrote is there", first)
    tap.note("the first attempt: %r" % first)
    tap.equal([v["state"] for v in box.end_work(*works)], ["cancelled"] * 2, "and it ends like any other")


# ---- all of it ---------------------------------------------------------------------------------

CORE = (test_install, test_set_up, test_work, test_limits, test_memory, test_exec, test_cancel)
GROUPS = {
    "core": (*CORE, test_restart),
    "full": (*CORE, test_registry, test_restarts, test_crashes, test_stops, test_obstacle, test_hardening, test_upgrade, test_removal),
    "again": (test_new_boot,),
}


def main():
    kind = sys.argv[1]
    box = Installed()
    tap.note("%s on a machine with cgroups %s" % (kind, box.mode))
    for group in GROUPS.get(kind) or [globals()["test_" + name] for name in kind.split(",")]:
        begin = time.monotonic()
        try:
            group(box)
        except Exception as problem:  # pylint: disable=broad-exception-caught
            tap.check(False, "%s ends" % group.__name__, "%r\n%s" % (problem, journal(*UNITS)))
            if group is test_set_up:
                return tap.finish()
        tap.note("%s: %.0f s" % (group.__name__, time.monotonic() - begin))
    if kind == "full":
        leave_work(box)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())

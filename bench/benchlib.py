"""What the benchmarks share: a private installation, what the machine is, results as a table and as one JSON line."""
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
os.environ.setdefault("BERTH_BUILD", os.path.join(os.path.dirname(HERE), "build"))
sys.path.insert(0, os.path.join(HERE, "../tests/load"))
import loadlib  # noqa: E402
from loadlib import berthbox, cpu_s, rss_kib  # noqa: E402,F401

BUILD = berthbox.BUILD


def _leave(number, _frame):
    """As an exception, so that whatever was started is ended; once, for timeout(1) sends its signal twice."""
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    sys.exit(128 + number)


for _number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(_number, _leave)


def load():
    return os.getloadavg()[0]


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        models = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
    with open("/proc/meminfo", encoding="utf-8") as f:
        memory_kib = int(f.readline().split()[1])
    crun = subprocess.run(["crun", "--version"], capture_output=True, check=False, text=True).stdout.split("\n")[0]
    return {"cpu": models[0] if models else platform.machine(), "cores": len(models) or os.cpu_count(),
            "memory_gib": round(memory_kib / 1048576, 1), "kernel": platform.release(), "crun": crun,
            "load_1m": load()}


def fdatasync_rate(directory, seconds=2.0):
    """Appends of 4 KiB, each made durable alone: (rate a second, p50 in ms)."""
    path, block, times = os.path.join(directory, "fdatasync.tmp"), os.urandom(4096), []
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            start = time.monotonic()
            os.write(fd, block)
            os.fdatasync(fd)
            times.append(time.monotonic() - start)
    finally:
        os.close(fd)
        os.unlink(path)
    return len(times) / sum(times), statistics.median(times) * 1000


def percentile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def children_cpu_s(pid):
    """Of everything that a process has started, and that has ended and was waited for."""
    with open("/proc/%d/stat" % pid, encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


class Feed:
    """The change feed of an installation: to learn of a change when it is there, without asking for it."""

    def __init__(self, box):
        self.connection = box.connection()
        self.connection.request("GET", "/v1/events")
        self.answer = self.connection.getresponse()
        if self.answer.status != 200:
            raise RuntimeError("/v1/events: %d" % self.answer.status)

    def wait(self, workload, *states):
        """Reads on until the workload is in one of the states, and says in which."""
        while True:
            line = self.answer.readline()
            if not line:
                raise RuntimeError("the feed ended")
            if not line.startswith(b"data:") or workload.encode() not in line:
                continue
            event = json.loads(line[5:])
            if event["type"] == "workload_changed" and event["data"]["state"] in states:
                return event["data"]["state"]

    def close(self):
        self.connection.close()


def prepare(box):
    """A tenant and an image, so that work can be submitted."""
    box.must("POST", "/v1/tenants", {"path": "amber"})
    box.image()


def finish(name, result, rows):
    """The readable table to stderr's reader and people, then the line for programs."""
    result = {"bench": name, "load_1m": round(load(), 1), **result}
    width = max(len(row[0]) for row in rows)
    print("== " + name)
    for label, value in rows:
        print("   %-*s  %s" % (width, label, value))
    print(json.dumps(result), flush=True)

"""What the benchmarks share: a private installation, what the machine is, results as a table and as one JSON line."""
import json
import os
import platform
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

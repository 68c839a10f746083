"""Simulated agents for load tests and benchmarks: the process, its figures, and tokens to join with."""
import json
import os
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../blackbox"))
import berthbox  # noqa: E402

PROGRAM = os.path.join(berthbox.BUILD, "tests/load/berth-load-agents")
TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


def in_threads(count, work):
    """Runs work(i) on `count` threads; the first exception is raised here."""
    failures = []

    def run(i):
        try:
            work(i)
        except Exception as e:  # told below
            failures.append(e)
    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def join_tokens(box, count, path):
    """Writes `count` join tokens, one a line."""
    lines, lock = [], threading.Lock()

    def work(i):
        connection = box.connection()
        for _ in range(i, count, 16):
            secret = box.must("POST", "/v1/join-tokens", {}, connection=connection)["secret"]
            with lock:
                lines.append(secret)
        connection.close()
    in_threads(16, work)
    with open(path, "w", encoding="ascii") as f:
        f.write("\n".join(lines) + "\n")


class Fleet:
    """`count` simulated agents in one process; they start nothing."""

    def __init__(self, box, count, gpus=4, work_ms=0, concurrency=64):
        self.count, self.path = count, os.path.join(box.dir, "fleet.json")
        tokens = os.path.join(box.dir, "tokens")
        join_tokens(box, count, tokens)
        with open(self.path, "wb") as out, open(os.path.join(box.dir, "fleet.log"), "wb") as log:
            self.process = subprocess.Popen(
                [PROGRAM, "--port", str(box.port), "--ca", box.ca, "--dir", os.path.join(box.dir, "fleet"),
                 "--tokens", tokens, "--count", str(count), "--gpus", str(gpus), "--work-ms", str(work_ms),
                 "--concurrency", str(concurrency)], stdin=subprocess.DEVNULL, stdout=out, stderr=log)

    def figures(self):
        """The newest complete line of its report."""
        with open(self.path, "rb") as f:
            f.seek(max(0, os.path.getsize(self.path) - 4096))
            lines = f.read().split(b"\n")
        return json.loads(lines[-2]) if len(lines) > 1 else {}

    def wait(self, what, timeout_s):
        """Whether what(figures) became true in time."""
        return berthbox.until(lambda: self.process.poll() is not None or what(self.figures()), timeout_s, 0.1) \
            and self.process.poll() is None

    def wait_connected(self, timeout_s):
        return self.wait(lambda f: f.get("connected") == self.count, timeout_s)

    def stop(self):
        return berthbox.end(self.process)


def cpu_s(pid):
    """CPU seconds a process has used."""
    with open("/proc/%d/stat" % pid, encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def rss_kib(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


def seconds():
    return time.monotonic()

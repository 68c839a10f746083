"""A private installation of Berth for tests: real programs, own directories, own ports, own cgroup.

Whatever is started is ended by its pid. No test sleeps: what is waited for is polled with a deadline.
"""
import contextlib
import fcntl
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BERTH_BUILD", os.path.join(ROOT, "build-check/gcc"))
# What no test can do without; every other program of the build is copied beside them.
PROGRAMS = ["controller/berthd", "agent/berth-agent", "agent/berth-agentd", "agent/berth-shim",
            "agent/image/berth-unpack", "cli/berth"]
AGENT_UID = 65433  # of the network half; no such user is needed
ENDED = ("succeeded", "failed", "cancelled", "timed_out")
POLL_S = 0.02
SLOWNESS = float(os.environ.get("BERTH_TEST_SLOWNESS", "1"))  # of the programs, as with sanitizers


def pause(seconds=POLL_S):
    """One step of a poll."""
    threading.Event().wait(seconds)


def until(what, timeout_s=30.0, poll_s=POLL_S):
    """The first true value of what(), or the last false one at the deadline."""
    end = time.monotonic() + timeout_s * SLOWNESS
    while True:
        value = what()
        if value or time.monotonic() > end:
            return value
        pause(poll_s)


def free_port():
    """Below the ephemeral range, so that no outgoing connection takes it while berthd is down."""
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port


def is_alive(pid):
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def missing(*names):
    """Programs of the build or the machine that are not there, as a reason to skip."""
    gone = [n for n in names if shutil.which(n) is None]
    gone += [p for p in PROGRAMS if not os.access(os.path.join(BUILD, "src", p), os.X_OK)]
    return ", ".join(gone)


class Tap:
    def __init__(self):
        self.count, self.failed, self.start = 0, 0, time.monotonic()

    def check(self, condition, name, detail=""):
        self.count += 1
        if not condition:
            self.failed += 1
        print("%s %d - %s" % ("ok" if condition else "not ok", self.count, name), flush=True)
        if not condition and detail != "":
            for line in str(detail)[:4000].split("\n"):
                print("# " + line, flush=True)
        return condition

    def equal(self, got, want, name):
        return self.check(got == want, name, "got  %r\nwant %r" % (got, want))

    def skip(self, name, reason):
        self.count += 1
        print("ok %d - %s # SKIP %s" % (self.count, name, reason), flush=True)

    def note(self, text):
        for line in str(text).split("\n"):
            print("# " + line, flush=True)

    def finish(self):
        self.note("%.0f s" % (time.monotonic() - self.start))
        print("1..%d" % self.count, flush=True)
        return 1 if self.failed else 0


class Answer:
    """Of an HTTP request. Headers by name in small letters."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def problem(self):
        """(cause, field) of a refusal that is well formed, else None."""
        if self.headers.get("content-type") != "application/problem+json":
            return None
        view = self.json
        if view.get("status") != self.status or not view.get("title") or not view.get("detail"):
            return None
        return view["cause"], view.get("field")

    def __repr__(self):
        return "%d %r %r" % (self.status, self.headers, self.body[:1000])


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Feed:
    """A change feed, read on a thread: events are (id, type, data)."""

    def __init__(self, box, path="/v1/events", token=None, headers=None):
        self.connection = box.connection("unix" if token is None else "tls", 3600)
        self.connection.request("GET", path, headers=box.headers(token, headers))
        self.response = self.connection.getresponse()
        self.events, self.is_ended = [], False
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        fields = {}
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError, AttributeError):
            while True:
                line = self.response.readline()
                if not line:
                    break
                line = line.rstrip(b"\r\n").decode()
                if line == "" and "data" in fields:
                    self.events.append((int(fields["id"]), fields.get("event"), json.loads(fields["data"])))
                    fields = {}
                elif ": " in line and not line.startswith(":"):
                    name, value = line.split(": ", 1)
                    fields[name] = value
        self.is_ended = True

    def close(self):
        with contextlib.suppress(OSError):
            if self.connection.sock is not None:
                self.connection.sock.shutdown(socket.SHUT_RDWR)
        self.thread.join(5)
        self.connection.close()


class Node:
    """A node of an installation: both halves of its agent, with state of their own."""

    def __init__(self, box, name, gpu, *options, net=()):
        self.box, self.name, self.gpu, self.options, self.net = box, name, gpu, options, net
        self.dir = os.path.join(box.dir, name)
        self.run = "/run/berth-box-%s-%s" % (os.path.basename(box.dir)[-8:], name)
        self.cgroup = "/" + os.path.basename(self.run)
        self.agentd = self.agent = None
        os.makedirs(self.dir, 0o755)
        self.identity = os.path.join(self.dir, "agentd/identity")
        self.socket = os.path.join(self.dir, "agentd.sock")

    def join(self):
        token = self.box.cli("node", "join-token", "-q").stdout
        done = subprocess.run(
            [self.box.program("berth-agent"), "join", "--server", "localhost:%d" % self.box.port,
             "--token-file", "-", "--ca", self.box.ca, "--name", self.name, "--user", str(AGENT_UID),
             "--state", os.path.join(self.dir, "net"), "--identity", self.identity],
            input=token, capture_output=True, check=False, timeout=60)
        if done.returncode != 0:
            raise RuntimeError("join: %s" % done.stderr)
        return self

    def start_agentd(self):
        self.agentd = self.box.spawn(
            self.name + "-agentd.log",
            [self.box.program("berth-agentd"), "--state", os.path.join(self.dir, "agentd"), "--run", self.run,
             "--identity", self.identity, "--socket", self.socket, "--peer-user", str(AGENT_UID),
             "--gpu", self.gpu, "--cgroup", self.cgroup, *self.options])

    def start_agent(self):
        self.agent = self.box.spawn(
            self.name + "-agent.log",
            ["setpriv", "--reuid", str(AGENT_UID), "--regid", str(AGENT_UID), "--clear-groups",
             self.box.program("berth-agent"), "run", "--state", os.path.join(self.dir, "net"),
             "--socket", self.socket, *self.net])

    def start(self):
        self.start_agentd()
        self.start_agent()
        return self

    def shims(self):
        """Processes that hold an attempt's lock, by name of the attempt."""
        found = {}
        root = os.path.join(self.run, "alloc")
        for name in os.listdir(root) if os.path.isdir(root) else []:
            with contextlib.suppress(OSError, ValueError):
                with open(os.path.join(root, name, "lock"), encoding="ascii") as f:
                    pid = int(f.read().split("\n")[0])
                with open("/proc/%d/cmdline" % pid, encoding="utf-8") as f:
                    if name in f.read():
                        found[name] = pid
        return found

    def inits(self):
        """Init processes of running attempts, by name of the attempt."""
        found = {}
        root = os.path.join(self.run, "alloc")
        for name in os.listdir(root) if os.path.isdir(root) else []:
            with contextlib.suppress(OSError, ValueError):
                with open(os.path.join(root, name, "pid"), encoding="ascii") as f:
                    pid = int(f.read())
                if is_alive(pid):
                    found[name] = pid
        return found

    def processes(self):
        """Everything in the node's cgroup."""
        pids = set()
        for base, _, files in os.walk("/sys/fs/cgroup"):
            if self.cgroup + "/" in base + "/" and "cgroup.procs" in files:
                with contextlib.suppress(OSError):
                    with open(os.path.join(base, "cgroup.procs"), encoding="ascii") as f:
                        pids.update(int(line) for line in f)
        return pids

    def kill_halves(self):
        for process in (self.agent, self.agentd):
            kill(process)

    def kill_all(self):
        """As if the machine lost its power, but for its disk: no half, no shim, no workload is left."""
        self.kill_halves()
        for pid in list(self.shims().values()) + list(self.processes()):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        until(lambda: not self.shims() and not self.processes(), 10)

    def stop(self):
        """Ends what runs and removes every trace."""
        for process in (self.agent, self.agentd):
            end(process)
        names = self.shims()
        self.kill_all()
        for name in names:
            self.clean(name)
        root = os.path.join(self.run, "alloc")
        for name in os.listdir(root) if os.path.isdir(root) else []:
            self.clean(name)
        for base, _, _ in os.walk("/sys/fs/cgroup", topdown=False):
            if self.cgroup in base:
                with contextlib.suppress(OSError):
                    os.rmdir(base)
        unmount_below(self.run)
        unmount_below(self.dir)
        shutil.rmtree(self.run, ignore_errors=True)

    def clean(self, name):
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run([self.box.program("berth-shim"), "clean", os.path.join(self.dir, "agentd/alloc", name),
                            os.path.join(self.run, "alloc", name)], check=False, timeout=20,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def unmount_below(path):
    with open("/proc/self/mounts", encoding="utf-8") as f:
        points = [line.split()[1] for line in f]
    for point in reversed(points):
        if point.startswith(path + "/"):
            subprocess.run(["umount", "-l", point], check=False, stderr=subprocess.DEVNULL)


def kill(process):
    if process is not None and process.poll() is None:
        process.kill()
        process.wait()


def end(process, timeout_s=20):
    if process is None or process.poll() is not None:
        return process.returncode if process is not None else 0
    process.terminate()
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        kill(process)
        return -9


class Box:
    """An installation: a controller and nodes."""

    def __init__(self, config="", berthd=None):
        self.dir = tempfile.mkdtemp(prefix="berth-box-")
        os.chmod(self.dir, 0o755)
        os.mkdir(os.path.join(self.dir, "bin"))
        for base, _, files in os.walk(os.path.join(BUILD, "src")):
            for name in files:
                path = os.path.join(base, name)
                if name.startswith("berth") and os.path.isfile(path) and os.access(path, os.X_OK):
                    shutil.copy(path, os.path.join(self.dir, "bin"))
        if berthd is not None:  # another program in its place
            shutil.copy(berthd, self.program("berthd"))
        self.state = os.path.join(self.dir, "ctl")
        self.socket = os.path.join(self.dir, "s.sock")
        self.ca = os.path.join(self.state, "ca.pem")
        self.port = free_port()
        self.config = os.path.join(self.dir, "berthd.yaml")
        with open(self.config, "w", encoding="utf-8") as f:
            f.write("state_dir: %s\nsocket: %s\nlisten: 127.0.0.1\nport: %d\n%s" %
                    (self.state, self.socket, self.port, config))
        self.berthd, self.nodes, self.tls = None, [], None
        subprocess.run([self.program("berthd"), "--config", self.config, "init"], check=True,
                       stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, timeout=60)

    def program(self, name):
        return os.path.join(self.dir, "bin", name)

    def spawn(self, log, command):
        with open(os.path.join(self.dir, log), "ab") as f:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=f, stderr=f,
                                    start_new_session=True)

    def log(self, name="berthd.log"):
        with open(os.path.join(self.dir, name), encoding="utf-8", errors="replace") as f:
            return f.read()

    def start(self, timeout_s=30):
        """Seconds until it is ready."""
        begin = time.monotonic()
        self.berthd = self.spawn("berthd.log", [self.program("berthd"), "--config", self.config])
        if not until(lambda: self.is_ready() or self.berthd.poll() is not None, timeout_s) or \
                self.berthd.poll() is not None:
            raise RuntimeError("berthd does not get ready: " + self.log()[-2000:])
        return time.monotonic() - begin

    def is_ready(self):
        try:
            return self.api("GET", "/readyz", timeout=5).status == 200
        except (OSError, http.client.HTTPException):
            return False

    def node(self, name, gpu="sim:4xh100", *options, net=()):
        node = Node(self, name, gpu, *options, net=net).join().start()
        self.nodes.append(node)
        if not until(lambda: (lambda v: v.get("is_usable") and v["cpu_milli"] > 0)(self.node_view(name)), 30):
            raise RuntimeError("node %s does not get usable: %s" % (name, self.log(name + "-agentd.log")[-2000:]))
        return node

    def node_view(self, name):
        return self.api("GET", "/v1/nodes/" + name).json

    def agents_connected(self):
        metrics = self.api("GET", "/metrics").body.decode()
        return int(re.search(r"^berth_agents_connected (\d+)", metrics, re.M).group(1))

    def image(self):
        """Imports busybox and returns its name."""
        tar = os.path.join(self.dir, "busybox.tar")
        subprocess.run([os.path.join(ROOT, "tools/make_image"), "busybox", tar], check=True,
                       stdout=subprocess.DEVNULL, timeout=120)
        self.cli("image", "import", "busybox", tar, check=True)
        return "busybox"

    # ---- HTTP

    def connection(self, via="unix", timeout=30):
        if via == "unix":
            return UnixConnection(self.socket, timeout)
        if self.tls is None:
            self.tls = ssl.create_default_context(cafile=self.ca)
        return http.client.HTTPSConnection("localhost", self.port, timeout=timeout, context=self.tls)

    @staticmethod
    def headers(token, more=None):
        headers = dict(more or {})
        if token is not None:
            headers["Authorization"] = "Bearer " + token
        return headers

    def api(self, method, path, body=None, token=None, headers=None, **how):
        """One request; with a token over TLS, else as root over the unix socket. `how`: via and timeout of a
        connection of its own, or the connection."""
        own = "connection" not in how
        c = self.connection(**{"via": "unix" if token is None else "tls", **how}) if own else how["connection"]
        headers = self.headers(token, headers)
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        try:
            c.request(method, path, body, headers)
            r = c.getresponse()
            return Answer(r.status, {k.lower(): v for k, v in r.getheaders()}, r.read())
        finally:
            if own:
                c.close()

    def must(self, method, path, body=None, **more):
        answer = self.api(method, path, body, **more)
        if answer.status >= 300:
            raise RuntimeError("%s %s: %r" % (method, path, answer))
        return answer.json if answer.body else None

    def all(self, path, limit=100, **more):
        """Every row of a list, page by page."""
        rows, after = [], None
        while True:
            page = self.must("GET", path + ("&" if "?" in path else "?") + "limit=%d" % limit +
                             ("&after=" + after if after else ""), **more)
            rows += page["items"]
            after = page.get("next")
            if after is None:
                return rows

    def submit(self, *command, token=None, headers=None, **spec):
        """The view of what was submitted; `script` is short for a shell's -c."""
        spec.setdefault("project", "amber")
        spec.setdefault("image", "busybox")
        script = spec.pop("script", None)
        spec["command"] = ["/bin/sh", "-c", script] if script is not None else list(command)
        return self.must("POST", "/v1/workloads", spec, token=token, headers=headers)

    def show(self, workload):
        return self.must("GET", "/v1/workloads/" + workload)

    def wait(self, workload, *states, timeout_s=60):
        """The view once it is in one of the states (ended, unless given), or as it is at the deadline."""
        states = states or ENDED
        view = {}

        def there():
            view.update(view=self.show(workload))
            return view["view"]["state"] in states or (view["view"]["state"] in ENDED)
        until(there, timeout_s)
        return view["view"]

    def run(self, timeout_s=60, **spec):
        return self.wait(self.submit(**spec)["id"], timeout_s=timeout_s)

    def logs(self, workload, **query):
        text = "&".join("%s=%s" % item for item in query.items())
        return self.api("GET", "/v1/workloads/%s/logs?%s" % (workload, text)).body

    # ---- the command line

    def cli(self, *args, token=None, check=False, server=None, env=None, **how):
        """The program's end. `how`: input, cwd and timeout, as of subprocess.run."""
        environment = {"PATH": os.environ["PATH"], "HOME": self.dir, "LC_ALL": "C.UTF-8",
                       "BERTH_SERVER": server or "unix:" + self.socket}
        if token is not None:
            environment["BERTH_TOKEN"] = token
        environment.update(env or {})
        done = subprocess.run([self.program("berth"), *args], env=environment, capture_output=True, check=False,
                              **{"input": b"", "timeout": 60, **how})
        if check and done.returncode != 0:
            raise RuntimeError("berth %s: %d %s" % (" ".join(args), done.returncode, done.stderr))
        return done

    def stop(self):
        status = 0
        for node in self.nodes:
            node.stop()
        status = end(self.berthd)
        if os.environ.get("BERTH_TEST_KEEP"):
            print("# kept: " + self.dir, flush=True)
        else:
            shutil.rmtree(self.dir, ignore_errors=True)
        return status


@contextlib.contextmanager
def installation(config="", nodes=(), berthd=None):
    """A running installation, ended whatever happens."""
    box = Box(config, berthd)
    try:
        box.start()
        for name, gpu, *options in nodes:
            box.node(name, gpu, *options)
        yield box
    except Exception:
        for name in sorted(os.listdir(box.dir)):
            if name.endswith(".log"):
                print("# == " + name, *box.log(name)[-1500:].split("\n"), sep="\n# ", file=sys.stderr)
        raise
    finally:
        box.stop()


def seed():
    value = int(os.environ.get("BERTH_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)
    print("# BERTH_TEST_SEED=%d" % value, flush=True)
    return value

"""Group of tests/agent/run: what a workload is told of its end, and what it says."""
import json
import os
import subprocess
import time

from agentlib import EXITED, RUNNING, STOPPING, boot_ns, sh, soon, tap

# say WORD...: one connection, a line each, the answers on stdout. say -f SECONDS: floods the socket in every way.
SAY = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
static int dial(void)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX, .sun_path = "/run/berth/notice.sock" };
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0) { perror("connect"); exit(1); }
    return fd;
}
static void answer(int fd)
{
    char c;
    while (read(fd, &c, 1) == 1 && putchar(c) != '\n') { }
    fflush(stdout);
}
static void flood(int seconds)
{
    static char junk[65536];
    time_t end = time(NULL) + seconds;
    int held[64];
    memset(junk, 'x', sizeof(junk));
    signal(13, SIG_IGN);
    for (unsigned i = 0; time(NULL) < end; i++) {
        int fd = dial();
        if (i >= 64) close(held[i % 64]);
        held[i % 64] = fd;
        if (i % 4 == 0) { if (send(fd, junk, sizeof(junk), MSG_DONTWAIT) < 0) { } }
        if (i % 4 == 1) { for (int k = 0; k < 1000; k++) if (send(fd, "checkpointed\n", 13, MSG_DONTWAIT) < 0) break; }
        if (i % 4 == 2) { if (send(fd, "check", 5, MSG_DONTWAIT) < 0) { } }
        if (i % 4 == 3) { if (send(fd, "extend 900\n\0\r\n\n\xff\xfe\n", 17, MSG_DONTWAIT) < 0) { } }
    }
}
int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "-f") == 0) { flood(atoi(argv[2])); return 0; }
    int fd = dial();
    for (int i = 1; i < argc; i++) { dprintf(fd, "%s\n", argv[i]); answer(fd); }
    return 0;
}
"""


def install(n):
    path = os.path.join(n.rootfs, "bin/say")
    subprocess.run(["cc", "-static", "-O1", "-include", "signal.h", "-x", "c", "-", "-o", path], input=SAY.encode(),
                   check=True)
    os.chmod(path, 0o755)


def begin(n, script, beside=(), **more):
    """It runs and has said "up"."""
    g = sh(script, **more)
    n.want(g, *beside)
    n.peer.wait_state(g, RUNNING)
    soon(lambda: b"up\n" in n.spool(g)[0])
    return g


def stop(n, g, cause):
    g.is_stop, g.stop_cause = True, cause
    n.want(g)
    n.peer.wait_state(g, STOPPING)


def lines(n, g):
    return n.spool(g)[0].decode().splitlines()


def cause_number(name):
    """As model/cause.h has it: the number in a signed grant."""
    header = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/model/cause.h")
    number = -1
    with open(header, encoding="utf-8") as f:
        for line in f:
            word = line.strip().split(",")[0].split(" ")[0]
            if word.startswith("CAUSE_") and line.startswith("    CAUSE_"):
                number += 1
                if word == "CAUSE_" + name.upper():
                    return number
    raise KeyError(name)


def test_told(n):
    g = begin(n, "trap 'cat /run/berth/notice; exit 0' TERM; ls /run/berth; echo up; while :; do sleep 0.02; done",
              grace_s=30)
    tap.check(lines(n, g) == ["notice.sock", "up"], "there is no notice before it is to end", lines(n, g))
    asked = boot_ns()
    stop(n, g, cause_number("reclaimed_for_quota"))
    n.peer.wait_state(g, EXITED)
    notice = json.loads(lines(n, g)[-1])
    tap.check(notice["cause"] == "reclaimed_for_quota" and notice["attempt"] == 1 and notice["grace_s"] == 30 and
              notice["grace_max_s"] == 900 and g.name.startswith(notice["allocation"]),
              "with TERM comes why and by when", notice)
    left = notice["kill_at_unix_s"] - (time.time() - (boot_ns() - asked) / 1e9)
    tap.check(27 < left < 33, "by the clock that a workload has", (left, notice))


def test_words(n):
    script = "trap 'say extend extend\\ 10 \"extend 100000\" extend bogus; : >/tmp/done' TERM; echo up; " \
             "say checkpointed extend 'extend 5x' nonsense '' checkpointed; echo said; " \
             "while [ ! -e /tmp/done ]; do sleep 0.02; done; cat /run/berth/notice; sleep 60"
    g = begin(n, script, grace_s=30)
    soon(lambda: "said" in lines(n, g))
    wrong = 'error say "checkpointed" or "extend [SECONDS]"'
    tap.check(lines(n, g)[1:7] == ["ok", "error nothing stops this workload", wrong, wrong, wrong, "ok"],
              "each line is answered by one, and nonsense by what to say", lines(n, g))
    entry = n.peer.until(lambda: n.peer.observed[g.key].checkpoints >= 1, 20) and n.peer.observed[g.key]
    tap.check(entry and 0 <= boot_ns() - entry.checkpointed_ns < 30e9, "what it has saved is reported", entry)
    stop(n, g, cause_number("drained"))
    soon(lambda: any(line.startswith("{") for line in lines(n, g)))
    said = lines(n, g)[8:]
    tap.check(said[0] in ("ok 59", "ok 60") and said[1] in ("ok 69", "ok 70") and said[2] in ("ok 899", "ok 900") and
              said[3] == "error it has all the time there is" and said[4] == wrong,
              "more time: its grace again, as asked, and 900 s in all", said)
    tap.check(json.loads(said[5])["grace_s"] == 900, "the notice says so", said)
    tap.check(n.peer.until(lambda: n.peer.observed[g.key].extended_s == 870, 5), "and so does the report",
              n.peer.observed[g.key].extended_s)
    os.kill(n.shims()[g.name], 23)  # SIGURG: it looks at its orders again
    n.kill()
    n.start()
    n.connect()
    n.want(g)
    n.peer.wait_state(g, STOPPING)
    tap.check(n.peer.until(lambda: n.peer.observed[g.key].extended_s == 870, 10) and g.name in n.shims(),
              "an agent that starts again knows it, and takes nothing back")
    n.want()
    g.grace_s = 0
    n.want(g)
    tap.check(n.peer.wait_state(g, EXITED, 10) is not None, "a shorter grace asked later still counts")


def test_refusals(n):
    script = "trap 'say extend; exit 0' TERM; echo up; while :; do sleep 0.02; done"
    for cause, more, why in (("user_cancelled", {}, "error somebody cancelled it"),
                             ("admin_cancelled", {}, "error somebody cancelled it")):
        g = begin(n, script, grace_s=20, **more)
        stop(n, g, cause_number(cause))
        n.peer.wait_state(g, EXITED)
        tap.check(lines(n, g)[-1] == why, "no more time after " + cause, lines(n, g))
    g = begin(n, script, grace_s=20)
    n.want()
    n.peer.wait_state(g, EXITED)
    tap.check(lines(n, g)[-1] == "error its node ends it, and cannot wait", "nor for work that is not wanted any more",
              lines(n, g))
    g = begin(n, script + " # limit", grace_s=20, time_limit_s=2)
    n.peer.wait_state(g, EXITED)
    tap.check(lines(n, g)[-1] == "error its node ends it, and cannot wait", "nor beyond a time limit", lines(n, g))


def test_hostile(n):
    script = "cd /run/berth; rm -f notice.sock; echo x >notice; mv notice.sock a; ln -s /etc/passwd notice; " \
             "mkdir x; mount -t tmpfs x /run/berth; chmod 0 notice.sock; ls; echo up; sleep 60"
    g = begin(n, script, grace_s=0)
    tap.check(lines(n, g) == ["notice.sock", "up"], "nothing there can be replaced, moved or added", lines(n, g))
    n.want()
    n.peer.wait_state(g, EXITED)
    g = begin(n, "echo up; for i in 1 2 3; do say -f 60 & done; say -f 60", grace_s=1, pids_max=20)
    calm = begin(n, "echo up; say checkpointed; sleep 60", beside=[g], grace_s=0)
    soon(lambda: "ok" in lines(n, calm))
    tap.check("ok" in lines(n, calm), "who floods its socket keeps nobody else from being heard", lines(n, calm))
    shim, before = n.shims()[g.name], boot_ns()
    ticks = process_ticks(shim)
    n.peer.until(lambda: False, 3)
    spent = (process_ticks(shim) - ticks) / os.sysconf("SC_CLK_TCK") / ((boot_ns() - before) / 1e9)
    tap.check(spent < 0.05, "nor does it cost its shim more than a little time", spent)
    tap.check(n.peer.observed[g.key].checkpoints <= 60, "it is heard only so often", n.peer.observed[g.key].checkpoints)
    asked = boot_ns()
    calm.is_stop = g.is_stop = True
    n.want(g, calm)
    n.peer.wait_state(calm, EXITED)
    tap.check(boot_ns() - asked < 5e9, "the other's stop is not delayed", boot_ns() - asked)
    entry = n.peer.wait_state(g, EXITED, 20)
    tap.check(entry is not None, "and its own ends", entry)
    g = begin(n, "(sleep 1; say checkpointed checkpointed) & printf 'extend 1' | say -f 0; echo up; exec sleep 60",
              grace_s=1)
    soon(lambda: lines(n, g).count("ok") == 2)
    tap.check(lines(n, g).count("ok") == 2, "a later connection is served as usual", lines(n, g))


def process_ticks(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii") as f:
        fields = f.read().rpartition(") ")[2].split()
    return int(fields[11]) + int(fields[12])


def test_notice(n):
    """Of its end, and of its work."""
    install(n)
    test_told(n)
    test_words(n)
    test_refusals(n)
    test_hostile(n)

"""Groups of tests/api: quotas and settings that change for a time, what would follow, profiles."""
import datetime
import json
import os
import signal
import subprocess
import threading

from shared import PASSWORD, refused, tap

import berthbox
from berthbox import until


# ---- changes of quotas and settings ------------------------------------------------------------

def test_policies(box):
    """Changes for good and for a time: previewed, refused, listed, taken back; of one's own only."""
    name = [c["name"] for c in box.all("/v1/classes") if c["kind"] == "gpu"][0]
    project = lambda: next((q for q in box.must("GET", "/v1/projects/amber")["quotas"] if q["class"] == name), {})
    spec = {"project": "amber", "name": "more", "quotas": [{"class": name, "quota_milli": 3000, "limit_milli": 4000}]}
    before = box.must("GET", "/v1/status")["sequence"]
    seen = box.api("POST", "/v1/changes/preview", spec)
    level = seen.json["levels"][0]
    tap.check(seen.status == 200 and level["quota_milli"] == 0 and level["new_quota_milli"] == 3000, "a preview", seen)
    tap.check(box.must("GET", "/v1/status")["sequence"] == before, "does nothing")
    for path in ("/v1/changes", "/v1/changes/preview"):
        refused(box.api("POST", path, spec, token=box.ada), 403, "not_permitted", None,
                "members change no quotas: " + path)
        refused(box.api("POST", path, {**spec, "project": "nobody"}), 404, "not_found", None,
                "an absent project: " + path)
        refused(box.api("POST", path, {**spec, "quotas": [{"class": name, "quota_milli": 5000}]}), 409, "overcommitted",
                None, "more than there is: " + path)
        refused(box.api("POST", path, {**spec, "zone": "../../etc/passwd", "until": "2027-01-01T00:00"}), 400,
                "invalid",
                "zone", "a path is no zone: " + path)
        refused(box.api("POST", path, {"project": "amber"}), 400, "invalid", "quotas", "nothing to change: " + path)
        refused(box.api("POST", path, {"settings": {"placement": "best"}}), 400, "invalid", "settings.placement",
                "no such setting: " + path)
        refused(box.api("POST", path, {**spec, "bogus": 1}), 400, "invalid", "bogus", "an unknown field: " + path)
    key = {"Idempotency-Key": "change-1"}
    made = box.api("POST", "/v1/changes", spec, headers=key)
    tap.check(made.status == 201 and made.json["state"] == "active" and
              made.json["former"]["quotas"][0]["quota_milli"] == 0,
              "a change for good, with what was before", made)
    tap.equal(box.api("POST", "/v1/changes", spec, headers=key).json["id"], made.json["id"],
              "the same key is the same change")
    refused(box.api("POST", "/v1/changes", spec), 409, "conflict", None, "a name is there once")
    tap.check(project()["quota_milli"] == 3000 and project()["limit_milli"] == 4000, "it holds", project())
    forced = box.api("POST", "/v1/changes", {"project": "amber", "name": "brief", "is_forced": True, "duration_s": 1,
                                             "quotas": [{"class": name, "quota_milli": 9000}]})
    tap.check(forced.status == 201 and forced.json["until"], "by force, for a second", forced)
    ended = until(lambda: box.must("GET", "/v1/changes/brief")["state"] == "expired", 20)
    tap.check(ended and project()["quota_milli"] == 3000, "it ends by itself, and what was before holds", project())
    settings = box.api("POST", "/v1/changes", {"settings": {"placement": "spread"}, "reason": "a trial"})
    tap.check(settings.status == 201 and box.must("GET", "/v1/settings")["placement"] == "spread", "settings", settings)
    policies_of_others(box, made.json["id"], settings.json["id"])
    done = box.api("POST", "/v1/changes/settings/revert", {"reason": "not better"})
    tap.check(done.json["state"] == "reverted" and box.must("GET", "/v1/settings")["placement"] == "adaptive",
              "settings taken back", done)
    refused(box.api("POST", "/v1/changes/%s/revert" % settings.json["id"], {}), 409, "conflict", None, "only once")
    policies_cli(box, name, project)
    policies_by_name(box)
    policies_of_a_class(box)


def policies_by_name(box):
    """What a change is called hides neither a project nor the settings."""
    id = box.must("POST", "/v1/changes", {"project": "amber", "priority": 55})["id"]
    for taken in ("settings", "amber", id):
        refused(box.api("POST", "/v1/changes", {"project": "amber", "priority": 60, "name": taken}), 400, "invalid", "name",
                "no name of a change: " + taken)
    box.must("POST", "/v1/changes", {"project": "amber", "priority": 60, "name": "cedar"})
    tap.equal(box.api("POST", "/v1/changes/cedar/revert", {}).status, 200, "a change by its name")
    tap.equal(box.api("POST", "/v1/changes/cedar/revert", {}).status, 409, "which is over")
    box.must("POST", "/v1/tenants", {"path": "cedar"})
    newest = box.must("POST", "/v1/changes", {"project": "cedar", "priority": 70})
    done = box.api("POST", "/v1/changes/cedar/revert", {})
    tap.check(done.status == 200 and done.json["id"] == newest["id"], "then the newest of the project of that path", done)
    box.must("DELETE", "/v1/tenants/cedar")
    tap.equal(box.must("POST", "/v1/changes/amber/revert", {})["id"], id, "and of another")


def policies_of_a_class(box):
    """A class that something speaks of is not removed: nobody could see that any more, or take it back."""
    change = {"project": "amber", "is_forced": True}
    row = lambda **fields: [{"class": "b200", **fields}]
    remove = lambda: box.api("DELETE", "/v1/classes/b200")
    box.must("PUT", "/v1/classes/b200", {"kind": "gpu"})
    kept = box.must("POST", "/v1/changes", {**change, "quotas": row(quota_milli=2000)})
    refused(remove(), 409, "conflict", None, "a quota of it")
    zero = box.must("POST", "/v1/changes", {**change, "quotas": row(quota_milli=0, limit_milli=0)})
    refused(remove(), 409, "conflict", None, "a limit of it")
    box.must("POST", "/v1/changes", {**change, "quotas": row(limit_milli=-1)})
    later = box.must("POST", "/v1/changes", {**change, "quotas": row(quota_milli=1000), "duration_s": 60,
                                             "from": "2027-01-01T00:00:00"})
    refused(remove(), 409, "conflict", None, "a change that is to come")
    box.must("POST", "/v1/changes/%s/revert" % later["id"], {})
    box.must("POST", "/v1/reservations", {"name": "b", "project": "amber", "class": "b200", "gpu_milli": 1000,
                                          "start": "2027-01-01T00:00:00", "duration_s": 60, "is_forced": True})
    refused(remove(), 409, "conflict", None, "a reservation")
    box.must("POST", "/v1/reservations/b/cancel", {})
    box.must("PUT", "/v1/profiles/b", {"gpu_milli": 1000, "classes": ["b200"]})
    refused(remove(), 409, "conflict", None, "a profile")
    box.must("DELETE", "/v1/profiles/b")
    tap.equal(remove().status, 204, "then it is removed")
    for id in (zero["id"], kept["id"]):
        tap.equal(box.api("POST", "/v1/changes/%s/revert" % id, {}).status, 200, "a change of it is taken back")
    amber = box.must("GET", "/v1/projects/amber")
    tap.check("b200" not in [q["class"] for q in amber["quotas"]] and not amber["is_overcommitted"],
              "which gives nobody anything of it", amber)
    box.must("PUT", "/v1/classes/b200", {"kind": "gpu"})
    box.must("DELETE", "/v1/classes/b200")


def policies_of_others(box, mine, settings):
    """A tenant sees the changes of its own projects; of others and of the settings nothing."""
    tap.equal([c["name"] for c in box.all("/v1/changes", token=box.ada)], ["more", "brief"], "members see their own")
    tap.equal(box.all("/v1/changes", token=box.bob), [], "and nothing of others")
    refused(box.api("POST", "/v1/changes/more/revert", {}, token=box.ada), 403, "not_permitted", None,
            "members revert none")
    for there in (mine, settings, "more", "settings", "amber"):
        absent = mine[:-4] + ("0000" if mine[-4:] != "0000" else "1111")
        answer, gone = (box.api("GET", "/v1/changes/" + n, token=box.bob) for n in (there, absent))
        tap.check(answer.status == gone.status == 404 and answer.body.replace(there.encode(), b"X") ==
                  gone.body.replace(absent.encode(), b"X"), "foreign is absent: " + there, "%r\n%r" % (answer, gone))


def policies_cli(box, name, project):
    """The same from the command line, and by manifest."""
    done = box.cli("quota", "set", "amber", "--quota", name + "=2", "--for", "1h", "--dry-run")
    tap.check(done.returncode == 0 and b"NEW_QUOTA" in done.stdout and project()["quota_milli"] == 3000, "a dry run",
              done)
    done = box.cli("quota", "set", "amber", "--quota", name + "=2", "--for", "1h", "-n", "less")
    tap.check(done.returncode == 0 and b"quota 3 -> 2" in done.stdout and project()["quota_milli"] == 2000,
              "for an hour", done)
    done = box.cli("quota", "show")
    tap.check(done.returncode == 0 and b"UNTIL" in done.stdout and b"amber" in done.stdout and b"T" in done.stdout,
              "the tree", done)
    done = box.cli("quota", "changes", "-p", "amber", "-s", "active", "-o", "json")
    tap.equal([c["name"] for c in json.loads(done.stdout)], ["more", "less"], "what holds")
    done = box.cli("quota", "revert", "amber", "--dry-run")
    tap.check(done.returncode == 0 and project()["quota_milli"] == 2000, "a dry run of taking it back", done)
    done = box.cli("quota", "revert", "amber")
    tap.check(done.returncode == 0 and b"reverted" in done.stdout and project()["quota_milli"] == 3000,
              "its newest taken back", done)
    tap.equal(box.cli("quota", "revert", "nobody").returncode, 3, "what is not there")
    tap.equal(box.cli("quota", "set", "amber", "--quota", name + "=9").returncode, 5, "more than there is")
    box.cli("quota", "set", "amber", "--limit", name + "=0", "-n", "closed", check=True)
    work = {"project": "amber", "image": "none", "command": ["true"], "gpu_milli": 1000, "classes": [name]}
    seen = box.api("POST", "/v1/workloads", work, token=box.ada)
    tap.check(seen.json["cause"] == "exceeds_limit" and "amber may not use " + name in seen.json["detail"] and
              "it may use: " in seen.json["detail"], "a class that is not for the project", seen)
    tap.equal(box.cli("quota", "revert", "closed").returncode, 0, "it is again")
    path = os.path.join(box.dir, "change.yaml")
    with open(path, "w", encoding="ascii") as f:
        f.write("kind: Change\nmetadata: {name: night}\nspec: {project: amber, priority: 80, zone: Europe/Berlin, "
                "every: day, from: '2027-01-01T22:00:00', until: '2027-01-02T06:00:00'}\n")
    done = box.cli("apply", "-f", path)
    night = box.must("GET", "/v1/changes/night")
    tap.check(done.returncode == 0 and night["state"] == "scheduled" and
              night["window_start"][:16] == "2027-01-01T21:00",
              "every night, by manifest", night)
    done = box.cli("apply", "-f", path)
    tap.check(done.returncode == 0 and b"as it is" in done.stdout, "twice is once", done)
    tap.equal(box.cli("policy", "revert", "night", "more").returncode, 0, "both taken back")
    tap.check(project().get("quota_milli", 0) == 0 and project().get("limit_milli", -1) == -1, "as in the beginning",
              project())
    done = box.cli("quota", "show", "nobody")
    tap.check(done.returncode == 3 and done.stdout == b"", "nothing is shown of what is not there", done)
    done = box.cli("policy", "set", "--user-fairness", "usage", "-n", "turns")
    tap.check(done.returncode == 0 and box.must("GET", "/v1/settings")["user_fairness"] == "usage", "users take turns",
              done)
    tap.equal(box.cli("policy", "revert", "turns").returncode, 0, "and no more")
    tap.equal(box.must("GET", "/v1/settings")["user_fairness"], "off", "as in the beginning: users")
    done = box.cli("settings", "set", "--user-fairness", "never")
    tap.check(done.returncode != 0 and b"user-fairness" in done.stderr, "off or usage, nothing else", done)
    done = box.cli("policy", "set", "--grace", "45s", "-o", "json")
    tap.check(done.returncode == 0 and b"45" in box.cli("policy", "show", "-o", "json").stdout, "a policy", done)
    tap.equal(box.cli("policy", "revert", "settings").returncode, 0, "taken back")


# ---- what would follow -------------------------------------------------------------------------

def test_whatif(box):
    """Asked of a copy of the state: nothing is done, nobody hears of others, and refusals are the real ones."""
    name = [c["name"] for c in box.all("/v1/classes") if c["kind"] == "gpu"][0]
    work = {"project": "amber", "image": "none", "command": ["sleep", "1000"], "gpu_milli": 4000, "time_limit_s": 3600}
    before = box.must("GET", "/v1/status")["sequence"]
    seen = box.api("POST", "/v1/whatif", {"submit": {**work, "name": "next"}}, token=box.ada)
    row = seen.json["work"][0]
    tap.check(seen.status == 200 and row["is_new"] and row["effect"] == "waits" and row["name"] == "next", "it waits",
              seen)
    tap.check("waiting_after" not in seen.json, "a member hears nothing of the whole", seen)
    whatif_of_others(box, work, name)
    tap.check(box.must("GET", "/v1/status")["sequence"] == before, "and nothing was done")
    box.must("POST", "/v1/nodes/n1/uncordon", {})
    seen = box.api("POST", "/v1/whatif", {"submit": {**work, "count": 2}}, token=box.ada)
    starts = [r.get("started_after") for r in seen.json["work"]]
    tap.check(seen.json["starts_after"] == 2 and starts[1] > starts[0] == seen.json["from"], "one after the other",
              seen)
    seen = box.api("POST", "/v1/whatif", {"submit": {**work, "count": 2}, "horizon_s": 60}, token=box.ada)
    tap.equal([r["effect"] for r in seen.json["work"]], ["starts", "waits"], "one of them within a minute")
    seen = box.api("POST", "/v1/whatif", {"submit": work, "lose_node": "n1"})
    tap.check(seen.json["work"][0]["effect"] == "waits" and seen.json["waiting_after"] > seen.json["waiting_before"],
              "on a node that is lost", seen)
    quota = {"project": "amber", "quotas": [{"class": name, "limit_milli": 2000}]}
    refused(box.api("POST", "/v1/whatif", {"change": quota, "submit": {**work, "classes": [name]}}), 422,
            "exceeds_limit", None, "beyond a new limit")
    quota["quotas"][0]["limit_milli"] = 4000
    seen = box.api("POST", "/v1/whatif", {"change": quota, "submit": work})
    tap.check(seen.status == 200 and seen.json["work"][0]["effect"] == "starts", "within one", seen)
    for body, field in (({}, "submit"), ({"submit": work, "horizon_s": 0}, "horizon_s"), ({"bogus": 1}, "bogus"),
                        ({"submit": {**work, "gpu_milli": -1}}, "submit.gpu_milli"),
                        ({"change": {"project": "amber"}}, "quotas")):
        refused(box.api("POST", "/v1/whatif", body), 400, "invalid", field, "a question without sense: %s" % field)
    refused(box.api("POST", "/v1/whatif", {"submit": {**work, "gpu_milli": 8000}}, token=box.ada), 400,
            "no_matching_class",
            None, "work that could never run")
    refused(box.api("POST", "/v1/whatif", {"lose_node": "n9"}), 404, "not_found", None, "a node that is not there")
    whatif_flood(box, work)
    whatif_lost(box, work, name)
    whatif_cli(box)
    box.must("POST", "/v1/nodes/n1/cordon", {})


def whatif_lost(box, work, name):
    """Work that would start, but not as is supposed, is told with its name: by berthd and by berth-sim."""
    start = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    box.must("POST", "/v1/reservations", {"name": "soon", "project": "amber", "class": name, "gpu_milli": 1000,
                                          "start": start.strftime("%Y-%m-%dT%H:%M:%S"), "duration_s": 7200})
    made = box.must("POST", "/v1/workloads", {**work, "name": "later", "gpu_milli": 1000, "reservation": "soon"})
    seen = box.api("POST", "/v1/whatif", {"lose_node": "n1"})
    row = next((r for r in seen.json["work"] if r["workload"] == made["id"]), {})
    tap.check(row.get("effect") == "does_not_start" and row.get("name") == "later", "what starts no more has a name", seen)
    path = os.path.join(box.dir, "lost.jsonl")
    box.cli("export", "--snapshot", path)
    done = subprocess.run([box.program("berth-sim"), "whatif", "--snapshot", path, "--lose", "n1"],
                          capture_output=True, check=False, timeout=60)
    lines = [line.split() for line in done.stdout.decode().splitlines()]
    row = next((line for line in lines if line[0] == made["id"]), [])
    tap.check(row[1:2] == ["later"] and row[3:4] == ["-"], "also for berth-sim", done)
    box.must("POST", "/v1/workloads/%s/cancel" % made["id"], {})
    box.must("POST", "/v1/reservations/soon/cancel", {})


def whatif_of_others(box, work, name):
    """A tenant asks of its own projects only, and is told of its own work only."""
    seen = box.api("POST", "/v1/whatif", {"submit": {**work, "project": "basil"}}, token=box.bob)
    tap.check(seen.status == 200 and b"first" not in seen.body and b"amber" not in seen.body,
              "nothing of others' work", seen)
    there, gone = (box.api("POST", "/v1/whatif", {"submit": {**work, "project": p}}, token=box.bob) for p in ("amber",
                   "nobody"))
    tap.check(there.status == gone.status == 404 and there.body.replace(b"amber", b"X") == gone.body.replace(b"nobody",
              b"X"),
              "a foreign project is as absent", "%r\n%r" % (there, gone))
    refused(box.api("POST", "/v1/whatif", {"lose_node": "n1"}, token=box.ada), 403, "not_permitted", None,
            "nodes are not theirs")
    refused(box.api("POST", "/v1/whatif", {"lose_node": "n9"}, token=box.ada), 403, "not_permitted", None,
            "absent ones neither")
    change = {"project": "amber", "quotas": [{"class": name, "quota_milli": 1000}]}
    refused(box.api("POST", "/v1/whatif", {"change": change}, token=box.ada), 403, "not_permitted", None, "nor quotas")
    refused(box.api("GET", "/v1/snapshot", token=box.ada), 403, "not_permitted", None, "nor the state")


def children(pid):
    """Processes forked by it, and by those."""
    found = []
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as f:
        for child in f.read().split():
            found.append(int(child))
    return found


def whatif_flood(box, work):
    """Of one tenant one question is answered and one waits; the others of it are refused, before anything is done for
    them, and nobody else has to wait."""
    answers = []

    def ask(count):
        answers.append(box.api("POST", "/v1/whatif", {"submit": {**work, "count": count}}, token=box.ada, timeout=120))

    def begin(count):
        threads.append(threading.Thread(target=ask, args=(count,)))
        threads[-1].start()

    threads = []
    begin(10000)
    held = until(lambda: children(box.berthd.pid), 20)
    for child in held:
        os.kill(child, signal.SIGSTOP)
    tap.equal(len(held), 1, "the copy is held")
    begin(1)
    begin(1)
    until(lambda: answers, 20)
    refused(answers[0], 429, "rate_limited", None, "a third of the same tenant")
    tap.equal(answers[0].headers.get("retry-after"), "1", "it is said when to try again")
    seen = box.api("POST", "/v1/whatif", {"submit": {**work, "project": "basil"}}, token=box.bob)
    tap.equal(seen.status, 200, "another tenant is answered meanwhile")
    tap.equal(box.api("GET", "/v1/snapshot").status, 200, "and so is the operator")
    tap.equal(len(answers), 1, "while the first two wait")
    for child in held:
        os.kill(child, signal.SIGCONT)
    for thread in threads:
        thread.join()
    tap.equal([a.status for a in answers[1:]], [200, 200], "then both are answered")


def whatif_cli(box):
    """The same from the command line; the state that is exported has no secrets, and berth-sim asks it the same."""
    done = box.cli("whatif", "submit", "-i", "none", "-g", "4", "-t", "1h", token=box.ada)
    tap.check(done.returncode == 0 and b"starts" in done.stdout and b"STARTS_THEN" in done.stdout, "as a table", done)
    done = box.cli("whatif", "lose", "n1", "-o", "json")
    tap.check(done.returncode == 0 and "waiting_after" in json.loads(done.stdout), "a node lost", done)
    tap.equal(box.cli("whatif", "policy", "--reclaim-to", "fair_share").returncode, 0, "a policy")
    tap.equal(box.cli("whatif", "policy", "--consolidate", "on", "--grace", "5m").returncode, 0, "any setting")
    path = os.path.join(box.dir, "snapshot.jsonl")
    done = box.cli("export", "--snapshot", path)
    with open(path, encoding="utf-8") as f:
        text = f.read()
    tap.check(done.returncode == 0 and "token_set" not in text and "sleep" not in text and
              "credential_set" not in text and
              PASSWORD not in text and "project_set" in text, "the state without secrets", done)
    tap.equal(os.stat(path).st_mode & 0o777, 0o600, "for its owner only")
    tap.equal(box.cli("export").returncode, 2, "without a file")
    work = os.path.join(box.dir, "work.yaml")
    with open(work, "w", encoding="ascii") as f:
        f.write("project: amber\nimage: none\ncommand: [sleep]\ngpu_milli: 4000\n")
    for lose, starts in (((), 1), (("--lose", "n1"), 0)):
        done = subprocess.run([box.program("berth-sim"), "whatif", "--snapshot", path, "--submit", work, *lose,
                              "--json"],
                              capture_output=True, check=False, timeout=60)
        tap.check(done.returncode == 0 and json.loads(done.stdout)["starts_after"] == starts, "asked of berth-sim",
                  done)


# ---- profiles ----------------------------------------------------------------------------------

def test_profiles(box):
    """The usual shapes by manifest; one that is for some is absent for all others."""
    box.must("POST", "/v1/projects", {"path": "amber/shapes"})
    path = os.path.join(berthbox.ROOT, "examples/profiles.yaml")
    done = box.cli("apply", "-f", path)
    tap.check(done.returncode == 0 and box.must("GET", "/v1/profiles/gpu-8")["request"]["topology_preferred"] == "rack",
              "the usual shapes", done)
    tap.check(box.cli("apply", "-f", path).stdout.count(b"as it is") == 4, "twice is once")
    done = box.cli("profile", "set", "old", "--gpus", "1", "-p", "basil,amber/shapes", "--topology", "prefer:node")
    tap.check(done.returncode == 0 and b"amber/shapes" in done.stdout, "one for some", done)
    names = [[p["name"] for p in box.all("/v1/profiles", token=t)] for t in (box.ada, box.bob)]
    tap.check("old" in names[0] and "old" in names[1], "both see it", names)
    tap.equal(box.must("GET", "/v1/profiles/old", token=box.ada)["projects"], ["amber/shapes"],
              "but not for whom else it is")
    spec = {"image": "none", "command": ["true"], "is_held": True, "profile": "old"}
    tap.equal(box.api("POST", "/v1/workloads", {**spec, "project": "amber/shapes"}, token=box.ada).status, 201,
              "its work")
    box.cli("profile", "set", "old", "-p", "basil", check=True)
    there, gone = (box.api("POST", "/v1/workloads", {**spec, "project": "amber", "profile": n}, token=box.ada)
                   for n in ("old", "nil"))
    tap.check(there.status == gone.status == 400 and there.body.replace(b"old", b"X") == gone.body.replace(b"nil",
              b"X"),
              "one for others is as absent", "%r\n%r" % (there, gone))
    there, gone = (box.api("GET", "/v1/profiles/" + n, token=box.ada) for n in ("old", "nil"))
    tap.check(there.status == gone.status == 404 and there.body.replace(b"old", b"X") == gone.body.replace(b"nil",
              b"X"),
              "also to look at", "%r\n%r" % (there, gone))
    tap.check("old" not in [p["name"] for p in box.all("/v1/profiles", token=box.ada)], "and in lists")
    refused(box.api("PUT", "/v1/profiles/old", {"projects": ["nobody"]}), 400, "invalid", "projects", "for nobody")
    refused(box.api("PUT", "/v1/profiles/old", {"topology": {"required": "node", "preferred": "rack"}}), 400, "invalid",
            "topology.preferred", "a topology without sense")
    refused(box.api("DELETE", "/v1/tenants/basil"), 409, "conflict", None, "who is named is not removed")
    box.must("PUT", "/v1/profiles/old", {"projects": ["*"]})
    tap.equal(box.api("GET", "/v1/profiles/old", token=box.ada).status, 200, "for all again")

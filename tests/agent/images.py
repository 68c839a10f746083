"""Groups of tests/agent/run: what berth-agentd makes of images."""
import os
import re
import shutil
import subprocess

from agentlib import (END, EXITED, RUNNING, WAITING, Grant, id_text, make_rootfs, new_id, oci_layout, sh, sha, tap)


TENANT = b"T" * 16


def test_images(n):
    """Image roots: fetched by the other half, shared by digest, written by nobody but their tenant."""
    root, layout = os.path.join(n.dir, "image-root"), os.path.join(n.dir, "layout")
    make_rootfs(root)
    os.unlink(os.path.join(root, "data/kmsg"))
    with open(os.path.join(root, "etc/from-image"), "w", encoding="ascii") as f:
        f.write("image\n")
    image = oci_layout(layout, root)
    check_use(n, image, layout)
    check_foreign(n, image)
    check_spoiled(n, root)
    check_upload(n, image)
    check_mounts(n, image)
    check_remains(n, image)


def check_use(n, image, layout):
    g = sh("cat /etc/from-image; id -u; echo mine >/etc/from-image; cat /etc/from-image; ls -ln /bin/busybox",
           image=image)
    n.want(g)
    entry = n.peer.wait_state(g, WAITING)
    tap.check(entry is not None and "image" in entry.reason, "a grant waits for its image", entry)
    tap.check(n.peer.until(lambda: (image, 0) in n.peer.needs), "which is asked for", n.peer.needs)
    n.peer.image_ready(image, 0, TENANT, layout)
    entry = n.peer.wait_state(g, EXITED)
    out, err, _ = n.spool(g)
    tap.check(entry is not None and entry.exit_code == 0, "it runs on the image", (entry, err))
    tap.check(out.startswith(b"image\n0\nmine\n"), "and may write over it", out)
    tap.check(b" 0 " in out, "files belong to its own uid 0", out)
    _, out, _ = n.run("/bin/cat", "/etc/from-image", image=image)
    tap.check(out == b"image\n", "the next one sees the image as it was", out)


def check_foreign(n, image):
    other = Grant(["/bin/true"], image=image, tenant=b"V" * 16)
    other.uid_base += 65536
    n.want(other)
    entry = n.peer.wait_state(other, WAITING)
    tap.check(entry is not None, "another tenant may not use it by knowing its digest", entry)
    n.peer.image_ready(image, 0, b"V" * 16, "", "the registry said no")
    entry = n.peer.wait_state(other, EXITED)
    tap.check(entry is not None and END[entry.end] == "start_failed" and "said no" in entry.reason,
              "an image that cannot be had fails what waits for it", entry)


def kept(n):
    return sorted(f + "/" + name for f in ("images", "blobs", "layers", "permits/" + id_text("ten_", TENANT), "tmp")
                  for name in os.listdir(os.path.join(n.state, "images", f)))


def check_spoiled(n, root):
    """What comes in an image's place, and is another, is refused and leaves nothing."""
    before = kept(n)
    another = os.path.join(n.dir, "another")
    with open(os.path.join(root, "etc/from-another"), "w", encoding="ascii") as f:
        f.write("image\n")
    sound = oci_layout(another, root)
    spoiled = os.path.join(n.dir, "spoiled")
    shutil.copytree(another, spoiled)
    largest = max((os.path.join(spoiled, "blobs/sha256", f) for f in os.listdir(os.path.join(spoiled, "blobs/sha256"))),
                  key=os.path.getsize)
    with open(largest, "r+b") as f:
        f.seek(os.path.getsize(largest) // 2)
        f.write(b"spoiled")
    for digest, path, what in ((b"w" * 32, another, "another image than asked for"), (sound, spoiled, "one whose layer is spoiled")):
        stray = os.path.join(n.state, "images/blobs/" + os.urandom(32).hex())
        with open(stray, "w", encoding="ascii") as f:
            f.write("{}")  # as an import leaves it that was killed in the wrong moment
        wrong = sh("true", image=digest)
        n.want(wrong)
        n.peer.wait_state(wrong, WAITING)
        n.peer.image_ready(digest, 0, TENANT, path)
        entry = n.peer.wait_state(wrong, EXITED)
        tap.check(entry is not None and "digest" in entry.reason, "%s does not do" % what, entry)
        n.peer.until(lambda: kept(n) == before, 10)
        tap.check(kept(n) == before, "and nothing of it stays", (before, kept(n)))


def check_upload(n, image):
    work = os.path.join(n.dir, "upload")
    os.makedirs(work)
    with open(os.path.join(work, "code.sh"), "w", encoding="ascii") as f:
        f.write("echo uploaded\n")
    tar = os.path.join(n.dir, "upload.tar")
    subprocess.run(["tar", "-C", work, "-cf", tar, "."], check=True)
    with open(tar, "rb") as f:
        upload = sha(f.read())
    g = Grant(["/bin/sh", "-c", "cd /work && sh code.sh && echo x >new && ls"], image=image, upload=upload,
              upload_path="/work")
    n.want(g)
    tap.check(n.peer.until(lambda: (upload, 1) in n.peer.needs), "an upload is asked for")
    n.peer.image_ready(upload, 1, TENANT, tar)
    entry = n.peer.wait_state(g, EXITED)
    tap.check(n.spool(g)[0] == b"uploaded\ncode.sh\nnew\n", "and mounted, writable, where it was asked for",
              (entry, n.spool(g)))


def check_mounts(n, image):
    """What a workload reads about the machine's paths in its list of mounts."""
    script = "cat /proc/self/mountinfo /proc/self/mounts /proc/1/mountinfo; cat /etc/hosts; ls -l /dev/berth-init"
    other = sh("sleep 60", tenant=b"V" * 16)
    other.uid_base += 65536
    g = sh(script, image=image, hostname="here")
    n.want(other, g)
    n.peer.wait_state(other, RUNNING)
    n.peer.wait_state(g, EXITED)
    out, err, _ = n.spool(g)
    text = out.decode()
    bad = [word for word in (n.dir, n.state, n.run_dir, "alc_", "ten_", "nod_", os.path.dirname(n.command[0]), other.name)
           if word in text]
    tap.check(bad == [] and "overlay overlay" in text and "\there\n" in text and err == b"",
              "the list of mounts tells no path of the machine, and nobody's id", (bad, text, err))
    volume = new_id()
    g = sh(script, image=image, targets=["/data"], volumes=[(volume, False)])
    n.want(other, g)
    n.peer.wait_state(g, EXITED)
    text = n.spool(g)[0].decode()
    tenants = set(re.findall("ten_[0-9a-z]{26}", text))
    tap.check("alc_" not in text and n.run_dir not in text and tenants <= {id_text("ten_", TENANT)} and id_text("vol_", volume) in text,
              "but of a volume's place, which is the tenant's own", text)
    n.want()
    n.peer.wait_state(other, EXITED)


def check_remains(n, image):
    mounts = open("/proc/self/mountinfo", encoding="utf-8").read()
    tap.check(n.dir not in mounts and n.run_dir not in mounts, "no mount is left")
    name = "b" * 32
    entry, _, err = n.run("/bin/sh", "-c", "cd /root || { mkdir /root; cd /root; }; for i in $(seq 300); do "
                          "mkdir %s; cd %s; done" % (name, name), image=image)
    leases = os.path.join(n.state, "images/leases")
    n.peer.until(lambda: not n.shims() and os.listdir(leases) == [], 10)
    tap.check(os.listdir(leases) == [], "no lease is left", os.listdir(leases))
    left = [g for g in os.listdir(os.path.join(n.state, "alloc"))
            if os.path.exists(os.path.join(n.state, "alloc", g, "scratch"))]
    tap.check(left == [], "no scratch is left, however deep it was", left)


def test_collection(n):
    """Unused images go, used ones stay; leases of what is gone are forgotten at the start."""
    tenant, images, layouts = b"T" * 16, [], []
    for i in range(3):
        root, layout = os.path.join(n.dir, "gc-root-%d" % i), os.path.join(n.dir, "gc-layout-%d" % i)
        make_rootfs(root)
        os.unlink(os.path.join(root, "data/kmsg"))
        with open(os.path.join(root, "etc/which"), "w", encoding="ascii") as f:
            f.write("%d\n" % i)
        images.append(oci_layout(layout, root))
        layouts.append(layout)

    def use(i, script):
        g = sh(script, image=images[i], tenant=tenant)
        n.want(*[h for h in running], g)
        if n.peer.until(lambda: (images[i], 0) in n.peer.needs or
                        n.peer.observed.get(g.key) is not None and n.peer.observed[g.key].state > WAITING, 20):
            if (images[i], 0) in n.peer.needs:
                n.peer.image_ready(images[i], 0, tenant, layouts[i])
                n.peer.needs.remove((images[i], 0))
        return g

    def is_there(i):
        return os.path.exists(os.path.join(n.state, "images/images", images[i].hex()))

    running = []
    held = use(0, "sleep 300")
    tap.check(n.peer.wait_state(held, RUNNING) is not None, "work runs from the first image")
    running = [held]
    done = use(1, "true")
    n.peer.wait_state(done, EXITED)
    lease = os.path.join(n.state, "images/leases/alc_%s.1.r" % ("0" * 26))
    with open(lease, "w", encoding="ascii") as f:
        f.write("sha256:" + images[1].hex())
    n.process.terminate()
    n.process.wait()
    n.command += ["--image-store-mib", "1"]
    n.start()
    n.connect()
    tap.check(not os.path.exists(lease) and len(os.listdir(os.path.dirname(lease))) == 1,
              "leases of what is gone are forgotten, those of running work are not")
    n.peer.until(lambda: False, 3)  # the first collection finds what ran from the second image still there
    tap.check(is_there(1), "an image stays while what ran from it is not forgotten")
    n.want(held)
    n.peer.until(lambda: not is_there(1), 20)
    tap.check(not is_there(1), "an image that nobody uses goes when the store is over its size")
    tap.check(is_there(0) and n.peer.observed[held.key].state == RUNNING, "one that is in use stays")
    again = use(1, "cat /etc/which")
    entry = n.peer.wait_state(again, EXITED)
    tap.check(entry is not None and entry.exit_code == 0 and n.spool(again)[0] == b"1\n",
              "what has gone is asked for again", entry)
    n.want()
    n.peer.wait_state(held, EXITED)

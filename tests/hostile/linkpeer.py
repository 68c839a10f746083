"""berth-link/1 spoken by hand, right or wrong: the other end is a stranger, a tenant or a node gone bad."""
import contextlib
import json
import os
import socket
import ssl
import struct
import threading
import time

MESSAGE, OPEN, DATA, CREDIT, CLOSE, PING, PONG = range(1, 8)
HELLO, INVENTORY, OBSERVED, HEARTBEAT, PAYLOADS_WANTED = 1, 2, 3, 4, 5
IMAGE_WANTED, IMAGE_PROGRESS, LOG_OFFER, JOIN, RENEW = 6, 7, 8, 9, 10
WELCOME, REFUSE, DESIRED, PAYLOADS, HEARTBEAT_ACK, IMAGE_SOURCE, LOG_WANTED, JOINED, RENEWED = range(101, 110)
FRAME_MAX = 64 * 1024


def frame(kind, payload=b"", stream=0, flags=0, size=None):
    return struct.pack(">IBBHI", len(payload) if size is None else size, kind, flags, 0, stream) + payload


def message_frames(kind, payload):
    """A whole message in as many fragments as it takes."""
    body = struct.pack(">HI", kind, len(payload)) + payload
    cut = [body[i:i + FRAME_MAX] for i in range(0, len(body), FRAME_MAX)]
    return b"".join(frame(MESSAGE, part, flags=i == 0) for i, part in enumerate(cut))


class Peer:
    """One connection. Every wait has a deadline; a closed connection reads as None.

    It resumes the TLS session of the peer that it is `like`, which must have read something and still be kept.
    """

    def __init__(self, box, certificate=None, timeout=10, source="127.0.0.1", like=None):
        self.context = like.context if like else ssl.create_default_context(cafile=box.ca)
        if like is None:
            self.context.set_alpn_protocols(["berth-link/1"])
            if certificate is not None:
                self.context.load_cert_chain(*certificate)
        self.socket = self.context.wrap_socket(
            socket.create_connection(("127.0.0.1", box.port), timeout, (source, 0)), server_hostname="localhost",
            session=like.session if like else None)
        self.socket.settimeout(timeout)
        self.left, self.is_closed = b"", False
        self.inbox = []

    @property
    def session(self):
        return self.socket.session

    @property
    def is_resumed(self):
        return self.socket.session_reused

    @property
    def refusal(self):
        """The reason that was given, or None."""
        return next((json.loads(text)["reason"] for kind, text in self.inbox if kind == REFUSE), None)

    def send(self, data):
        try:
            self.socket.sendall(data)
            return True
        except OSError:
            self.is_closed = True
            return False

    def say(self, kind, message):
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        return self.send(message_frames(kind, data))

    def _bytes(self, count):
        while len(self.left) < count:
            data = self.socket.recv(65536)
            if not data:
                raise ConnectionError("closed")
            self.left += data
        got, self.left = self.left[:count], self.left[count:]
        return got

    def read(self):
        """(kind, flags, stream, payload) of the next frame; None at the end or at the deadline."""
        try:
            size, kind, flags, _, stream = struct.unpack(">IBBHI", self._bytes(12))
            return kind, flags, stream, self._bytes(size)
        except TimeoutError:
            return None
        except (OSError, ConnectionError):
            self.is_closed = True
            return None

    def wait(self, kind, timeout_s=10):
        """The first message of this kind as bytes; answers pings meanwhile. None: it does not come."""
        end, parts = time.monotonic() + timeout_s, b""
        while time.monotonic() < end:
            got = self.read()
            if got is None:
                return None
            if got[0] == PING:
                self.send(frame(PONG, got[3]))
            if got[0] != MESSAGE:
                continue
            parts = got[3] if got[1] & 1 else parts + got[3]
            number, size = struct.unpack(">HI", parts[:6])
            if len(parts) < size + 6:
                continue
            self.inbox.append((number, parts[6:]))
            if number in (kind, REFUSE):
                return parts[6:] if number == kind else None
        return None

    def is_ended(self, timeout_s=10):
        """The other side closes the connection within the time."""
        end = time.monotonic() + timeout_s
        self.socket.settimeout(timeout_s)
        while time.monotonic() < end and not self.is_closed:
            got = self.read()
            if got is not None and got[0] == MESSAGE:
                self.inbox.append((struct.unpack(">H", got[3][:2])[0], got[3][6:]))
        return self.is_closed

    def stream(self, header, number=1, payload=b""):
        """Opens one; (code, text) of its CLOSE, or None when it stays open."""
        self.send(frame(OPEN, json.dumps(header).encode(), number) +
                  (frame(DATA, payload, number) if payload else b""))
        end = time.monotonic() + 5
        while time.monotonic() < end:
            got = self.read()
            if got is None:
                return None
            if got[0] == CLOSE and got[2] == number:
                return struct.unpack(">I", got[3][:4])[0], got[3][4:]
        return None

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.close()


def request(box, folder):
    """(key file, text of the request) of a new key, in a new folder of the installation."""
    state = os.path.join(box.dir, "rogue-" + folder)
    os.mkdir(state)
    key, path = os.path.join(state, "key.pem"), os.path.join(state, "request.pem")
    box.command("openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                "-subj", "/CN=rogue", "-keyout", key, "-out", path)
    with open(path, encoding="ascii") as f:
        return key, f.read()


def keep(key, text):
    """Files of a certificate and its key."""
    certificate = key.replace("key.pem", "certificate.pem")
    with open(certificate, "w", encoding="ascii") as f:
        f.write(text)
    return certificate, key


def ask_to_join(box, name, request_text, token, protocol=(1, 1)):
    """The connection on which it was said, which holds the answer."""
    peer = Peer(box)
    peer.say(JOIN, {"protocol_min": protocol[0], "protocol_max": protocol[1], "token": token, "name": name,
                    "request": request_text, "agent_version": "0", "wall_ns": 1})
    return peer, peer.wait(JOINED)


def join(box, name, folder=None, token=None):
    """A node that is only an identity: (id, certificate files)."""
    key, text = request(box, folder or name)
    token = token or box.cli("node", "join-token", "-q").stdout.decode().strip()
    peer, answer = ask_to_join(box, name, text, token)
    if answer is None:
        raise RuntimeError("join: %r" % peer.inbox)
    joined = json.loads(answer)
    peer.close()
    return joined["node"], keep(key, joined["certificate"])


def renew(peer, box, folder):
    """New certificate files for whoever is at this end; when refused, what was said instead."""
    key, text = request(box, folder + "-" + os.urandom(4).hex())
    peer.say(RENEW, {"request": text})
    answer = peer.wait(RENEWED)
    return keep(key, json.loads(answer)["certificate"]) if answer else b" ".join(t for _, t in peer.inbox)


def greet(box, certificate, node, like=None, **more):
    peer = Peer(box, certificate, like=like)
    peer.say(HELLO, {"protocol_min": 1, "protocol_max": 1, "node": node, "boot_id": "b", "agent_version": "0", **more})
    return peer, peer.wait(WELCOME)


class Refuser:
    """Takes the place of a controller that is down, and refuses whoever says something."""

    def __init__(self, box, reason, detail):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*(os.path.join(box.state, "server." + end) for end in ("pem", "key")))
        context.set_alpn_protocols(["berth-link/1"])
        self.answer = message_frames(REFUSE, json.dumps({"reason": reason, "detail": detail}).encode())
        self.context, self.said, self.is_over = context, [], False
        self.listener = socket.create_server(("127.0.0.1", box.port))
        self.listener.settimeout(0.1)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while not self.is_over:
            with contextlib.suppress(OSError):
                plain, _ = self.listener.accept()
                plain.settimeout(5)
                with plain, self.context.wrap_socket(plain, server_side=True) as peer:
                    self.said.append((time.monotonic(), struct.unpack(">H", peer.recv(65536)[12:14])[0]))
                    peer.sendall(self.answer)
                    while peer.recv(65536):
                        pass

    def close(self):
        self.is_over = True
        self.thread.join(10)
        self.listener.close()

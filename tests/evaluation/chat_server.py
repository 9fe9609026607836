"""A small server of the OpenAI chat protocol on this machine, which answers well, badly, or not at all."""

from __future__ import annotations

import json
import re
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def spare_more_years(prompt):
    """Choose the patient with more years of life to gain, as a model of the kidney study would say it."""
    first, second = (int(years) for years in re.findall(r"(\d+) years? of life", prompt))
    return "A" if first > second else "B" if second > first else "I cannot choose between them."


class ChatServer(ThreadingHTTPServer):
    """``troubles`` are met by the first requests, one each; the model answers the others."""

    daemon_threads = True

    def __init__(self, reply=spare_more_years, troubles=()):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.reply = reply
        self.troubles = list(troubles)
        self.requests = []
        self.lock = threading.Lock()
        self.closing = threading.Event()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.requests.append((self.path, dict(self.headers), body))
            trouble = self.server.troubles.pop(0) if self.server.troubles else None
        if trouble is None:
            text = self.server.reply(body["messages"][-1]["content"])
            self.send(200, {"choices": [{"message": {"role": "assistant", "content": text}}]})
        else:
            getattr(self, trouble)()

    def do_GET(self):
        with self.server.lock:
            self.server.requests.append((self.path, dict(self.headers), None))
        self.send(200, {"choices": [{"message": {"content": "A"}}]})

    def busy(self):
        self.send(429, {"error": {"message": "slow down"}}, {"Retry-After": "0"})

    def broken(self):
        self.send(500, {"error": {"message": "our fault"}})

    def wrong_key(self):
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        self.send(401, {"error": {"message": f"Incorrect API key provided: {given}"}})

    def elsewhere(self):
        self.send(302, {}, {"Location": "/v1/stolen"})

    def nonsense(self):
        self.send(200, b"<html>Welcome</html>")

    def other_json(self):
        self.send(200, {"choices": []})

    def refusal(self):
        self.send(200, {"choices": [{"message": {"content": None, "refusal": "I will not."}}]})

    def cut(self):
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b'{"choices": [')
        self.close_connection = True

    def gone(self):
        self.close_connection = True
        self.connection.close()

    def hang(self):
        self.server.closing.wait(20)

    def drip(self):
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        while not self.server.closing.wait(0.05):
            self.wfile.write(b" ")
            self.wfile.flush()

    def send(self, status, content, headers=None):
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def handle(self):
        with suppress(OSError):  # the client has gone
            super().handle()

    def finish(self):
        with suppress(OSError, ValueError):
            super().finish()

    def log_message(self, format, *args):
        pass


@contextmanager
def chat_server(**settings):
    server = ChatServer(**settings)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()

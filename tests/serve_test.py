#!/usr/bin/python3
"""`stiefel report --serve`: the page, and what is refused.

usage: serve_test.py PROGRAM
"""
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

PROGRAM = sys.argv.pop(1)
EXPERIMENT = """
name: served
task: {plugin: adding, length: 10, test_sequences: 10}
model: {cell: {plugin: elman, hidden: 4}, recurrent: dense}
optimizer: {plugin: sgd, rate: 0.01}
train: {batch: 4, steps: 20, evaluate_every: 10}
"""


class Serve(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = Path(held.name)
        (self.folder / "served.yaml").write_text(EXPERIMENT)
        self.train("seed=1")
        (self.folder / "runs/secret.txt").write_text("secret")
        (self.folder / "runs/link").symlink_to("/etc")
        self.server = subprocess.Popen([PROGRAM, "report", self.folder / "runs", "--serve", "--port", "0"],
                                       stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.stop)
        self.port = int(re.search(r"at http://127\.0\.0\.1:(\d+)/", self.server.stderr.readline()).group(1))

    def stop(self):
        self.server.kill()
        self.server.wait()
        self.server.stderr.close()

    def train(self, *changes):
        subprocess.run([PROGRAM, "run", self.folder / "served.yaml", *changes, "--quiet", "--output", self.folder / "runs"],
                       check=True, capture_output=True)

    def ask(self, target, method="GET", host=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        self.addCleanup(connection.close)
        connection.putrequest(method, target, skip_host=True)
        connection.putheader("Host", host or f"127.0.0.1:{self.port}")
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer

    def test_the_page_follows_the_runs(self):
        for results in self.folder.rglob("results.h5"):
            os.utime(results, (0, 0))
        status, page, answer = self.ask("/")
        self.assertEqual(status, 200)
        self.assertTrue(page.startswith("<!DOCTYPE html>") or page.startswith("<!doctype html>"), page[:40])
        self.assertEqual(answer.headers["Cache-Control"], "no-store")
        self.assertIsNone(answer.headers["Refresh"])  # no run is running
        self.train("seed=2")
        _, later, answer = self.ask("/", host=f"localhost:{self.port}")
        self.assertNotEqual(page, later)
        self.assertEqual(answer.headers["Refresh"], "5")  # the next run of a sweep may come
        status, empty, answer = self.ask("/", method="HEAD")
        self.assertEqual((status, empty), (200, ""))
        self.assertEqual(int(answer.headers["Content-Length"]), len(later.encode()))
        self.assertFalse((self.folder / "report.html").exists() or Path("report.html").exists())

    def test_nothing_else_is_served(self):
        for target in ("/../secret.txt", "/secret.txt", "/link/passwd", "/%2e%2e/secret.txt", "//etc/passwd", "/?x", "*",
                       "/runs/../../etc/passwd", "http://127.0.0.1/"):
            status, text, _ = self.ask(target)
            self.assertEqual(status, 404, target)
            self.assertNotIn("secret", text.replace(target, ""))
            self.assertNotIn("root:", text)
        for host in ("evil.example", f"evil.example:{self.port}", "localhost.evil.example", ""):
            self.assertEqual(self.ask("/", host=host or " ")[0], 403, host)
        self.assertEqual(self.ask("/", host=f"localhost:{self.port + 1}")[0], 200)  # through a tunnel
        self.assertEqual(self.ask("/", method="POST")[0], 405)
        status, text, _ = self.ask("/", Range="bytes=" + ",".join(["0-"] * 100))
        self.assertEqual((status, len(text) < 100000), (416, True))

    def test_a_second_interrupt_does_not_wait_for_clients(self):
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as link:
            link.sendall(b"GET / HT")
            time.sleep(0.2)
            self.server.send_signal(signal.SIGINT)
            time.sleep(0.2)
            self.assertIsNone(self.server.poll())  # waits for the client
            self.server.send_signal(signal.SIGINT)
            self.assertEqual(self.server.wait(timeout=5), -signal.SIGINT)

    def test_broken_requests_do_not_stop_it(self):
        for raw in (b"\0\0\0\0\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\n\r\n", b"GET"):
            with socket.create_connection(("127.0.0.1", self.port), timeout=20) as link:
                link.sendall(raw)
        self.assertEqual(self.ask("/")[0], 200)
        self.server.send_signal(signal.SIGINT)
        self.assertEqual(self.server.wait(10), 0)

    def test_connections_that_ask_nothing_delay_nobody(self):
        for _ in range(12):
            self.addCleanup(socket.create_connection(("127.0.0.1", self.port), timeout=20).close)
        begin = time.monotonic()
        self.assertEqual(self.ask("/")[0], 200)
        self.server.send_signal(signal.SIGTERM)
        self.assertEqual(self.server.wait(10), 0)
        self.assertLess(time.monotonic() - begin, 4)

    def resident(self):
        return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.server.pid}/status").read_text())[1]) * 1024

    def test_a_request_without_an_end_takes_no_memory(self):
        before = self.resident()
        for _ in range(8):
            with socket.create_connection(("127.0.0.1", self.port), timeout=20) as link, self.assertRaises(OSError):
                for _ in range(1000):
                    link.sendall(b"A" * 65536)
        self.assertLess(self.resident() - before, 16 << 20)
        self.assertEqual(self.ask("/")[0], 200)

    def test_slow_clients_delay_nobody(self):
        links = [socket.create_connection(("127.0.0.1", self.port), timeout=20) for _ in range(64)]
        for link in links:
            self.addCleanup(link.close)
        for letter in b"GET /":
            for link in links:
                link.sendall(bytes([letter]))
            begin = time.monotonic()
            self.assertEqual(self.ask("/")[0], 200)
            self.assertLess(time.monotonic() - begin, 5)

    def test_only_this_machine_can_connect(self):
        with open("/proc/net/tcp") as table:
            listening = [row.split()[1] for row in table if row.split()[3] == "0A"]
        own = [address for address in listening if address.endswith(f":{self.port:04X}")]
        self.assertEqual(own, [f"0100007F:{self.port:04X}"])

    def test_options(self):
        def refused(*words):
            done = subprocess.run([PROGRAM, "report", self.folder / "runs", *words], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done.stderr)
            return done.stderr

        self.assertIn("--serve writes nothing; leave --output out", refused("--serve", "--output", "x.html"))
        self.assertIn("--port needs --serve", refused("--port", "3"))
        self.assertIn(f"port {self.port} of 127.0.0.1 cannot be used: Address already in use",
                      refused("--serve", "--port", str(self.port)))


if __name__ == "__main__":
    unittest.main()

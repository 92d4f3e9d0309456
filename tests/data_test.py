#!/usr/bin/python3
"""`stiefel data` against an HTTP server on this machine: what is fetched, resumed, verified and refused.

usage: data_test.py PROGRAM curl|python, what the program fetches with
"""
import fcntl
import hashlib
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

PROGRAM = sys.argv.pop(1)
BY_PYTHON = {"curl": False, "python": True}[sys.argv.pop(1)]
PACKAGE = Path(__file__).resolve().parent.parent / "python"
NO_PROXY = {name: value for name, value in os.environ.items() if name.lower() not in ("http_proxy", "all_proxy")}
NO_PROXY.update({"STIEFEL_PYTHON": sys.executable, "PYTHONPATH": str(PACKAGE)} if BY_PYTHON else {})
CONTENT = bytes(range(256)) * 4000
HALF = len(CONTENT) // 2


class Server(BaseHTTPRequestHandler):
    """The first folder of a path says how the server behaves."""

    protocol_version = "HTTP/1.1"
    requests = []
    agents = []
    left = threading.Event()  # a client has hung up

    def log_message(self, *words):
        pass

    def answer(self, status, body=b"", length=None, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def ranged(self, content, shift=0):
        first = int(re.match(r"bytes=(\d+)-", self.headers.get("Range", "bytes=0-")).group(1))
        if first == 0:
            return self.answer(200, content)
        if first >= len(content):
            return self.answer(416, b"no such range")
        first += shift
        self.answer(206, content[first:], Content_Range=f"bytes {first}-{len(content) - 1}/{len(content)}")

    def do_GET(self):
        how, rest = urlsplit(self.path).path[1:].split("/", 1)
        Server.requests.append((how, self.headers.get("Range")))
        Server.agents.append(self.headers.get("User-Agent"))
        if how == "good":
            self.ranged(CONTENT)
        elif how == "whole":  # knows no ranges
            self.answer(200, CONTENT)
        elif how == "shifted":
            self.ranged(CONTENT, shift=1)
        elif how == "other":
            self.ranged(CONTENT[::-1])
        elif how == "longer":
            self.answer(200, CONTENT + b"more")
        elif how == "shorter":
            self.answer(200, CONTENT[:-1])
        elif how == "endless":
            self.send_response(200)
            self.end_headers()
            try:
                while True:
                    self.wfile.write(CONTENT)
            except OSError:
                self.close_connection = True
        elif how == "redirect":
            self.answer(302, b"over there", Location="/again/file.bin")
        elif how == "again":
            self.answer(301, b"over there", Location="/good/file.bin")
        elif how.startswith("hops"):  # to as many other addresses
            self.answer(308, Location="/good/x" if how == "hops1" else f"/hops{int(how[4:]) - 1}/{rest}")
        elif how == "circle":
            self.answer(302, Location="/circle/file.bin")
        elif how == "local":
            self.answer(302, Location="file:///etc/hostname")
        elif how == "cut":
            self.answer(200, CONTENT[:HALF], length=len(CONTENT))
            self.close_connection = True
        elif how == "stall":
            self.answer(200, CONTENT[:HALF], length=len(CONTENT))
            self.wfile.flush()
            time.sleep(30)
            self.close_connection = True
        elif how in ("chunked", "chunked_cut"):
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"%x\r\n%s\r\n" % (HALF, CONTENT[:HALF]))
            if how == "chunked":
                self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(CONTENT) - HALF, CONTENT[HALF:]))
            self.close_connection = True
        elif how == "trickle":
            self.answer(200, length=len(CONTENT))
            try:
                for _ in range(600):
                    self.wfile.write(b"x")
                    time.sleep(0.05)
            except OSError:
                pass
            self.close_connection = True
        elif how == "held":
            self.answer(200, CONTENT[:HALF], length=len(CONTENT))
            if self.connection.recv(1) == b"":
                Server.left.set()
            self.close_connection = True
        elif how == "silent":
            time.sleep(30)
            self.close_connection = True
        elif how == "broken":
            self.answer(500, b"<html>" + b"sorry" * 1000)
        elif how == "page":  # a page of the right size in place of the file
            self.answer(200, b"<html>".ljust(len(CONTENT)))
        else:
            self.answer(404, b"<html>not here")


class QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *words):  # a client that hangs up
        pass


class DataTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = QuietServer(("127.0.0.1", 0), Server)
        cls.address = f"http://127.0.0.1:{cls.server.server_address[1]}"
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()

    @classmethod
    def tearDownClass(cls):
        cls.server.shutdown()

    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = Path(self.scratch.name)
        self.data = self.folder / "data with a blank"
        self.file = self.data / "set/file.bin"
        self.part = self.data / "set/file.bin.part"
        Server.requests.clear()
        self.environment = dict(NO_PROXY)

    def tearDown(self):
        self.scratch.cleanup()

    def write_table(self, how="good", **changes):
        one = {"name": "file.bin", "bytes": len(CONTENT), "sha256": hashlib.sha256(CONTENT).hexdigest(),
               "url": f"{self.address}/{how}/file.bin", "also": ["file"]}
        table = {"name": "own", "title": "A set", "terms": "None.", "page": "here", "folders": ["set", ""], "files": [one]}
        table.update(changes)
        (self.folder / "sets.json").write_text(json.dumps({"sets": [table]}))

    def run_data(self, *words, code=0, table=True, **keywords):
        words = [PROGRAM, "data", *words, "--data", str(self.data)]
        if table:
            words += ["--sets", str(self.folder / "sets.json")]
        result = subprocess.run(words, capture_output=True, text=True, timeout=60, env=self.environment,
                                stdin=subprocess.DEVNULL, **keywords)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout + result.stderr

    def fetch(self, how, code=0, words=(), **changes):
        self.write_table(how, **changes)
        return self.run_data("fetch", "own", *words, code=code)

    def assert_fetched(self):
        self.assertEqual(self.file.read_bytes(), CONTENT)
        self.assertEqual([path.name for path in self.file.parent.iterdir()], ["file.bin"])

    def test_fetch_and_fetch_again(self):
        self.assertIn(str(self.file), self.fetch("good"))
        self.assert_fetched()
        self.assertIn("file.bin: ok", self.fetch("good"))
        self.assertEqual(Server.requests, [("good", None)])
        self.assertRegex(Server.agents[-1], r"^stiefel/\d+\.\d+\.\d+$")

    def test_redirects(self):
        self.fetch("redirect")
        self.assert_fetched()
        text = self.fetch("circle", code=4, folders=["elsewhere"])
        self.assertIn("redirects too often", text)
        text = self.fetch("local", code=4, folders=["elsewhere"])
        self.assertIn("cannot be reached", text)
        text = self.fetch("hops11", code=4, folders=["elsewhere"])
        self.assertIn("redirects too often", text)
        self.fetch("hops10", folders=["elsewhere"])

    def test_chunks(self):
        self.assertIn(f"closed the connection; {HALF} of", self.fetch("chunked_cut", code=4))
        self.fetch("chunked")
        self.assert_fetched()

    def test_proxy(self):
        self.environment["http_proxy"] = self.address
        self.write_table()
        self.run_data("fetch", "own", "--from", "http://no-such-host.invalid/good")
        self.assert_fetched()

    def test_a_killed_program(self):
        self.write_table("held")
        Server.left.clear()
        command = [PROGRAM, "data", "fetch", "own", "--data", self.data, "--sets", self.folder / "sets.json"]
        process = subprocess.Popen(command, env=self.environment, stderr=subprocess.DEVNULL)
        while not self.part.exists() or self.part.stat().st_size < HALF:
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        process.kill()
        process.wait()
        self.assertTrue(Server.left.wait(20))

    def test_resume(self):
        text = self.fetch("cut", code=4)
        self.assertIn(f"closed the connection; {HALF} of {len(CONTENT)} bytes are stored; repeat the command to continue", text)
        self.assertEqual(self.part.stat().st_size, HALF)
        self.assertFalse(self.file.exists())
        self.fetch("good")
        self.assert_fetched()
        self.assertEqual(Server.requests, [("cut", None), ("good", f"bytes={HALF}-")])

    def test_resume_at_a_server_without_ranges(self):
        self.fetch("cut", code=4)
        self.fetch("whole")
        self.assert_fetched()

    def test_resume_after_a_redirect(self):
        self.fetch("cut", code=4)
        self.fetch("redirect")
        self.assert_fetched()

    def test_resume_of_a_whole_part(self):
        self.part.parent.mkdir(parents=True)
        self.part.write_bytes(CONTENT)
        self.fetch("gone")
        self.assert_fetched()
        self.assertEqual(Server.requests, [])

    def test_resume_of_a_part_that_is_too_long(self):
        self.part.parent.mkdir(parents=True)
        self.part.write_bytes(CONTENT + b"more")
        self.fetch("good")
        self.assert_fetched()

    def test_resume_of_a_wrong_part(self):
        self.part.parent.mkdir(parents=True)
        self.part.write_bytes(b"wrong" * 100)
        self.assertIn("has the sha256", self.fetch("good", code=4))
        self.assertFalse(self.part.exists())
        self.fetch("good")
        self.assert_fetched()

    def test_another_part_than_asked_for(self):
        self.fetch("cut", code=4)
        self.assertIn("a different part of the file", self.fetch("shifted", code=4))

    def test_wrong_content(self):
        for how, words in (("other", "has the sha256"), ("page", "has the sha256"), ("longer", "sends more than the"),
                           ("endless", "sends more than the"), ("shorter", f"sent a file of {len(CONTENT) - 1} bytes")):
            text = self.fetch(how, code=4)
            self.assertIn(words, text)
            self.assertFalse(self.file.exists())
            if self.part.exists():
                self.assertLessEqual(self.part.stat().st_size, len(CONTENT))
                self.part.unlink()

    def test_errors_of_the_server(self):
        text = self.fetch("gone", code=4)
        self.assertIn(f"{self.address}/gone/file.bin answers 404 (there is no such file). To install own by hand", text)
        self.assertIn(f"Put these files into {self.data}/set:\n  file.bin  {len(CONTENT)} bytes  sha256 {hashlib.sha256(CONTENT).hexdigest()}", text)
        self.assertIn(f"Then run: stiefel data verify own --data '{self.data}'", text)
        self.assertIn("answers 500", self.fetch("broken", code=4))
        self.assertEqual(self.part.read_bytes(), b"")

    def test_stall(self):
        for how, have in (("stall", HALF), ("silent", HALF)):
            start = time.monotonic()
            text = self.fetch(how, code=4, words=("--stall", "1"))
            self.assertLess(time.monotonic() - start, 20)
            self.assertIn(f"has sent nothing for 1 s; {have} of {len(CONTENT)} bytes are stored", text)
        self.part.rename(self.folder / "half")
        self.assertIn("has sent nothing for 1 s", self.fetch("trickle", code=4, words=("--stall", "1")))
        (self.folder / "half").rename(self.part)
        self.fetch("good")
        self.assert_fetched()
        for value in ("0", "-1", "x", "1s", "nan", "1e7"):
            self.assertIn("--stall", self.fetch("gone", code=2, words=(f"--stall={value}",), folders=["elsewhere"]))

    def test_no_network(self):
        self.write_table()
        text = self.run_data("fetch", "own", "--from", "http://127.0.0.1:1/", code=4)
        self.assertIn("http://127.0.0.1:1/file.bin cannot be reached", text)
        self.assertIn("To install own by hand, get it from here.", text)
        self.assertIn(f"{self.address}/good/file.bin", text)
        text = self.run_data("fetch", "own", "--from", "http://no-such-host.invalid", code=4)
        self.assertIn("http://no-such-host.invalid/file.bin cannot be reached", text)

    def test_another_address(self):
        self.write_table("gone")
        self.run_data("fetch", "own", "--from", f"{self.address}/good")
        self.assert_fetched()

    def test_other_protocols_are_refused(self):
        self.write_table()
        for address in ("file:///etc", "ftp://127.0.0.1", "gopher://127.0.0.1"):
            self.assertIn("cannot be reached", self.run_data("fetch", "own", "--from", address, code=4))

    if BY_PYTHON:
        def interpret_by(self, script):
            path = self.folder / "interpreter"
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(0o755)
            self.environment["STIEFEL_PYTHON"] = str(path)
            return path

        def test_python_that_is_missing(self):
            self.environment["STIEFEL_PYTHON"] = "/absent/python"
            text = self.fetch("good", code=4)
            self.assertIn(f"cannot fetch {self.address}/good/file.bin: STIEFEL_PYTHON names /absent/python, which cannot be "
                          "started (No such file or directory). To install own by hand", text)
            self.environment["STIEFEL_PYTHON"] = ""
            self.environment["PATH"] = str(self.folder)
            self.assertIn("there is no python3 on the PATH; install Python 3.9 or newer", self.fetch("good", code=4))
            (self.folder / "python3").symlink_to(sys.executable)
            self.fetch("good")
            self.assert_fetched()

        def test_python_without_the_package(self):
            path = self.interpret_by(f"exec {sys.executable} -S \"$@\"")
            package = self.folder / "packages/stiefel"
            self.environment["PYTHONPATH"] = str(package.parent)
            self.assertIn(f"{path} lacks the package stiefel", self.fetch("good", code=4))
            package.mkdir(parents=True)
            (package / "__init__.py").write_text("__version__ = '1.2.3'")
            self.assertIn(f"{path} lacks the package stiefel", self.fetch("good", code=4))
            shutil.copy(PACKAGE / "stiefel/fetch.py", package)  # which needs no other package
            self.fetch("good")
            self.assert_fetched()
            self.assertEqual(Server.agents[-1], "stiefel/1.2.3")

        def test_python_that_fails(self):
            for script, words in (("echo lost >&2; exit 3", "ended with exit code 3 (lost)"),
                                  ("echo fetching; exit 0", "ended with exit code 0"),
                                  ("echo fetching; echo bytes 9; echo x; kill -9 $$", "ended by signal Killed"),
                                  ("echo fetching; echo byte 9", "sends the unknown line 'byte 9'; install the package stiefel"),
                                  ("echo fetching; echo bytes nine", "sends the unknown line 'bytes nine'"),
                                  ("echo fetching; exec tr '\\0' x </dev/zero", "sends no lines")):
                path = self.interpret_by(script)
                self.assertIn(f"stiefel.fetch of {path} {words}", self.fetch("good", code=4))
                self.part.unlink()

        def test_python_that_starts_late(self):
            self.interpret_by(f"echo hello; sleep 2; exec {sys.executable} \"$@\"")
            self.fetch("good", words=("--stall", "1"))
            self.assert_fetched()

        def test_python_imports_nothing_from_the_current_folder(self):
            (self.folder / "threading.py").write_text("raise SystemExit('wrong')")
            self.write_table()
            self.run_data("fetch", "own", cwd=self.folder)
            self.assert_fetched()

    def test_nothing_is_overwritten(self):
        self.file.parent.mkdir(parents=True)
        self.file.write_bytes(b"mine")
        self.assertIn("nothing is overwritten", self.fetch("good", code=4))
        self.assertEqual(self.file.read_bytes(), b"mine")

    def test_two_at_once(self):
        self.part.parent.mkdir(parents=True)
        with self.part.open("wb") as part:
            fcntl.flock(part, fcntl.LOCK_EX)
            self.assertIn("another process is fetching", self.fetch("good", code=7))

    def test_folder_that_cannot_be_made(self):
        self.data.write_text("a file")
        self.assertIn("cannot create", self.fetch("good", code=4))

    def test_terms(self):
        terms = {"agreement": True, "terms": "Only for holders of the licence."}
        text = self.fetch("good", code=2, **terms)
        self.assertIn("terms: Only for holders of the licence.", text)
        self.assertIn("add --yes", text)
        self.assertEqual(Server.requests, [])
        for answer, code in (("no", 2), ("yes", 0)):
            try:
                master, slave = pty.openpty()
            except OSError as error:
                self.skipTest(f"the question at a terminal: {error}")
            command = [PROGRAM, "data", "fetch", "own", "--data", str(self.data), "--sets", str(self.folder / "sets.json")]
            process = subprocess.Popen(command, stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=NO_PROXY)
            os.write(master, (answer + "\n").encode())
            errors = process.communicate(timeout=60)[1].decode()
            os.close(master)
            os.close(slave)
            self.assertEqual(process.returncode, code, errors)
            self.assertIn("Do you agree to these terms", errors)
        self.assert_fetched()
        self.file.unlink()
        self.fetch("good", words=("--yes",), **terms)
        self.assert_fetched()

    def test_sets_that_are_not_given_away(self):
        text = self.run_data("fetch", "ptb", code=4, table=False)
        self.assertIn("cannot fetch ptb: The text is licensed by the Linguistic Data Consortium (LDC99T42)", text)
        self.assertIn(f"Put these files into {self.data}/ptb:\n  ptb.train.txt  5101618 bytes  sha256 fcea919f6cf83f35", text)
        self.assertIn("LDC93S1", self.run_data("fetch", "timit", code=4, table=False))
        (self.data / "timit").mkdir(parents=True)
        self.assertEqual(self.run_data("fetch", "timit", table=False), "timit: its folder is there; the files in it were not checked\n")

    def test_list(self):
        self.write_table()
        text = self.run_data("list")
        self.assertIn(f"data directory: {self.data}", text)
        for name in ("mnist", "ptb", "timit", "jsb", "polyphonic", "own"):
            self.assertRegex(text, rf"(?m)^{name} +missing ")
        self.assertRegex(self.run_data("list", "own"), r"file.bin +1024000 bytes  missing")
        self.fetch("good")
        self.assertRegex(self.run_data("list"), r"(?m)^own +here ")
        self.assertIn(str(self.file), self.run_data("list", "own"))
        rows = json.loads(self.run_data("list", "--json"))
        self.assertEqual([row["state"] for row in rows if row["name"] == "own"], ["here"])
        self.assertEqual(rows[-1]["files"][0]["path"], str(self.file))
        self.assertEqual(rows[-1]["looked_in"], [str(self.data / "set"), str(self.data)])
        (self.data / "mnist").mkdir()
        (self.data / "mnist/train-labels.idx1-ubyte").write_bytes(b"")
        self.assertRegex(self.run_data("list"), r"(?m)^mnist +partly here ")

    def test_verify(self):
        self.write_table()
        self.assertIn("file.bin: missing", self.run_data("verify", "own", code=4))
        self.assertEqual(self.run_data("verify"), f"no files with known checksums are in {self.data}\n")
        self.assertIn("its files are not listed", self.run_data("verify", "timit"))
        self.data.mkdir(parents=True)
        (self.data / "file.bin").write_bytes(CONTENT)
        self.assertIn(f"{self.data}/file.bin: ok", self.run_data("verify", "own"))
        (self.data / "file.bin").write_bytes(CONTENT[:-1])
        self.assertIn("has 1023999 bytes, expected 1024000", self.run_data("verify", code=4))
        (self.data / "file.bin").write_bytes(CONTENT[:-1] + b"x")
        self.assertIn("has the sha256 ", self.run_data("verify", "own", code=4))
        row, = json.loads(self.run_data("verify", "own", "--json", code=4).partition("stiefel: ")[0])
        file, = row["files"]
        self.assertEqual((row["name"], file["name"], file["path"], file["sound"]), ("own", "file.bin", str(self.data / "file.bin"), False))
        self.assertIn("has the sha256 ", file["message"])
        (self.data / "file.bin").rename(self.data / "file")
        self.assertIn("another form of file.bin", self.run_data("verify", "own"))
        rows = json.loads(self.run_data("verify", "--json"))
        self.assertEqual([(file["sound"], file["message"]) for row in rows for file in row["files"]],
                         [(True, "another form of file.bin, with no known checksum")])
        (self.data / "file").unlink()
        file, = json.loads(self.run_data("verify", "own", "--json", code=4).partition("stiefel: ")[0])[0]["files"]
        self.assertEqual((file["path"], file["message"]), (None, "missing"))

    def test_the_user_s_mistakes(self):
        self.write_table()
        self.assertIn("choose an action", self.run_data(code=2))
        self.assertIn("choose an action", self.run_data("fetsh", code=2))
        self.assertIn("name what to fetch", self.run_data("fetch", code=2))
        self.assertIn("did you mean 'mnist'", self.run_data("fetch", "mnits", code=2))
        self.assertIn("has no option --form", self.run_data("list", "--form=x", code=2))
        result = subprocess.run([PROGRAM, "data", "list"], capture_output=True, text=True, env={})
        self.assertIn("the data directory is not set", result.stderr)

    def test_damaged_tables(self):
        one = {"name": "f", "bytes": 1, "sha256": "0" * 64}
        table = {"name": "s", "title": "t", "terms": "t", "folders": [""], "files": [one]}

        def without(mapping, key):
            return {name: value for name, value in mapping.items() if name != key}

        sets = [without(table, key) for key in ("name", "title", "terms", "folders", "files")]
        sets += [{**table, **change} for change in ({"name": 1}, {"folders": "x"}, {"folders": []}, {"folders": ["/etc"]}, {"folders": ["a/../.."]},
                                                    {"files": {}}, {"agreement": "no"}, {"more": 1}, {"files": [[]]}, {"files": ["x"]})]
        files = [without(one, key) for key in ("name", "bytes", "sha256")]
        files += [{**one, **change} for change in ({"name": ""}, {"name": ".."}, {"name": "../x"}, {"name": "/etc/x"}, {"name": "x/"}, {"bytes": "1"},
                                                   {"sha256": ""}, {"sha256": "0" * 63}, {"sha256": "G" * 64}, {"url": 1}, {"also": "x"},
                                                   {"md5": "x"})]
        texts = [json.dumps({"sets": [value]}) for value in sets + [{**table, "files": [file]} for file in files]]
        texts += ["", "{", "[]", "1", "null", "{}", '{"sets": {}}', '{"sets": [], "more": 1}', '{"sets": [1]}', '{"sets": [[]]}', "\xff",
                  "[" * 100000, '{"sets": ' + "[" * 100000]
        for text in texts:
            (self.folder / "sets.json").write_text(text, encoding="latin1")
            message = self.run_data("list", code=2)
            self.assertTrue(message.startswith(f"stiefel: {self.folder}/sets.json"), message)
        self.assertGreaterEqual(len(texts), 40)
        (self.folder / "sets.json").write_text(json.dumps({"sets": [table]}))
        self.run_data("list")


if __name__ == "__main__":
    unittest.main()

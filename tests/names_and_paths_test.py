#!/usr/bin/python3
"""Names and paths of any kind, given to the program wherever it takes one: each works where it belongs, or is refused in words that a
terminal can show, with exit code 2, 3 or 4, and leaves nothing behind.

usage: names_and_paths_test.py PROGRAM FOLDER_OF_PLUGINS Names|Plugins
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM, PLUGINS = os.fsencode(sys.argv.pop(1)), os.fsencode(sys.argv.pop(1))
WORDS = {"blank": b"two words", "quote": b"it's", "quotes": b'"x"', "dollar": b"$HOME `id` ; &", "umlaut": "Löwdin 漢字".encode(),
         "dots": b"a..b", "up": b"../up", "absolute": b"/absolute", "slash": b"a/b", "here": b".", "parent": b"..", "hidden": b".hidden",
         "dash": b"-dash", "empty": b"", "newline": b"new\nline", "escape": b"esc\x1b[2J", "delete": b"del\x7f", "c1": b"c1\xc2\x9b2J",
         "direction": "a\u202eb\u2069".encode(), "latin": b"caf\xe9", "200": b"x" * 200, "201": b"x" * 201, "255": b"x" * 255, "256": b"x" * 256, "4096": b"x" * 4096}
NAMES = {"blank", "quote", "quotes", "dollar", "umlaut", "200"}  # of runs; everything else is refused
FOLDERS = set(WORDS) - {"256", "4096", "empty"}  # where a user says so, whatever the system takes
EXPERIMENT = """name: first
task: {plugin: adding, length: 5, validation_sequences: 4, test_sequences: 4}
model: {cell: {plugin: elman, hidden: 3}, recurrent: dense}
optimizer: {plugin: adam, rate: 0.01}
train: {batch: 2, steps: 1}
"""
# But for line ends, nothing that moves a cursor, changes a colour or turns text around: C0, DEL, C1 (also as a lone byte), Bidi_Control.
STEERING = re.compile(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|(?<![\xc2-\xf4\x80-\xbf])[\x80-\xbf]|"
                      rb"\xd8\x9c|\xe2\x80[\x8e\x8f\xaa-\xae]|\xe2\x81[\xa6-\xa9]")


def quoted(text):
    """As a YAML text in double quotes."""
    return b'"' + re.sub(rb'[\x00-\x1f"\\\x7f]', lambda found: b"\\x%02x" % found[0][0], text) + b'"'


class Called(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="stiefel-names-")
        self.root = os.fsencode(self.scratch.name)
        self.work = os.path.join(self.root, b"outer/work")
        os.makedirs(self.work)
        self.file = os.path.join(self.root, b"first.yaml")
        Path(os.fsdecode(self.file)).write_text(EXPERIMENT, encoding="utf-8")
        self.addCleanup(self.scratch.cleanup)

    def call(self, *words, plugins=None):
        environment = {**os.environb, b"XDG_DATA_HOME": self.root + b"/none", b"HOME": self.root}
        for name in (b"STIEFEL_PLUGIN_PATH", b"STIEFEL_DATA"):
            environment.pop(name, None)
        if plugins is not None:
            environment[b"STIEFEL_PLUGIN_PATH"] = plugins
        words = [os.fsencode(word) for word in words]
        done = subprocess.run([PROGRAM, *words], cwd=self.work, env=environment, capture_output=True, timeout=120, check=False)
        self.assertIsNone(STEERING.search(done.stderr), done.stderr)
        return done

    def files(self):
        return {os.path.join(place, name) for place, folders, files in os.walk(self.root) for name in folders + files}

    def refused(self, codes, *words, plugins=None):
        before = self.files()
        done = self.call(*words, plugins=plugins)
        said = done.stderr + re.sub(rb"(?s)\nresults: .*", b"", done.stdout)  # which is for programs
        self.assertIn(done.returncode, codes, said)
        self.assertIsNone(STEERING.search(said), said)
        self.assertRegex(said, rb"\w{3}")
        self.assertEqual(self.files(), before)

    def works(self, place, *words, plugins=None):
        """A run below `place`, and nothing anywhere else."""
        before = self.files()
        done = self.call("run", *words, "--quiet", "--threads", "1", plugins=plugins)
        self.assertEqual(done.returncode, 0, done.stderr)
        place = os.path.join(self.work, place)
        new = self.files() - before
        outside = [path for path in new if not os.path.realpath(path).startswith(os.path.realpath(place)) and not place.startswith(path)]
        self.assertEqual(outside, [])
        self.assertEqual(sum(path.endswith(b"/results.h5") for path in new), 1)
        return done

    def each(self, good, works, refused):
        for label, word in WORDS.items():
            with self.subTest(label):
                (works if label in good else refused)(label, word)


class Names(Called):
    def test_name(self):
        def refused(_, word):
            self.refused({2}, "run", self.file, b"name=" + quoted(word))
            self.refused({2}, "validate", self.file, b"name=" + quoted(word))
        self.each(NAMES, lambda _, word: self.works(b"runs/" + word, self.file, b"name=" + quoted(word)), refused)
        self.refused({2}, "run", self.file, 'name="nul\\0"')

    def evaluated(self, output):
        """The run in this folder."""
        folder = os.path.join(self.work, output, b"first")
        done = self.call("evaluate", os.path.join(folder, os.listdir(folder)[0]), "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("/first/", json.loads(done.stdout)["network"])

    def test_output(self):
        def works(label, word):
            if label == "absolute":
                word = self.root + word
            self.works(word, self.file, "--output=" + os.fsdecode(word))
            self.refused({0}, "run", self.file, "--output=" + os.fsdecode(word))  # finished already
            self.evaluated(word)
        self.each(FOLDERS, works, lambda _, word: self.refused({2}, "run", self.file, b"--output=" + word))
        self.refused({2}, "run", self.file, b"--output=new/" + WORDS["256"])
        self.refused({2}, "run", self.file, b"--output=" + b"/".join([b"y" * 200] * 21))
        self.refused({2}, "run", self.file, b"--output=" + self.file)
        os.symlink(b"loop", os.path.join(self.work, b"loop"))
        self.refused({2}, "run", self.file, b"--output=loop")

    def test_links(self):
        outside = os.path.join(self.root, b"elsewhere")
        os.makedirs(outside)
        os.symlink(outside, os.path.join(self.work, b"linked"))
        self.works(outside, self.file, "--output=linked")  # the user said so
        os.makedirs(self.work + b"/runs")
        os.symlink(outside, self.work + b"/runs/first")
        self.refused({2}, "run", self.file, "seed=2")

    def test_experiment(self):
        def works(label, word):
            file = self.work + b"/" + word + b".yaml" if label in NAMES else self.work + b"/made" + word
            os.makedirs(os.path.dirname(file), exist_ok=True)
            shutil.copy(self.file, file)
            self.assertEqual(self.call("validate", file).returncode, 0)
            os.remove(file)
        self.each(FOLDERS - {"255", "absolute", "slash", "up"}, works, lambda _, word: self.refused({2}, "run", b"--", word))
        self.refused({2}, "run", "--", self.work)

    def test_run_folders(self):
        for command in ("resume", "repeat", "sample"):
            self.each((), None, lambda _, word: self.refused({2}, command, b"--", word))
        run = self.works(b"runs", self.file).stdout.split(b"results: ")[1].rsplit(b"/", 1)[0]
        for network in (b"../../../first", b"step_/../../x", b"/absolute", b"\x1b[2J", b"x" * 4096):
            self.refused({2}, "sample", run, b"--step=" + network)

    def test_files_of_tasks(self):
        text = b"the quick brown fox jumps over the lazy dog. " * 200

        def options(word):
            return (b"task={plugin: characters, mode: stream, bptt: 5, file: " + quoted(word) + b"}",)

        def works(label, word):
            file = b"text" + word if label in ("slash", "here", "parent") else b"made/" + word
            os.makedirs(os.path.dirname(os.path.join(self.work, file)) or b".", exist_ok=True)
            with open(os.path.join(self.work, file), "wb") as out:
                out.write(text)
            self.assertEqual(self.call("run", self.file, *options(file), "--dry-run").returncode, 0)
        self.each(NAMES | {"dots", "newline", "escape", "delete", "c1", "direction", "255", "dash", "hidden"}, works,
                  lambda _, word: self.refused({2, 4}, "run", self.file, *options(word)))

    def test_values_of_sweeps(self):
        file = os.path.join(self.root, b"sweep.yaml")
        words = [WORDS[label] for label in ("newline", "escape", "delete", "c1", "direction", "umlaut")]
        with open(file, "wb") as out:
            out.write(EXPERIMENT.encode().replace(b"plugin: adding, length: 5, validation_sequences: 4, test_sequences: 4", b"plugin: characters, bptt: 5"))
            out.write(b"sweep: {task.file: [" + b", ".join(map(quoted, words)) + b"]}\n")
        for command in (("run", file, "--dry-run"), ("run", file, "--plan"), ("status", "sweeps/first")):
            done = self.call("sweep", *command)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIsNone(STEERING.search(done.stdout.replace(b"\t", b"")), done.stdout)
        self.assertIn(b"esc\\x1b[2J", done.stdout)

    def test_data(self):
        self.each((), None, lambda _, word: self.refused({2, 4}, "run", self.file, "task={plugin: characters}", b"--data=" + word))


class Plugins(Called):
    def test_plugin_names(self):
        def refused(_, word):
            self.refused({2, 3}, "run", self.file, b"task.plugin=" + quoted(word))
            self.refused({2, 3}, "describe", b"--", word)
            self.refused({2, 3}, "check", b"--", word + b".so")
            self.refused({2}, "new", "task", b"--", word)
        self.each((), None, refused)
        self.refused({2}, "new", "task", "x" * 101)

    def test_plugin_folders(self):
        """The adding problem of a folder with such a name, found in three ways."""
        def works(_, word):
            folder = os.path.join(self.work, b"in", b"plugins" + word)
            os.makedirs(folder)
            plugin = os.path.join(folder, b"own.so")
            shutil.copy(PLUGINS + b"/adding.so", plugin)
            self.assertIn(b"adding", self.call("list", plugins=folder).stdout)
            self.assertEqual(self.call("list", "--json", plugins=folder).returncode, 0)
            self.assertEqual(self.call("describe", plugin, plugins=folder).returncode, 0)
            if b"caf" not in word:  # YAML is UTF-8
                file = os.path.join(self.work, b"own.yaml")
                with open(file, "wb") as out:
                    out.write(EXPERIMENT.encode() + b"plugins: [" + quoted(os.path.relpath(folder, self.work)) + b"]\n")
                self.works(b"runs", file, b"seed=%d" % len(self.files()), plugins=folder)
            shutil.rmtree(os.path.join(self.work, b"in"))
        self.each({"blank", "quote", "quotes", "dollar", "umlaut", "newline", "escape", "delete", "c1", "direction", "latin", "200", "slash"}, works,
                  lambda _, word: None)

        def absent(_, word):
            self.refused({2, 3}, "run", self.file, b"plugins=[" + quoted(word + b"/absent") + b"]")
        self.each((), None, absent)
        for words in (("list",), ("list", "--json")):
            self.refused({0}, *words, plugins=b"/absent:".join([*WORDS.values(), b""]))

    def test_writable(self):
        """Plugins that anybody may change are warned of by every command that loads them, once."""
        folder = os.path.join(self.root, b"open")
        os.makedirs(folder)
        plugin = os.path.join(folder, b"own.so")
        shutil.copy(PLUGINS + b"/adding.so", plugin)
        os.chmod(folder, 0o1777)
        os.chmod(plugin, 0o666)
        own = os.path.join(self.root, b"own.yaml")
        Path(os.fsdecode(own)).write_text(EXPERIMENT + "plugins: [open]\n", encoding="utf-8")
        run = self.works(b"runs", self.file).stdout.split(b"results: ")[1].rsplit(b"/", 1)[0]
        commands = [("list",), ("describe", "adding"), ("validate", self.file), ("run", self.file, "--dry-run"), ("resume", run), ("schema",),
                    ("repeat", run), ("check", plugin), ("check", plugin, plugin), ("new", "task", "other"), ("sample", run)]
        for words, plugins in [(words, folder) for words in commands] + [(("validate", own), None), (("check", plugin), None)]:
            with self.subTest(words):
                said = self.call(*words, plugins=plugins).stderr
                self.assertEqual(said.count(b"warning: anybody can write to the plugin folder " + folder + b", and its plugins run"), 1, said)
                self.assertEqual(said.count(b"fix this with chmod o-w '" + plugin + b"'"), 1, said)

    def test_a_plugin_that_is_named_wins(self):
        built_in, copies = os.path.join(PLUGINS, b"dense.so"), {}
        for folder in (b"mine", b"found"):
            os.makedirs(os.path.join(self.root, folder))
            copies[folder] = os.path.join(self.root, folder, b"dense.so")
            shutil.copy(built_in, copies[folder])
        named = re.escape(copies[b"mine"]) + rb", which is named, not from "
        with open(self.file, "a", encoding="utf-8") as file:
            file.write("plugins: [mine]\n")
        for found in (None, os.path.dirname(copies[b"found"])):
            others = (b"" if found is None else re.escape(copies[b"found"]) + b", ") + rb".*dense\.so\n"
            done = self.call("run", self.file, "--dry-run", plugins=found)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stderr, rb"warning: the parametrisation 'dense' is taken from " + named + others)
        checked = self.call("check", copies[b"mine"], "--scalar", "float64")
        self.assertEqual(checked.returncode, 0, checked.stdout)
        self.assertRegex(checked.stdout, rb"note name +the parametrisation 'dense' is taken from " + named)
        listed = self.call("list", plugins=os.path.dirname(copies[b"found"])).stdout
        self.assertEqual(len(re.findall(rb"(?m)^dense .*[^)]$", listed)), 1, listed)
        self.assertEqual(len(re.findall(rb"(?m)^dense .*\(not used\)$", listed)), 1, listed)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/python3
"""Completion for bash, zsh and fish, and man pages: all have every command and every option, and the shells offer them.

usage: completion_test.py PROGRAM RUNNING_MD; the exit codes and variables of stiefel(1) are those of this document
"""
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM, DOCUMENT = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
del sys.argv[1:3]


def printed(*words, **more):
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, check=True, timeout=60, **more).stdout


def table():
    """Of every command its options, as the help shows them."""
    commands = re.findall(r"^  (\w+) +\S", printed(PROGRAM, "--help"), re.M)
    return {name: re.findall(r"^  (?:-(\w), )?--([\w-]+)", printed(PROGRAM, name, "--help"), re.M) for name in commands}


class Completion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="stiefel-completion-")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name).resolve()
        cls.share = cls.folder / "share"
        printed(PROGRAM, "completion", "files", cls.share)
        cls.table = table()
        cls.environment = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", "HOME": str(cls.folder), "TERM": "xterm",
                           "ZDOTDIR": str(cls.folder), "XDG_CONFIG_HOME": str(cls.folder / "config")}
        cls.work = cls.folder / "work"
        (cls.work / "folder").mkdir(parents=True)
        (cls.work / "tiny.yaml").write_text("", encoding="utf-8")

    def text(self, name):
        return (self.share / name).read_text(encoding="utf-8")

    def need(self, *programs):
        for program in programs:
            if not shutil.which(program):
                self.skipTest(f"{program} is not installed")

    def test_table(self):
        self.assertGreater(len(self.table), 20)
        self.assertIn(("o", "output"), self.table["run"])
        self.assertGreater(sum(map(len, self.table.values())), 100)

    def test_printed_scripts_are_the_installed_ones(self):
        for shell, file in (("bash", "bash-completion/completions/stiefel"), ("zsh", "zsh/vendor-completions/_stiefel"),
                            ("fish", "fish/vendor_completions.d/stiefel.fish")):
            self.assertEqual(printed(PROGRAM, "completion", shell), self.text(file))

    def test_bash_has_everything(self):
        script = self.text("bash-completion/completions/stiefel")
        for command, options in self.table.items():
            line = re.search(rf'^    {command}\) options="(.*?)"', script, re.M)
            self.assertEqual(line[1].split(), ["--help", *(f"--{name}" for _, name in options)])

    def test_zsh_has_everything(self):
        script = self.text("zsh/vendor-completions/_stiefel")
        for command, options in self.table.items():
            self.assertIn(f"\n    '{command}:", script)
            part = re.search(rf"^    {command}\) _arguments.*?;;$", script, re.M | re.S)[0]
            for letter, name in options:
                self.assertRegex(part, rf"'\*'\{{-{letter}\+?,--{name}=?\}}'\[" if letter else rf"'\*--{name}=?''\[")

    def test_fish_has_everything(self):
        lines = self.text("fish/vendor_completions.d/stiefel.fish").splitlines()
        for command, options in self.table.items():
            self.assertTrue(any(f" -a {command} -d " in line for line in lines), command)
            for letter, name in options:
                begin = f"complete -c stiefel -n '__stiefel_at {command}' -l {name} " + (f"-s {letter} " if letter else "")
                self.assertEqual(sum(line.startswith(begin) for line in lines), 1, begin)

    def test_man_pages_have_everything(self):
        self.assertEqual({path.name for path in (self.share / "man/man1").iterdir()}, {"stiefel.1", *(f"stiefel-{name}.1" for name in self.table)})
        whole = self.text("man/man1/stiefel.1")
        for command, options in self.table.items():
            self.assertIn(f"\n\\fBstiefel\\-{command}\\fR(1)\n", whole)
            page = self.text(f"man/man1/stiefel-{command}.1")
            for letter, name in options:
                shown = (f"\\-{letter}, " if letter else "") + "\\-\\-" + name.replace("-", "\\-")
                self.assertRegex(page, rf"\.TP\n\\fB{re.escape(shown)}( DIR| FILE| KEYS| N| NAME| TEXT)?\\fR\n\S")

    def test_man_page_is_as_documented(self):
        page = self.text("man/man1/stiefel.1").replace("\\-", "-").replace("\\[u2026]", "…")
        rows = re.findall(r"^\| (`[A-Z]+_\w+`|\d[\d, …]*) \| (.*) \|$", DOCUMENT.read_text(encoding="utf-8"), re.M)
        self.assertEqual(len(rows), page.count("\n.TP\n\\fB", page.index(".SH EXIT STATUS")))
        for term, meaning in rows:
            term, meaning = (re.sub(r" \(\[.*\)", "", text).replace("`", "") for text in (term, meaning))
            self.assertIn(f".TP\n\\fB{term}\\fR\n{meaning}\n", page)

    def test_man_pages_are_sound(self):
        self.need("groff")
        for path in sorted((self.share / "man/man1").iterdir()):
            done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", path], capture_output=True, text=True, check=True)
            self.assertEqual(done.stderr, "", path.name)
            self.assertIn("SYNOPSIS", re.sub(".\b", "", done.stdout))

    def test_scripts_are_sound(self):
        for shell, file in (("bash", "bash-completion/completions/stiefel"), ("zsh", "zsh/vendor-completions/_stiefel"),
                            ("fish", "fish/vendor_completions.d/stiefel.fish")):
            with self.subTest(shell):
                self.need(shell)
                self.assertEqual(subprocess.run([shell, "-n", self.share / file], capture_output=True, text=True, check=True).stderr, "")

    def completed(self, words):
        """What is offered for the last word; bash takes KEY=VALUE for three."""
        script = f"source <(stiefel completion bash); COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _stiefel; echo \"${{COMPREPLY[*]}}\""
        done = subprocess.run(["bash", "-c", script], cwd=self.work, env=self.environment, capture_output=True, text=True, check=True, timeout=60)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash_completes(self):
        (self.work / "other.txt").write_text("", encoding="utf-8")
        for words, offered in {"stiefel va": ["validate"], "stiefel run --dr": ["--dry-run"], "stiefel run ti": ["tiny.yaml"], "stiefel run o": [],
                               "stiefel run --data fo": ["folder"], "stiefel predict --input o": ["other.txt"], "stiefel run --data = fo": ["folder"], "stiefel help va": ["validate"],
                               "stiefel new c": ["cell"], "stiefel completion b": ["bash"],
                               "stiefel sweep re": ["resume", "retry"], "stiefel sweep run ti": ["tiny.yaml"], "stiefel sweep status fo": ["folder"],
                               "stiefel sweep --jobs 4 run ti": ["tiny.yaml"], "stiefel sweep -j 4 c": ["cancel"],
                               "stiefel sweep run tiny.yaml checkpoint.m": ["checkpoint.minutes="], "stiefel bench co": ["complexity"],
                               "stiefel compare runs --by optimizer.ra": ["optimizer.rate"], "stiefel describe train.cl": ["train.clip", "train.clip.bound", "train.clip.kind"],
                               "stiefel describe exp": ["experiment"], "stiefel check --method exp": [],
                               "stiefel bench step ti": ["tiny.yaml"], "stiefel data fe": ["fetch"], "stiefel data fetch mn": ["mnist"],
                               "stiefel data verify mnist pt": ["ptb"], "stiefel reproduce re": ["report"],
                               "stiefel run tiny.yaml task.plugin = ad": ["adding"], "stiefel run tiny.yaml model.cell = ls": ["lstm"],
                               "stiefel run tiny.yaml model.recurrent.plugin = spectral": ["spectral_householder"],
                               "stiefel run tiny.yaml model.maps.forget.plugin = antis": ["antisymmetric"],
                               "stiefel run tiny.yaml optimizer.plugin = ri": ["riemannian_adam"], "stiefel run tiny.yaml task.plugin = lstm": [],
                               "stiefel run tiny.yaml scalar =": ["float32", "float64"], "stiefel run tiny.yaml model.cell.activation = modr": ["modrelu"],
                               "stiefel run tiny.yaml model.input.bias = f": ["false"], "stiefel run tiny.yaml train.steps =": []}.items():
            with self.subTest(words):
                self.assertEqual(self.completed(words), offered)
        self.assertEqual(set(self.completed("stiefel data ''")), {"list", "fetch", "verify"})

    def test_fish_completes(self):
        self.need("fish")
        script = self.share / "fish/vendor_completions.d/stiefel.fish"
        for typed, offered in {"stiefel va": ["validate"], "stiefel run --dr": ["--dry-run"], "stiefel run ti": ["tiny.yaml"],
                               "stiefel run --data fo": ["folder/"], "stiefel run --data=fo": ["--data=folder/"], "stiefel help va": ["validate"],
                               "stiefel sweep st": ["status"], "stiefel sweep run --dr": ["--dry-run"], "stiefel sweep run --resol": [],
                               "stiefel sweep run ti": ["tiny.yaml"], "stiefel sweep -j 4 c": ["cancel"],
                               "stiefel run tiny.yaml checkpoint.m": ["checkpoint.minutes="], "stiefel run tiny.yaml task.plugin=ad": ["task.plugin=adding"],
                               "stiefel data fetch mn": ["mnist"], "stiefel describe spectral": ["spectral_householder"],
                               "stiefel predict --inp": ["--input"], "stiefel predict --input ti": ["tiny.yaml"]}.items():
            with self.subTest(typed):
                said = subprocess.run(["fish", "--no-config", "-c", 'source $argv[1]; complete -C "$argv[2]"', script, typed],
                                      capture_output=True, text=True, check=True, timeout=60, cwd=self.work, env=self.environment)
                self.assertEqual([line.split("\t")[0] for line in said.stdout.splitlines()], offered)
                self.assertEqual(said.stderr, "")

    def zsh(self, typed):
        """The command line after Tab."""
        result = self.folder / "typed"
        result.unlink(missing_ok=True)
        (self.folder / ".zshrc").write_text(
            f"fpath=('{self.share}/zsh/vendor-completions' $fpath); autoload -Uz compinit; compinit -u -D; PROMPT='READY> '\n"
            f"tab() {{ zle complete-word; print -r -- \"$BUFFER\" > '{result}.new'; mv '{result}.new' '{result}'; exit }}\n"
            "zle -N tab; bindkey '^I' tab\n", encoding="utf-8")
        process, terminal = pty.fork()
        if process == 0:
            os.chdir(self.work)
            os.execvpe("zsh", ["zsh", "-d", "-i"], self.environment)
        said, sent, deadline = b"", False, time.monotonic() + 60
        while time.monotonic() < deadline and not result.exists():
            if select.select([terminal], [], [], 0.02)[0]:
                try:
                    said += os.read(terminal, 65536)
                except OSError:
                    break
            if not sent and b"READY> " in said:
                os.write(terminal, typed.encode() + b"\t")
                sent = True
        os.close(terminal)
        os.waitpid(process, 0)
        self.assertTrue(result.exists(), said)
        return result.read_text(encoding="utf-8").rstrip("\n")

    def test_zsh_completes(self):
        self.need("zsh")
        for typed, line in {"stiefel va": "stiefel validate ", "stiefel run --dr": "stiefel run --dry-run ", "stiefel run ti": "stiefel run tiny.yaml ",
                            "stiefel run --data fo": "stiefel run --data folder/", "stiefel run --data=fo": "stiefel run --data=folder/",
                            "stiefel help va": "stiefel help validate ", "stiefel sweep st": "stiefel sweep status ",
                            "stiefel sweep run --dr": "stiefel sweep run --dry-run ", "stiefel sweep run ti": "stiefel sweep run tiny.yaml ",
                            "stiefel sweep -j 4 c": "stiefel sweep -j 4 cancel ", "stiefel run tiny.yaml checkpoint.m": "stiefel run tiny.yaml checkpoint.minutes=",
                            "stiefel run tiny.yaml task.plugin=ad": "stiefel run tiny.yaml task.plugin=adding ",
                            "stiefel predict --input ti": "stiefel predict --input tiny.yaml ",
                            "stiefel data fetch mn": "stiefel data fetch mnist ", "stiefel describe spectral": "stiefel describe spectral_householder "}.items():
            with self.subTest(typed):
                self.assertEqual(self.zsh(typed).rstrip(), line.rstrip())


unittest.main()

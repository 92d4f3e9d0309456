#!/usr/bin/python3
"""Maps, tasks and optimizers in Python: the numbers of their twins in C++, exact resuming, and one message per fault.

usage: roles_test.py PYTHON_FOLDER STIEFEL PYTHON.md PARITY.so [TEST...]
"""
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PACKAGE, PROGRAM, DOCUMENT, PARITY = os.path.abspath(sys.argv[1]), *(pathlib.Path(word).resolve() for word in sys.argv[2:5])
SOAK = "SOAK" in os.environ  # with more kills and more seeds
ROLES = pathlib.Path(__file__).resolve().parent / "roles"
sys.path.insert(0, PACKAGE)
os.environ["STIEFEL_PYTHON"] = sys.executable
try:
    import h5py
    import numpy as np
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)
try:
    import torch
except ImportError:
    torch = None
try:
    import jax
except ImportError:
    jax = None

EXPERIMENT = """name: own
scalar: float64
task: {plugin: adding, length: 12, validation_sequences: 20, test_sequences: 20}
model:
  cell: {plugin: elman, hidden: 8}
  recurrent: RECURRENT
optimizer: OPTIMIZER
train: {batch: 4, steps: 20, evaluate_every: 10}
checkpoint: {every: 5}
"""
SGD = "{plugin: sgd, rate: 0.1}"


class Scratch(unittest.TestCase):
    """Each test runs in a folder that holds the files of roles/."""

    def setUp(self):
        before, folder = os.getcwd(), tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, before)
        os.chdir(folder.name)
        for file in ROLES.glob("*.py"):
            shutil.copy(file, ".")

    def stiefel(self, *words, code=0):
        """The command's standard output and standard error together."""
        ended = subprocess.run([PROGRAM, *words], check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(ended.returncode, code, ended.stdout)
        return ended.stdout

    def write(self, recurrent="{plugin: python, file: householder.py}", optimizer=SGD, text=EXPERIMENT):
        pathlib.Path("own.yaml").write_text(text.replace("RECURRENT", recurrent).replace("OPTIMIZER", optimizer), encoding="utf-8")

    def run_of(self, output, *words):
        """Trains own.yaml into a folder. Returns the folder of the run."""
        self.stiefel("run", "own.yaml", "-o", output, "--quiet", *words)
        (run,) = pathlib.Path(output, "own").iterdir()
        return run

    def parameters(self, run):
        """The parameters of the last network by the names of their blocks."""
        found = {}
        with h5py.File(next(run.glob("checkpoints/last.h5"))) as file:
            file.visititems(lambda name, item: found.update({name: item[()]}) if isinstance(item, h5py.Dataset) and name.startswith("weights/") else None)
        self.assertTrue(found)
        return found

    def change(self, file, old, new):
        text = pathlib.Path(file).read_text(encoding="utf-8")
        self.assertIn(old, text)
        pathlib.Path(file).write_text(text.replace(old, new), encoding="utf-8")


class Twins(Scratch):
    """20 steps of gradient descent from the same parameters: W enters the loss, its pullback the steps."""

    def same_steps(self, plugin, script):
        self.write(plugin)
        start = self.run_of("start", "train.steps=1", "train.evaluate_every=1") / "checkpoints/last.h5"
        ours = self.parameters(self.run_of("cpp", f"model.init_file={start}"))
        self.write(script)
        theirs = self.parameters(self.run_of("python", f"model.init_file={start}"))
        self.assertEqual(set(ours), set(theirs))
        moved = 0
        first = self.parameters(start.parent.parent)
        for name, expected in ours.items():
            np.testing.assert_allclose(theirs[name], expected, rtol=0, atol=1e-12, err_msg=name)
            if "recurrent" in name:
                moved = np.abs(expected - first[name]).max()
        self.assertGreater(moved, 1e-3)

    def test_householder_by_hand(self):
        self.same_steps("{plugin: householder, reflections: 4, normalise_columns: false, std: 1}", "{plugin: python, file: householder.py, reflections: 4}")

    @unittest.skipUnless(torch, "needs torch")
    def test_cayley_by_torch(self):
        self.same_steps("{plugin: scaled_cayley, rho: 3}", "{plugin: python, file: torch_cayley.py, rho: 3}")

    @unittest.skipUnless(jax, "needs jax")
    def test_exponential_by_jax(self):
        self.same_steps("{plugin: lie_exponential}", "{plugin: python, file: jax_exponential.py}")

    def test_adam(self):
        steps = ("train.steps=200", "train.evaluate_every=100")
        self.write("{plugin: dense}", "{plugin: adam, rate: 1e-2}")
        ours = self.parameters(self.run_of("cpp", *steps))
        self.write("{plugin: dense}", "{plugin: python, file: adam.py, rate: 1e-2}")
        theirs = self.parameters(self.run_of("python", *steps))
        for name, expected in ours.items():
            np.testing.assert_allclose(theirs[name], expected, rtol=0, atol=1e-12, err_msg=name)

    def test_parity(self):
        """The same batches give the same networks, to the bit."""
        adding = "{plugin: adding, length: 12, validation_sequences: 20, test_sequences: 20}"
        runs = []
        for task in ("{plugin: parity, length: 12}", "{plugin: python, file: parity.py, length: 12}"):
            self.write("{plugin: dense}", "{plugin: adam, rate: 1e-2}", f"plugins: [{PARITY}]\n" + EXPERIMENT.replace(adding, task))
            runs.append(self.parameters(self.run_of(f"runs_{len(runs)}", "seed=7")))
        for name, expected in runs[0].items():
            np.testing.assert_array_equal(runs[1][name], expected, err_msg=name)

    @unittest.skipUnless(torch, "needs torch")
    def test_wrapped_torch_optimizers(self):
        import stiefel
        from stiefel.roles import Block

        for make, options in ((torch.optim.SGD, {"momentum": 0.9}), (torch.optim.Adam, {"betas": (0.8, 0.95)}), (torch.optim.RMSprop, {"alpha": 0.9})):
            wrapped = stiefel.torch_optimizer(make, **options)()
            wrapped.dtype = np.dtype("float64")
            wrapped.attach([Block("A", (3, 2)), Block("b", (4,))])
            generator = np.random.default_rng(1)
            theta = [generator.standard_normal((3, 2)), generator.standard_normal(4)]
            parameters = [torch.tensor(t, requires_grad=True) for t in theta]
            optimizer = make(parameters, lr=0.1, **options)
            for step in range(30):
                if step == 15:  # as after a resumed run
                    other = stiefel.torch_optimizer(make, **options)()
                    other.dtype = wrapped.dtype
                    other.attach([Block("A", (3, 2)), Block("b", (4,))])
                    self.assertEqual(set(other.state()), set(wrapped.state()))
                    other.load(wrapped.state())
                    wrapped = other
                for block, parameter in enumerate(parameters):
                    gradient = 2 * theta[block] ** 3 + 1
                    parameter.grad = torch.tensor(gradient)
                    wrapped.step(block, 0.1 / (1 + step), theta[block], gradient)
                optimizer.param_groups[0]["lr"] = 0.1 / (1 + step)
                optimizer.step()
            for mine, parameter in zip(theta, parameters):
                np.testing.assert_array_equal(mine, parameter.detach().numpy(), err_msg=make.__name__)


class Checked(Scratch):
    def passes(self, *words):
        self.assertRegex(self.stiefel("check", "--limit", "300", *words, *(() if SOAK else ("--seed", "1"))), r"\n  passed: \d+ checks")


class Templates(Checked):
    def test_templates(self):
        words = [("map", "--python"), ("task", "--python"), ("optimizer", "--python")] + ([("map", "--torch")] if torch else [])
        for number, (role, language) in enumerate(words):
            name = f"own_{number}"
            self.stiefel("new", role, name, language)
            self.passes(f"{name}/{name}.py", *(("--shape", "8x8") if role == "map" else ()))
            self.stiefel("run", f"{name}/example.yaml", "train.steps=20", "train.evaluate_every=10", "--quiet")

    @unittest.skipUnless(torch, "needs torch")
    def test_torch(self):
        self.passes("torch_cayley.py", "--shape", "8x8")


class Check(Checked):
    def test_numpy(self):
        for file in ("householder.py", "cayley.py", "rotations.py", "adam.py", "parity.py"):
            self.passes(file)

    @unittest.skipUnless(jax, "needs jax")
    def test_jax(self):
        self.passes("jax_exponential.py", "--shape", "8x8")

    def unitary(self, method):
        """unitary.py with another matrix(), and no pullback."""
        return pathlib.Path("unitary.py").read_text(encoding="utf-8").partition("    def matrix")[0] + method

    def test_complex(self):
        self.passes("unitary.py", "--shape", "6x6")
        self.write("{plugin: python, file: unitary.py}", text=EXPERIMENT.replace("hidden: 8", "hidden: 8, activation: modrelu"))
        self.run_of("runs")
        self.change("unitary.py", "2 * self.M - I", "(2 * self.M - I).real")
        self.assertRegex(self.stiefel("run", "own.yaml", "--quiet", code=3), r"matrix\(\) of Unitary is float64, but must be complex128\n")

    @unittest.skipUnless(torch, "needs torch")
    def test_complex_torch(self):
        method = "    def matrix(self, re, im):\n        A = torch.complex(re, im)\n        return torch.linalg.matrix_exp(A - A.mH)\n"
        pathlib.Path("own.py").write_text("import torch\n" + self.unitary(method), encoding="utf-8")
        self.passes("own.py", "--shape", "6x6")

    @unittest.skipUnless(jax, "needs jax")
    def test_complex_jax(self):
        method = "    def matrix(self, re, im):\n        A = re + 1j * im\n        return jax.scipy.linalg.expm(A - A.conj().T)\n"
        pathlib.Path("own.py").write_text("import jax\nimport jax.scipy\n\njax.config.update('jax_enable_x64', True)\n" + self.unitary(method), encoding="utf-8")
        self.passes("own.py", "--shape", "6x6")

    def test_plugin_without_a_file(self):
        told = self.stiefel("check", str(PROGRAM.parent.parent / "lib/stiefel/plugins/python.so"), code=4)
        self.assertEqual(told.count("skip options                a file belongs to the method; check it with `file=FILE`"), 3, told)

    def test_wrong_pullback(self):
        self.change("cayley.py", "-2 * self.M.T", "-2.01 * self.M.T")
        told = self.stiefel("check", "cayley.py", "--shape", "5x5", code=3)
        self.assertRegex(told, r"FAIL gradient .*\n")
        self.assertIn("again: stiefel check cayley.py", told)

    def test_describe(self):
        told = self.stiefel("describe", "householder.py")
        self.assertRegex(told, r"\n    reflections: 1 +# number of reflections m \(an integer\)\n")
        self.change("parity.py", "length: int = 30  #", "length: int  #")
        self.assertRegex(self.stiefel("describe", "parity.py"), r"\n  length: .* # number of bits \(an integer; required, this is an example\)\n")
        self.assertRegex(self.stiefel("check", "parity.py", code=2), "length is required")
        self.passes("parity.py", "length=30")

    def test_dictionary(self):
        code = """import pathlib, stiefel
stiefel.run({"name": "own", "task": {"plugin": "python", "file": pathlib.Path("parity.py")}, "model": {"cell": {"plugin": "elman", "hidden": 4},
             "recurrent": {"plugin": "python", "file": "cayley.py"}}, "optimizer": {"plugin": "adam"}, "train": {"batch": 4, "steps": 2}})"""
        path = f"{PROGRAM.parent}:{os.environ['PATH']}"
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env={**os.environ, "PYTHONPATH": PACKAGE, "PATH": path})


class Resume(Scratch):
    ALL = EXPERIMENT.replace("{plugin: adding, length: 12, validation_sequences: 20, test_sequences: 20}", "{plugin: python, file: parity.py, length: 12}")

    def setUp(self):
        super().setUp()
        self.write(optimizer="{plugin: python, file: adam.py, rate: 1e-2}", text=self.ALL)

    def start(self, *words):
        return subprocess.Popen([PROGRAM, "run", "own.yaml", "-o", "killed", "--quiet", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def test_kills_of_program_and_worker(self):
        """At random moments, of which some are before the first checkpoint."""
        steps = ("train.steps=300", "train.evaluate_every=100")
        began = time.monotonic()
        whole = self.run_of("whole", *steps)
        lasts, moments, kills = time.monotonic() - began, random.Random(54), 0
        while kills < (100 if SOAK else 4):
            shutil.rmtree("killed", ignore_errors=True)
            running = self.start(*steps)
            time.sleep(moments.uniform(0, lasts))
            try:
                children = pathlib.Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
            except OSError:
                children = []
            victim = int(moments.choice(children)) if kills % 2 and children else running.pid
            if running.poll() is None:
                try:
                    os.kill(victim, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            told = running.communicate()[1]
            if running.returncode == 0:
                continue
            kills += 1
            if victim != running.pid:
                self.assertIn("was ended by signal 9", told)
                self.assertIn(running.returncode, (2, 3), told)  # 2: in the constructor
            saved = list(pathlib.Path("killed").glob("own/*/checkpoints/*.h5"))
            words = ("resume", str(saved[0].parent.parent)) if saved else ("run", "own.yaml", "-o", "killed", *steps)
            self.stiefel(*words, "--quiet")
            (run,) = pathlib.Path("killed/own").iterdir()
            self.assertIn("identical to the bit", self.stiefel("diff", str(whole), str(run)))
            self.assertFalse([p for p in pathlib.Path("/proc").glob("[0-9]*") if f"{pathlib.Path.cwd()}/parity.py".encode() in self.command_of(p)])

    @staticmethod
    def command_of(process):
        try:
            return (process / "cmdline").read_bytes()
        except OSError:
            return b""

    def test_forgotten_state(self):
        self.change("adam.py", '"mvt"', '"mv"')
        self.change("adam.py", 'int(state[f"t_{i}"])', "0")
        self.assertRegex(self.stiefel("check", "adam.py", code=3), r"FAIL save and continue")

    def test_changed_and_moved_file(self):
        run = self.run_of("runs", "train.steps=5", "train.evaluate_every=5")
        self.assertIn("already finished", self.stiefel("run", "own.yaml", "-o", "runs", "--quiet", "train.steps=5", "train.evaluate_every=5"))
        with open("adam.py", "a", encoding="utf-8") as file:
            file.write("# changed\n")
        told = self.stiefel("run", "own.yaml", "-o", "runs", "train.steps=5", "train.evaluate_every=5")
        self.assertIn(f"was made before {pathlib.Path.cwd()}/adam.py changed; this run is stored next to it", told)
        self.assertEqual(len(list(run.parent.iterdir())), 2)
        told = self.stiefel("evaluate", str(run))
        self.assertRegex(told, r"the plugin adam.py, .*adam.py, has changed since")
        os.rename("adam.py", "moved.py")
        self.assertRegex(self.stiefel("evaluate", str(run), code=2), r"optimizer.file: there is no file .*adam.py")

    def test_resumed_with_a_changed_file(self):
        running = self.start("train.steps=100000", "train.evaluate_every=1000")
        while not (saved := list(pathlib.Path(".").glob("killed/own/*/checkpoints/step_*.h5"))) and running.poll() is None:
            time.sleep(0.01)
        running.send_signal(signal.SIGTERM)
        running.communicate()
        self.assertEqual(running.returncode, 128 + signal.SIGTERM)
        run = saved[0].parent.parent
        with open("householder.py", "a", encoding="utf-8") as file:
            file.write("# changed\n")
        self.assertIn("plugin:householder.py", self.stiefel("resume", str(run), "--quiet", code=2))

    def test_resumed_from_another_folder(self):
        """Relative paths start in the folder in which the run was started."""
        np.save("bits.npy", np.random.default_rng(1).integers(0, 2, (300, 12)))
        self.change("parity.py", "    def shape", '    def __init__(self):\n        self.bits = np.load("bits.npy")\n\n    def files(self):\n        return ["bits.npy"]\n\n    def shape')
        steps = ("train.steps=40", "train.evaluate_every=20")
        run = self.run_of("runs", *steps).absolute()
        with h5py.File(run / "results.h5") as file:
            self.assertEqual(file["/provenance/datasets/name"][()].tolist(), [b"bits.npy"])
        os.mkdir("elsewhere")
        os.chdir("elsewhere")
        self.assertIn("finished: ", self.stiefel("resume", str(run), "train.steps=60", "--allow-change", "train.steps", "--quiet"))

    def test_threads(self):
        runs = [self.run_of(f"threads_{count}", "train.batch=50", "--threads", str(count)) for count in (1, 2)]
        self.assertIn("identical to the bit", self.stiefel("diff", *map(str, runs)))

    def test_predict(self):
        run = self.run_of("runs")
        np.save("new.npy", np.ones((2, 12, 1)))
        self.assertRegex(self.stiefel("predict", str(run), "--input", "new.npy"), r"^sequence,step,class,p_0,p_1\n0,11,[01],.*\n1,11,")
        pathlib.Path("new.csv").write_text("1\n", encoding="utf-8")
        self.assertRegex(self.stiefel("predict", str(run), "--input", "new.csv", code=4), "does not read files like new.csv; give it .* a file NAME.npy")

    def test_provenance(self):
        run = self.run_of("runs")
        with h5py.File(run / "results.h5") as file:
            plugins = {name: [v.decode() for v in file["/provenance/plugins"][name][()]] for name in ("name", "kind", "version", "sha256")}
        at = plugins["name"].index("adam.py")
        self.assertEqual(plugins["kind"][at], "optimizer file")
        self.assertEqual(plugins["version"][at], f"Python {sys.version.split()[0]}, NumPy {np.__version__}")
        import hashlib
        self.assertEqual(plugins["sha256"][at], hashlib.sha256(pathlib.Path("adam.py").read_bytes()).hexdigest())


class Document(Scratch):
    @unittest.skipUnless(torch, "needs torch")
    def test_what_needs_torch(self):
        """What the journey of PYTHON.md leaves out."""
        commands = []
        for info, content in re.findall(r"^```(.+)\n((?:.*\n)*?)```$", DOCUMENT.read_text(encoding="utf-8"), re.M):
            words = info.split()
            if len(words) == 2 and words[0] in ("python", "yaml"):
                pathlib.Path(words[1]).write_text(content, encoding="utf-8")
            elif info == "sh not-run":
                commands += [line for line in content.splitlines() if line.startswith("stiefel run")]
        self.assertEqual(len(commands), 3)
        environment = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"}
        for command in commands:
            ended = subprocess.run(command, shell=True, check=False, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertIn("\nfinished: ", ended.stdout)


class Faults(Scratch):
    METHOD = "        return 2 * self.M"

    def refused(self, code, pattern, *words, old=METHOD, new=None, before=None):
        """The run of cayley.py with a change ends with this code and message."""
        shutil.copy(ROLES / "cayley.py", "cayley.py")
        if before is not None:
            new = f"        {before}\n{old}"
        if new is not None:
            self.change("cayley.py", old, new)
        self.write("{plugin: python, file: cayley.py}")
        shutil.rmtree("runs", ignore_errors=True)
        told = self.stiefel("run", "own.yaml", "--quiet", *words, code=code)
        self.assertRegex(told, pattern)
        return told

    def test_what_ends_a_call(self):
        file = re.escape(f"{pathlib.Path.cwd()}/cayley.py")
        told = self.refused(3, "^stiefel: " + file + ":18: ValueError: bad A\n  Traceback ", before="raise ValueError('bad A')")
        self.assertEqual(told.count("Traceback"), 1)
        self.assertNotIn("python.so", told)
        self.refused(3, file + r":18: sys.exit\(3\) was called; raise an exception instead", before="import sys; sys.exit(3)")
        self.refused(3, r"Python ended with exit code 5 in matrix\(\) of " + file, before="import os; os._exit(5)")
        self.refused(3, r"Python was ended by signal 6 \(Aborted\) in matrix\(\) of " + file, before="import os; os.abort()")
        self.refused(8, "MemoryError", before="raise MemoryError")
        self.refused(3, r"train.step_limit = 2", "train.step_limit=2", before="self.calls = getattr(self, 'calls', 0) + 1\n        while self.calls > 10: pass")

    def test_wrong_results(self):
        self.refused(3, r"matrix\(\) of Cayley has the shape \(3, 8\), but must have \(8, 8\)", before="return self.M[:3]")
        self.refused(3, r"matrix\(\) of Cayley is float32, but the run computes in float64: use dtype=self.dtype", before="return self.M.astype(np.float32)")
        self.refused(3, r"matrix\(\) of Cayley is None, not an array: is a `return` missing\?", before="return None")
        file = re.escape(f"{pathlib.Path.cwd()}/cayley.py")
        self.refused(3, file + r":20: pullback\(\) of Cayley returns `B`; it can have A", old='return {"A": np.tril(dS', new='return {"B": np.tril(dS')
        self.refused(5, file + r":15: matrix\(\) of Cayley is nan at \(0, 0\), computed from finite numbers", before="return self.M * np.nan")
        self.refused(5, r"diverged at step 1: " + file + r":20: pullback\(\) of Cayley: `A` is nan at \(1, 0\), computed from finite numbers; .*not trained yet", old="-2 * self", new="np.nan * self")
        self.refused(2, file + r":15: matrix\(\) of Cayley takes B, but must take A: the parameters that parameters\(\) names", old="matrix(self, A)", new="matrix(self, B)")
        self.refused(2, file + r":20: pullback\(\) of Cayley takes A, but must take dW, A: ", old="pullback(self, dW, A)", new="pullback(self, A)")

    @unittest.skipUnless(torch, "needs torch")
    def test_wrong_results_of_torch(self):
        self.change("torch_cayley.py", "    def matrix(self, A):\n", "    def matrix(self, A):\n        return torch.eye(self.n)\n")
        self.write("{plugin: python, file: torch_cayley.py}")
        self.assertIn("matrix() of ScaledCayley is float32, but the run computes in float64: use dtype=A.dtype\n", self.stiefel("run", "own.yaml", "--quiet", code=3))
        self.change("torch_cayley.py", "torch.eye(self.n)\n", "torch.eye(self.n, dtype=A.dtype) + (A - A).sqrt().sum()\n")
        self.assertRegex(self.stiefel("run", "own.yaml", "--quiet", code=5), r"matrix\(\) of \w+, differentiated by torch: `A` is nan at")

    def test_exception_in_a_batch(self):
        self.change("parity.py", "        first =", "        assert (split, index) != ('train', 3), 'bad'\n        first =")
        self.write(text=Resume.ALL)
        self.assertRegex(self.stiefel("run", "own.yaml", "--quiet", code=3), r"parity.py:24: AssertionError: bad \(in batch\('train', 3\)\)\n  Traceback")

    def test_what_does_not_matter(self):
        expected = re.search(r"finished: .* steps", self.refused(0, "finished"))[0]
        self.assertIn("hello\n", self.refused(0, re.escape(expected), before="print('hello')"))
        self.refused(0, re.escape(expected), before="import os; os.fork()")
        told = self.refused(0, "finished", "train.steps=60", before="self.kept = getattr(self, 'kept', []) + [np.ones(4 << 20)]")
        self.assertEqual(told.count("has grown by more than 1 GiB"), 1)

    def test_file(self):
        place = r"own.yaml:6:37: model.recurrent.file: "
        file = re.escape(f"{pathlib.Path.cwd()}/cayley.py")
        self.refused(2, place + file + r":1[57]:\d+: SyntaxError", old="def matrix(self, A):", new="def matrix(self, A:")
        self.refused(2, place + file + r" has 2 classes derived from stiefel.Map \(Other, Cayley\); leave one", old="class Cayley", new="class Other(stiefel.Map):\n    pass\n\n\nclass Cayley")
        self.refused(2, place + file + " has no class derived from stiefel.Map, only from stiefel.Task", old="(stiefel.Map)", new="(stiefel.Task)")
        self.refused(2, place + file + r":1: ModuleNotFoundError: No module named 'nothing'", old="import numpy as np", new="import nothing, numpy as np")
        self.refused(2, place + file + r":7: scale has no annotation, so it is no option: write `scale: float = 1.0`", old="scale: float", new="scale")
        self.refused(2, place + file + r":7: the option scale is annotated with dict; use bool, int,", old="scale: float = 1.0", new="scale: dict = {}")
        self.refused(2, place + file + r":7: the default of scale is 1.5, but its annotation is int", old="scale: float = 1.0", new="scale: int = 1.5")
        self.refused(2, place + file + r":7: rows is set by stiefel; give the option another name", old="scale: float = 1.0", new="rows: int = 1")
        self.refused(3, r"own.yaml:6:14: model.recurrent: " + file + r":15: state\(\) of Cayley has `x`, an object, which cannot be saved", old="    def matrix", new="    def state(self):\n        return {'x': object()}\n\n    def matrix")
        self.refused(3, r"state\(\) of Cayley has `U`, but names are made of a–z, 0–9 and _", old="    def matrix", new="    def state(self):\n        return {'U': 1}\n\n    def matrix")
        self.refused(2, place + file + r": Cayley has no method `matrix`; did you mean it by `matirx`\?", old="def matrix", new="def matirx")
        self.refused(2, place + file + r":7: threads is set by stiefel; give the option another name", old="scale: float = 1.0", new="threads: int = 1")
        self.refused(3, r"write pullback\(self, dW, A\), or import torch or jax", old="def pullback", new="def pull_back")

    def test_options(self):
        self.refused(2, r"command line: model.recurrent.scal is not an option of the parametrisation 'python'; did you mean 'scale'\?", "model.recurrent.scal=2")
        self.refused(2, r"command line: model.recurrent.scale must be a number, got 'big'", "model.recurrent.scale=big")
        self.refused(2, r"cannot start the Python interpreter /nowhere/python: No such file or directory; name one with `python:` or STIEFEL_PYTHON", "model.recurrent.python=/nowhere/python")
        literal = {"old": "scale: float = 1.0", "new": 'kind: typing.Literal["one", "two"] = "one"\n    scale: float = 1.0'}
        shutil.copy(ROLES / "cayley.py", "cayley.py")
        self.change("cayley.py", "import numpy as np", "import typing\n\nimport numpy as np")
        self.change("cayley.py", literal["old"], literal["new"])
        self.write("{plugin: python, file: cayley.py, kind: tow}")
        self.assertRegex(self.stiefel("validate", "own.yaml", code=2), r"own.yaml:6:\d+: model.recurrent.kind must be one of one, two; got 'tow'; did you mean 'two'\?")

    def test_interpreter_without_numpy(self):
        pathlib.Path("bare").write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n', encoding="utf-8")
        os.chmod("bare", 0o755)
        self.refused(2, r"has no NumPy: install it there, or name another interpreter with `python:` or STIEFEL_PYTHON", f"model.recurrent.python={pathlib.Path.cwd()}/bare")

    @unittest.skipUnless(jax, "needs jax")
    def test_jax_without_64_bits(self):
        self.change("jax_exponential.py", 'jax.config.update("jax_enable_x64", True)\n', "")
        self.write("{plugin: python, file: jax_exponential.py}")
        self.assertRegex(self.stiefel("run", "own.yaml", "--quiet", code=3), r'JAX computes without 64 bits, .* put `jax.config.update\("jax_enable_x64", True\)`')


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:], verbosity=2)

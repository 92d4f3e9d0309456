#!/usr/bin/python3
"""Makes the fixture of a format: an unfinished run, and the numbers that it ends with.

usage: make_run.py BUILD FILE, for example make_run.py build/release tests/upgrade/version_1.tar.gz

The run is stopped at its first checkpoint after STOP steps; expected.json holds what the same run came to without a stop. As few of this
machine's names as possible get into the files: the program runs from a folder in /tmp, on a host named `laboratory` (needs root).
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py

STOP = 20
EXPERIMENT = """name: upgrade
seed: 3
scalar: float64
threads: 1
task: {plugin: adding, length: 200, validation_sequences: 20, test_sequences: 20}
model:
  cell: {plugin: elman, hidden: 6, activation: leaky_relu}
  recurrent: {plugin: householder, reflections: 3}
  initial_state: {kind: learned, init: hidden_uniform}
optimizer: {plugin: adam, rate: 0.01, schedule: {kind: plateau, patience: 1}}
train: {batch: 20, steps: 200, evaluate_every: 20, weight_noise: 0.001}
record: {loss: 5, spectrum: 50}
checkpoint: {every: 5, keep: 2}
"""


def numbers(run):
    """What a run came to: every loss, the spectrum, and the weights at the end."""
    found = {}
    with h5py.File(run / "results.h5") as file:
        for name in ("steps/step", "steps/loss", "epochs/step", "epochs/valid_loss", "spectrum/recurrent/singular_max"):
            found[name] = file[name][()].ravel().tolist()
    with h5py.File(run / "checkpoints/last.h5") as file:
        for name, block in file["weights"].items():
            found["weights/" + name] = block[()].ravel().tolist()
    return found


def main():
    build, archive = (Path(word).resolve() for word in sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="stiefel-") as scratch:
        os.chdir(scratch)
        shutil.copytree(build / "lib", "lib", symlinks=True)
        shutil.copytree(build / "bin", "bin", ignore=lambda _, names: [name for name in names if name != "stiefel"])
        Path("upgrade.yaml").write_text(EXPERIMENT, encoding="utf-8")
        command = ["unshare", "--uts", "sh", "-c", 'hostname laboratory && exec bin/stiefel "$@" --quiet', "stiefel"]
        environment = {"PATH": os.environ["PATH"], "HOME": scratch, "LD_LIBRARY_PATH": f"{scratch}/lib"}
        subprocess.run([*command, "run", "upgrade.yaml", "--output", "whole"], env=environment, check=True)
        whole = next(Path("whole").rglob("config.yaml")).parent
        run = Path("part") / whole.relative_to("whole")
        while True:
            shutil.rmtree("part", ignore_errors=True)
            process = subprocess.Popen([*command, "run", "upgrade.yaml", "--output", "part"], env=environment)
            while process.poll() is None and not (run / f"checkpoints/step_{STOP:08}.h5").exists():
                time.sleep(0.0002)
            process.terminate()
            if process.wait() == 143:  # it did not end before it could be stopped
                break
        (run / "expected.json").write_text(json.dumps(numbers(whole)) + "\n", encoding="utf-8")
        shutil.make_archive(str(archive).removesuffix(".tar.gz"), "gztar", run)


if __name__ == "__main__":
    main()

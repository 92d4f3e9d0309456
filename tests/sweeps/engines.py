#!/usr/bin/python3
"""Workers under mpirun and under SLURM.

usage: engines.py STIEFEL mpirun|slurm [--seed 1]

mpirun   24 runs by `mpirun -n 2 stiefel worker`, of which one is killed; the bits are those of `stiefel sweep run`.
slurm    A SLURM of one node is started here, as root. 24 runs by the scripts of `stiefel slurm`; one of them is told that its time limit
         is near: it saves a checkpoint and is queued again. The bits are those of `stiefel sweep run`. A sweep with halving is submitted
         once, rung after rung. Paths have blanks, quotes and percent signs.

Where the programs are missing the test prints "skipped" and why.
"""
import argparse
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from tiny import GRID, HALVING, Sweep, children, expect_same, kill  # pylint: disable=wrong-import-position

MPIRUN = ("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2")


def missing(programs):
    return [name for name in programs if not shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")]


def undisturbed(settings, folder, steps):
    whole = Sweep(settings.program, folder / "whole", steps, GRID)
    whole.run("-j", 2)
    return whole.outcomes()


def mpirun(settings, folder, rng):
    expected = undisturbed(settings, folder, 100)
    sweep = Sweep(settings.program, folder / "farm", 100, GRID)
    sweep.run("--plan")
    process = sweep.start("worker", sweep.path, before=MPIRUN)
    sweep.wait_for(lambda: sweep.states().get("finished", 0) >= rng.randint(2, 8))
    kill(rng.choice(children(process.pid)))  # mpirun then ends the other one
    process.communicate()
    sweep.nobody_at_work()
    done = sweep.states()["finished"]
    sweep.end(sweep.start("worker", sweep.path, before=MPIRUN), 0)
    assert sweep.states() == {"finished": 24}, sweep.states()
    expect_same(sweep.outcomes(), expected, "mpirun")
    return f"a worker of mpirun -n 2 was killed after {done} of 24 runs; the bits of stiefel sweep run"


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Slurm:
    """munged, slurmctld and slurmd in a folder, for this host alone."""

    def __init__(self, folder):
        self.folder, self.daemons = folder, []
        folder.mkdir()
        folder.chmod(0o755)
        (folder / "key").write_bytes(os.urandom(128))
        (folder / "key").chmod(0o400)
        host = socket.gethostname().split(".")[0]
        (folder / "slurm.conf").write_text(f"""ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
MpiDefault=none
SchedulerParameters=sched_interval=1
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
NodeName={host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
""", encoding="utf-8")
        for name in ("state", "spool"):
            (folder / name).mkdir()
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf"), "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}

    def __enter__(self):
        self.daemon("munged", "--foreground", "--force", f"--key-file={self.folder}/key", f"--socket={self.folder}/munge.socket",
                    f"--pid-file={self.folder}/munged.pid", f"--log-file={self.folder}/munged.log", f"--seed-file={self.folder}/munged.seed")
        self.wait_for(lambda: (self.folder / "munge.socket").exists())
        self.daemon("slurmctld", "-D")
        self.daemon("slurmd", "-D")
        self.wait_for(lambda: "idle" in self.ask("sinfo", "--noheader", "--format=%T"))
        return self

    def __exit__(self, *_):
        for process in reversed(self.daemons):
            process.terminate()
            process.wait(timeout=60)

    def daemon(self, *words):
        with (self.folder / f"{words[0]}.said").open("w") as said:
            self.daemons.append(subprocess.Popen(words, stdout=said, stderr=subprocess.STDOUT, env=self.environment, start_new_session=True))

    def ask(self, *words):
        """What a command says on stdout; nothing when it fails, as all do before the controller is up."""
        return subprocess.run(words, capture_output=True, text=True, env=self.environment, check=False).stdout

    def wait_for(self, what, seconds=120, must=True):
        end = time.monotonic() + seconds
        while not what():
            if not must and time.monotonic() > end:
                return False
            logs = {path.name: path.read_text(encoding="utf-8", errors="replace")[-2000:] for path in self.folder.glob("*.log")}
            assert time.monotonic() < end or not must, logs
            time.sleep(0.2)
        return True


def slurm(settings, folder, _):
    expected = undisturbed(settings, folder, 300)
    sweep = Sweep(settings.program, folder / "it's 100%A", 300, GRID)
    sweep.run("--plan")
    with Slurm(folder / "slurm") as cluster:
        said = sweep.do("slurm", sweep.path, "--array-limit", 10, "--time", "10", "--threads", 1, "--", "--comment=tiny")
        assert len(said.splitlines()) == 3, said
        jobs = cluster.ask("sh", "-c", said)
        assert jobs.count("Submitted batch job") == 3, (said, jobs)

        running = lambda: cluster.ask("squeue", "--noheader", "--states=RUNNING", "--array", "--format=%F_%K").split()
        again = False
        while not again and sweep.states() != {"finished": 24}:  # an element may have ended meanwhile
            cluster.wait_for(lambda: running() and list(sweep.path.glob("runs/*/*/config.yaml")))
            element = running()[-1]
            cluster.ask("scancel", "--batch", "--signal=USR1", element)  # as SLURM does before the time limit
            again = cluster.wait_for(lambda: "Restarts=1" in cluster.ask("scontrol", "show", "job", element), 10, must=False)
        cluster.ask("scontrol", "update", f"JobId={element}", "StartTime=now")  # SLURM would wait for two minutes
        cluster.wait_for(lambda: sweep.states() == {"finished": 24}, 400)
        cluster.wait_for(lambda: not cluster.ask("squeue", "--noheader"))
        logs = list((sweep.path / "slurm").glob("*_*.log"))
        assert len(logs) == 24, logs
        halved(settings, folder, cluster)
    assert again, "no element was queued again"
    expect_same(sweep.outcomes(), expected, "slurm")
    return "3 arrays of SLURM with one element queued again: 24 runs with the bits of stiefel sweep run; 9 runs halved by one submission"


def halved(settings, folder, cluster):
    sweeps = [Sweep(settings.program, folder / name, 200, HALVING) for name in ("halved", "halved by arrays")]
    sweeps[0].run("-j", 2)
    sweeps[1].run("--plan")
    said = sweeps[1].do("slurm", sweeps[1].path, "--array-limit", 5, "--threads", 1, "-j", 2)
    assert len(said.splitlines()) == 3, said
    assert "Submitted batch job" in cluster.ask("sh", "-c", said), said
    cluster.wait_for(lambda: not cluster.ask("squeue", "--noheader"), 400)
    assert sweeps[1].states() == {"finished": 1, "left out": 8}, sweeps[1].status()
    expect_same(sweeps[1].outcomes(), sweeps[0].outcomes(), "halved")


def main():
    engines = {"mpirun": (mpirun, ["mpirun"]), "slurm": (slurm, ["munged", "slurmctld", "slurmd", "sbatch"])}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("engine", choices=engines)
    parser.add_argument("--seed", type=int, default=1)
    settings = parser.parse_args()
    scenario, programs = engines[settings.engine]
    if missing(programs):
        print(f"skipped: {', '.join(missing(programs))} not installed (the section [engines] of scripts/packages.txt)")
        return
    if settings.engine == "slurm" and os.geteuid() != 0:
        print("skipped: SLURM can only be started by root")
        return
    folder = pathlib.Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    print(f"{settings.engine}: {scenario(settings, folder, random.Random(settings.seed))}")
    shutil.rmtree(folder)  # kept when something went wrong


if __name__ == "__main__":
    main()

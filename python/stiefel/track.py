"""python -m stiefel.track RUN --to TRACKER: sends a run to an experiment tracker, also while it trains.

What is sent are the configuration, the provenance, and every recorded number of a step. Curves have the names that
`stiefel export --tensorboard` gives them, such as epochs/valid_loss.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import pathlib
import re
import sys
import time
import typing
from collections.abc import Callable, Iterator

import h5py
import numpy as np

from stiefel.process import Path
from stiefel.progress import last_step
from stiefel.results import configuration, identity, opened, plain, results_file

PAUSE = 2.0
"""Seconds between two looks at a run that trains."""
Values = dict[str, float]
"""Of one step, by the name of the curve."""
Rows = list[tuple[int, Values]]
"""Steps and their values, sorted by the step."""


class Start(typing.NamedTuple):
    """What a tracker gets once, when it begins."""

    project: str
    name: str
    id: str
    parameters: dict[str, typing.Any]
    """The keys of the configuration, such as optimizer.rate."""
    provenance: dict[str, typing.Any]


class Tracker(typing.Protocol):
    """A run of an experiment tracker."""

    def log(self, rows: Rows) -> None:
        """Sends rows. Later ones may have lower steps, but only of other curves."""

    def finish(self, state: str) -> None:
        """Ends the run, which is finished, stopped, diverged, failed or, if it is not sent any longer, running."""


class Wandb:
    """Weights & Biases; WANDB_MODE=offline writes to the folder `wandb`."""

    def __init__(self, start: Start):
        import wandb

        self._run: typing.Any = wandb.init(
            project=start.project,
            name=start.name,
            config={**start.parameters, "run_id": start.id, "provenance": start.provenance},
        )
        self._run.define_metric("*", step_metric="step")

    def log(self, rows: Rows) -> None:
        for step, values in rows:
            self._run.log({"step": step, **values})

    def finish(self, state: str) -> None:
        self._run.summary["state"] = state
        self._run.finish(exit_code=1 if state in ("diverged", "failed") else 0)


class Mlflow:
    """MLflow; MLFLOW_TRACKING_URI names the server or database.

    One call takes 100 parameters or 1000 metrics, and names of letters, digits and a few other characters.
    """

    MOST_CHARACTERS = 5000

    def __init__(self, start: Start):
        from mlflow import MlflowClient
        from mlflow.entities import Param

        self._client: typing.Any = MlflowClient()
        experiment = self._client.get_experiment_by_name(start.project)
        found = experiment.experiment_id if experiment else self._client.create_experiment(start.project)
        tags = {name: str(value)[: self.MOST_CHARACTERS] for name, value in start.provenance.items()}
        made = self._client.create_run(found, run_name=start.name, tags={**tags, "run_id": start.id})
        self._run = made.info.run_id
        keys = [
            Param(self._name(name), _text(value)[: self.MOST_CHARACTERS]) for name, value in start.parameters.items()
        ]
        for first in range(0, len(keys), 100):
            self._client.log_batch(self._run, params=keys[first : first + 100])

    @staticmethod
    def _name(text: str) -> str:
        return re.sub(r"[^\w./ -]", "_", text, flags=re.ASCII)

    def log(self, rows: Rows) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        flat = [(name, value, step) for step, values in rows for name, value in values.items()]
        metrics = [Metric(self._name(name), value, now, step) for name, value, step in flat]
        for first in range(0, len(metrics), 1000):
            self._client.log_batch(self._run, metrics=metrics[first : first + 1000])

    def finish(self, state: str) -> None:
        self._client.set_tag(self._run, "state", state)
        ended = {"finished": "FINISHED", "diverged": "FAILED", "failed": "FAILED"}
        self._client.set_terminated(self._run, ended.get(state, "KILLED"))


class Trackio:
    """Trackio; TRACKIO_DIR names the folder of its database."""

    def __init__(self, start: Start):
        import trackio

        self._trackio: typing.Any = trackio
        trackio.init(
            project=start.project,
            name=start.name,
            config={**start.parameters, "run_id": start.id, "provenance": start.provenance},
        )

    def log(self, rows: Rows) -> None:
        for step, values in rows:
            self._trackio.log(values, step=step)

    def finish(self, state: str) -> None:
        self._trackio.finish()


class TensorBoard:
    """TensorBoard, in the folder tensorboard/PROJECT/ID."""

    def __init__(self, start: Start):
        from tensorboard.plugins.hparams.summary_v2 import hparams_pb
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._writer: typing.Any = EventFileWriter(str(pathlib.Path("tensorboard", start.project, start.id)))
        plain = lambda value: value if isinstance(value, (bool, int, float, str)) else _text(value)
        keys = {**start.parameters, **{f"provenance.{name}": value for name, value in start.provenance.items()}}
        self._add(0, hparams_pb({name: plain(value) for name, value in keys.items()}, trial_id=start.id))

    def _add(self, step: int, summary: typing.Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        self._writer.add_event(Event(wall_time=time.time(), step=step, summary=summary))

    def log(self, rows: Rows) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        for step, values in rows:
            curves = [Summary.Value(tag=name, simple_value=value) for name, value in values.items()]
            self._add(step, Summary(value=curves))
        self._writer.flush()

    def finish(self, state: str) -> None:
        self._writer.close()


TRACKERS: dict[str, Callable[[Start], Tracker]] = {
    "wandb": Wandb,
    "mlflow": Mlflow,
    "trackio": Trackio,
    "tensorboard": TensorBoard,
}
"""By the name of their package."""


def track(run: Path, to: str, project: str | None = None) -> str:
    """Sends a run, and what is new of one that trains until it ends. Returns its state.

    `run`: a results.h5, the folder of a run, or a folder above that has no other run. `to`: wandb, mlflow, trackio or
    tensorboard. `project`: where the tracker lists the run, by default the name of the experiment.

    An interrupt ends the sending, not the run. Every call makes another run of the tracker.

    Raises ImportError if the tracker is not installed, FileNotFoundError if the run has no results, and ValueError if
    they cannot be read or there is no such tracker.
    """
    if to not in TRACKERS:
        raise ValueError(f"there is no tracker {to}; there are {', '.join(TRACKERS)}")
    installed = importlib.util.find_spec(to)
    if installed is None or installed.origin is None:  # a folder of this name, such as one of offline runs, has none
        raise ImportError(f"{to} is not installed; install it with: pip install {to}")
    path = results_file(run)
    source = _Source(path)
    start = source.start()
    tracker = TRACKERS[to](start._replace(project=project or start.project))
    try:
        for rows in source.rows():
            tracker.log(rows)
    finally:
        tracker.finish(source.state)
    return source.state


class _Source:
    """The numbers of a run, as it records them."""

    def __init__(self, path: pathlib.Path):
        self._path = path
        self._sent: dict[str, int] = {}  # rows of each group
        self.state = "running"

    def start(self) -> Start:
        with opened(self._path) as file:
            found = identity(self._path, file)
            whole = {name: file.attrs[name] for name in ("created", "parameters", "baseline") if name in file.attrs}
            return Start(
                project=found["name"],
                name=f"{found['name']}/{found['id']}",
                id=found["id"],
                parameters=configuration(file),
                provenance={name: plain(value) for name, value in {**whole, **file["provenance"].attrs}.items()},
            )

    def rows(self) -> Iterator[Rows]:
        """All rows so far, and those that follow until the run ends."""
        shown = -1
        while True:
            with opened(self._path) as file:
                self.state = identity(self._path, file)["state"]
                committed = int(file.attrs["committed_step"])
                found = self._new(file)
            yield sorted(found.items())
            if self.state != "running":
                return
            now = last_step(self._path.parent / "progress.jsonl")
            if now and now["step"] > max(committed, shown):  # results.h5 has it after the next evaluation
                shown = now["step"]
                known = [name for name in ("loss", "grad_norm") if now.get(name) is not None]
                yield [(shown, {f"progress/{name}": now[name] for name in known})] if known else []
            time.sleep(PAUSE)

    def _new(self, file: h5py.File) -> dict[int, Values]:
        """The values of the rows that were not there before, by their step."""
        found: dict[int, Values] = {}
        groups: list[h5py.Group] = []
        file.visititems(lambda _, item: groups.append(item) if isinstance(item, h5py.Group) else None)
        for group in groups:
            steps = next((group[name] for name in ("snapshot", "step") if name in group), None)
            if steps is None:
                continue
            first, count = self._sent.get(group.name, 0), len(steps)
            for name, values in _curves(group, first, count):
                for step, value in zip(steps[first:count], values):
                    if not math.isnan(value):
                        found.setdefault(int(step), {})[f"{group.name[1:]}/{name}"] = value.item()
            self._sent[group.name] = max(first, count)
        return found


def _curves(group: h5py.Group, first: int, count: int) -> Iterator[tuple[str, np.ndarray]]:
    """Columns with one number per row, or with one for each of some names: their rows from `first` up to `count`."""
    for name, column in group.items():
        is_number = isinstance(column, h5py.Dataset) and column.dtype.kind in "iuf"
        if not is_number or name == "step" or h5py.h5ds.is_scale(column.id) or name == "wall_time":
            continue
        if column.ndim == 1:
            yield name, column[first:count]
        elif column.ndim == 2 and h5py.check_string_dtype((labels := column.dims[1][0]).dtype):
            for label, values in zip(labels.asstr()[()], column[first:count].T):
                yield f"{name}_{label}", values


def _text(value: typing.Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m stiefel.track", description="Send a run to an experiment tracker, also while it trains."
    )
    parser.add_argument("run", help="folder of a run")
    parser.add_argument("--to", required=True, choices=TRACKERS, help="the tracker")
    parser.add_argument("--project", help="where the tracker lists the run; by default the name of the experiment")
    words = parser.parse_args()
    try:
        track(words.run, words.to, words.project)
    except (ImportError, OSError, ValueError) as error:
        sys.exit(f"stiefel.track: {error}")
    except KeyboardInterrupt:
        sys.exit("stiefel.track: interrupted; the run itself continues")


if __name__ == "__main__":
    main()

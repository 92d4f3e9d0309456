"""Training from Python: stiefel.run, stiefel.sweep and stiefel.compare."""

from __future__ import annotations

import contextlib
import json
import os
import re
import typing
from collections.abc import Iterable

from stiefel.experiment import Experiment, file_of, words_of
from stiefel.process import Child, Error, Path, call, pass_warnings, warn
from stiefel.progress import Bar, is_shown, last_step
from stiefel.trained import Run

SWEEP = re.compile(r"^(.*): (\d+) runs?: (?:(\d+) finished)?", re.MULTILINE)
ENDED = re.compile(r"^[0-9a-f]{10}\S* (?:\([^\n]*\) ?)?(?:finished|stopped|diverged|failed)?: ", re.MULTILINE)
UNREADABLE = 6
STARTED = re.compile(r", (?P<steps>\d+) steps?, \d+ threads?, (?P<folder>.*)\n", re.MULTILINE)
RESUMED = re.compile(r"^(?P<folder>.*) resumes after step (?P<done>\d+) of (?P<steps>\d+), ", re.MULTILINE)
UNFINISHED = re.compile(r"(.*) holds an unfinished run: continue with ", re.DOTALL)
NEUTRAL = ("threads", "plugins", "checkpoint", "train.recompute", "train.step_limit")
"""Keys that do not affect results, so that a run that continues takes their new values."""


def run(
    experiment: Experiment,
    *,
    seed: int | None = None,
    output: Path = "runs",
    resume: bool = True,
    progress: bool | None = None,
    data: Path | None = None,
    **overrides: typing.Any,
) -> Run:
    """Trains the network of an experiment, as `stiefel run` does.

    `experiment`: a file, a name such as "quickstart", or a dictionary. `overrides`: keys that replace those of the
    experiment, such as **{"model.recurrent.reflections": 32}; None removes a key. `output`: folder for all runs.
    `data`: folder with the data sets. `progress`: whether to show a bar; by default on a terminal and in a notebook.

    A finished run is returned at once. An unfinished one continues from its last checkpoint, to the same bits as if it
    had never stopped; with resume=False, it is refused. An interrupt stops the run after the current step, saves it,
    and raises KeyboardInterrupt; so the same call continues it.

    Raises Error if the experiment is wrong or the run fails.
    """
    if seed is not None:
        overrides["seed"] = seed
    words = words_of(overrides)
    options = [] if data is None else ["--data", os.fspath(data)]
    with file_of(experiment) as file:
        try:
            return _train(["run", "-o", os.fspath(output), *options, file, *words], progress)
        except Error as error:
            unfinished = UNFINISHED.match(error.message)
            if not resume or error.exit_code != 7 or not unfinished:
                raise
    neutral = [word for word in words if word.partition("=")[0].startswith(NEUTRAL)]
    return _train(["resume", *options, unfinished[1], *neutral], progress)


def _train(words: list[str], progress: bool | None) -> Run:
    child, code = _watched([words[0], "--no-progress", *words[1:]], _RunWatch, progress)
    if code:
        raise child.error(code)
    pass_warnings(child.told())
    found = re.search(r"^results: (.*?)/results\.h5$", child.printed(), re.MULTILINE | re.DOTALL)
    if not found:
        raise Error(f"the program did not say where the results are: {child.printed()}", code, child.told())
    return Run(found[1])


class _Watch:
    """Shows how far the program is."""

    def __init__(self, child: Child):
        self._child = child
        self._bar: Bar | None = None

    def __call__(self) -> None:
        """Shows what is new."""

    def close(self) -> None:
        if self._bar:
            self._bar.close()


def _watched(words: list[str], watch_of: type[_Watch], progress: bool | None) -> tuple[Child, int]:
    """The program after it has ended, and its exit code."""
    child = Child(words)
    with contextlib.closing(watch_of(child)) as watch:
        return child, child.wait(watch if is_shown(progress) else lambda: None)


class _RunWatch(_Watch):
    """Shows how far a run is, from its progress.jsonl."""

    _folder = ""

    def __call__(self) -> None:
        if self._bar is None:
            told = self._child.told()
            found = STARTED.search(told) or RESUMED.search(told)
            if not found:
                return
            self._folder, done = found["folder"], int(found.groupdict().get("done") or 0)
            self._bar = Bar(os.path.basename(self._folder), "step", int(found["steps"]), done)
        now = last_step(os.path.join(self._folder, "progress.jsonl"))
        if now:
            self._bar.show(now["step"], **({} if now["loss"] is None else {"loss": now["loss"]}))


def sweep(
    experiment: Experiment,
    *,
    jobs: int = 1,
    output: Path | None = None,
    progress: bool | None = None,
    data: Path | None = None,
    **overrides: typing.Any,
) -> typing.Any:
    """Trains all runs that `seeds` and `sweep` describe, `jobs` at a time, as `stiefel sweep run` does.

    Returns a row for each run, as stiefel.runs does: a pandas.DataFrame, or without pandas a list of dictionaries. Runs
    that failed or diverged cause a warning. `output`: folder of the sweep, by default sweeps/NAME. An interrupt stops
    and saves the runs, and raises KeyboardInterrupt; the same call continues them.

    Raises Error if the experiment is wrong, or no run was made.
    """
    options = ["-j", str(jobs), *([] if output is None else ["-o", os.fspath(output)])]
    options += [] if data is None else ["--data", os.fspath(data)]
    with file_of(experiment) as file:
        child, code = _watched(["sweep", "run", *options, file, *words_of(overrides)], _SweepWatch, progress)
        planned = SWEEP.search(child.told())
        if not planned:
            raise child.error(code)
    pass_warnings(child.told())
    from stiefel.results import rows

    folder = planned[1]
    for entry in json.loads(call(["sweep", "status", folder, "--json"])):
        if entry["state"] != "finished":
            warn(f"{entry['folder']} {entry['state']}: {entry['message']}")
    found = rows(os.path.join(folder, "runs"))
    if not found:
        raise child.error(code)
    return _table(found)


class _SweepWatch(_Watch):
    """Shows how many runs of a sweep have ended."""

    def __call__(self) -> None:
        told = self._child.told()
        planned = SWEEP.search(told)
        if not planned:
            return
        before = int(planned[3] or 0)
        if self._bar is None:
            self._bar = Bar(os.path.basename(planned[1]), "run", int(planned[2]), before)
        self._bar.show(before + len(ENDED.findall(told)))


def compare(
    folders: Path | Iterable[Path],
    by: str | Iterable[str] | None = None,
    *,
    metric: str | None = None,
    reach: float | None = None,
    where: str | Iterable[str] = (),
    sort: str | None = None,
) -> typing.Any:
    """The table of `stiefel compare`: a row for all runs that differ only in the seed, with statistics of a metric.

    `by`: keys that define the rows, by default those in which the runs differ. `metric`, `reach`, `where` and `sort`
    are the options of the command. A row has these keys; mean, std, median, q25, q75, min, max and best of the metric
    over the n finished runs; the number of parameters; and the paths of all its runs. With `reach`, reached, steps and
    seconds say how many runs reached this value, and their means of what that took.

    Returns a pandas.DataFrame, or without pandas a list of dictionaries. What a row does not have is None or NaN.
    Raises Error if the folders have no run. Runs that cannot be read cause a warning.
    """
    listed = [folders] if isinstance(folders, (str, os.PathLike)) else list(folders)
    words = ["compare", "--json", *(os.fspath(folder) for folder in listed)]
    if by is not None:
        words += ["--by", by if isinstance(by, str) else ",".join(by)]
    for name, value in (("--metric", metric), ("--reach", reach), ("--sort", sort)):
        words += [] if value is None else [name, str(value)]
    for condition in [where] if isinstance(where, str) else where:
        words += ["--where", condition]
    printed = json.loads(call(words, allowed=(UNREADABLE,)))
    for entry in printed["unreadable"]:
        warn(f"{entry['path']}: {entry['reason']}; it is left out")
    return _table([_row(group) for group in printed["groups"]])


def _row(group: dict[str, typing.Any]) -> dict[str, typing.Any]:
    row = {key: _number(text) for key, text in group["keys"].items()}
    row.update(group["value"], best=group["best"], parameters=group["parameters"])
    if "steps" in group:
        row.update(reached=group["steps"]["n"], steps=group["steps"]["mean"], seconds=group["seconds"]["mean"])
    return {**row, "runs": [one["path"] for one in group["runs"]]}


def _number(text: str) -> typing.Any:
    """The value of a key, which the program prints as text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _table(found: list[dict[str, typing.Any]]) -> typing.Any:
    from stiefel.results import frame

    try:
        return frame(found)
    except ImportError:
        return found

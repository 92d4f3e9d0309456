"""Result files as xarray and pandas objects. Everything is read at once, so no file stays open during a run."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import time
import typing
from collections.abc import Callable, Iterable, Iterator

import h5py
import numpy as np
import yaml

from stiefel.process import Path, warn

if typing.TYPE_CHECKING:
    import pandas
    import xarray

Folders = typing.Union[Path, Iterable[Path]]
Row = typing.TypeVar("Row")


def open_run(path: Path, group: str | None = None) -> typing.Any:
    """A run, by its results.h5, its folder, or a folder above that has no other run.

    With `group`, such as "epochs" or "spectrum/recurrent", an xarray.Dataset. Without it, all groups: an
    xarray.DataTree, or before xarray 2024.10 a dictionary of Datasets with the same keys; "/" is the root, whose
    attributes describe the run.
    """
    import xarray

    path = results_file(path)
    with opened(path) as file:
        names = _groups(file)
        if group is None:
            found = {"/": _dataset(file)} | {name: _dataset(file[name]) for name in names}
        elif isinstance(file.get(group), h5py.Group):
            return _dataset(file[group])
    if group is not None:
        raise KeyError(f"{path} has no group {group}; it has {', '.join(names)}")
    tree = getattr(xarray, "DataTree", None)
    return tree.from_dict(found) if tree else found


def results_file(path: Path) -> pathlib.Path:
    """The result file of a run, by this file, the folder of the run, or a folder above that has no other run."""
    folder = pathlib.Path(path)
    if not folder.is_dir():
        return folder
    own = folder / "results.h5"
    below = [] if own.exists() else sorted(folder.rglob("results.h5"))
    if len(below) > 1:
        named = ", ".join(str(path.parent) for path in below[:10]) + (
            f" and {len(below) - 10} more" if below[10:] else ""
        )
        raise ValueError(f"{folder} has {len(below)} runs; name the folder of one: {named}")
    return below[0] if below else own


def load(folders: Folders, group: str = "epochs", along: str | None = None) -> xarray.Dataset:
    """One group of every run at or below the folders as a Dataset with the dimension `run`.

    Rows of different runs are aligned by the dimension of the group, or by the variable `along`: "step" where an epoch
    of "epochs" has more steps in some runs than in others, or repeats after a resume.

    Runs without the group are left out; shorter runs are filled with NaN. Along `run` there are coordinates: path,
    name, id, state, seed, and every key of the configuration in which the runs differ; one that the group has as a
    variable, such as the name of "provenance/plugins", is run_name.
    """
    import xarray

    groups: dict[str, None] = {}

    def read(path: pathlib.Path, file: h5py.File) -> tuple[dict[str, typing.Any], xarray.Dataset | None]:
        groups.update(dict.fromkeys(_groups(file)))
        table = _dataset(file[group]) if isinstance(file.get(group), h5py.Group) else None
        return identity(path, file) | configuration(file), table

    listed = _listed(folders)
    rows = [row for row in _each(listed, read) if row[1] is not None]
    if not rows:
        there = f"; there are {', '.join(groups)}" if groups else ""
        raise ValueError(f"no run in {', '.join(map(str, listed))} has the group {group}{there}")
    found, tables = map(list, zip(*rows))
    if along is not None:
        tables = [_along(table, along) for table in tables]
    _refuse_repeated(tables, [run["path"] for run in found])
    data = xarray.concat(
        _with_all_variables(tables),
        "run",
        data_vars="all",
        coords="minimal",
        compat="override",
        join="outer",
        combine_attrs="drop_conflicts",
    )
    always = ["path", "name", "id", "state", "seed"]
    keys = sorted({key for run in found for key in run} - set(always))
    differing = [key for key in keys if len({str(run.get(key)) for run in found}) > 1]
    own = {key: f"run_{key}" if key in data.variables else key for key in always + differing}
    return data.assign_coords(
        {own[key]: ("run", _coordinate([run.get(key) for run in found])) for key in always + differing}
    )


def _along(table: xarray.Dataset, name: str) -> xarray.Dataset:
    """The table with the column `name` as its dimension."""
    if name not in table or table[name].ndim != 1:
        raise ValueError(f"there is no column {name}; there are {', '.join(map(str, table.variables))}")
    return table.swap_dims({table[name].dims[0]: name}).reset_coords()


def _refuse_repeated(tables: list[xarray.Dataset], paths: list[str]) -> None:
    """Different tables can only be aligned by values that each of them has once."""
    for table, path in zip(tables, paths):
        for name, index in table.indexes.items():
            if not index.is_unique and not all(index.equals(other.indexes.get(name)) for other in tables):
                advice = '; align the runs with along="step"' if "step" in table.data_vars else ""
                raise ValueError(f"{path} has the {name} {index[index.duplicated()][0]} twice{advice}")


def _with_all_variables(tables: list[xarray.Dataset]) -> list[xarray.Dataset]:
    """Older versions of xarray concatenate only tables of the same variables: others are added as NaN or empty text."""
    import xarray

    known = {name: values for table in reversed(tables) for name, values in table.data_vars.items()}
    missing = lambda values: "" if values.dtype.kind in "OSU" else np.nan
    return [
        table.assign(
            {
                name: xarray.full_like(values, missing(values), None if values.dtype.kind in "OSUfc" else float)
                for name, values in known.items()
                if name not in table
            }
        )
        for table in tables
    ]


def runs(folders: Folders) -> pandas.DataFrame:
    """A row for each run at or below the folders: its configuration and what it came to.

    Columns are path, name, id, state, created, step and parameters; the keys of the configuration, such as
    optimizer.rate, with the latest value where a resume changed one that affects results; best_step and the validation
    metrics of that step; the final metrics of the test, with the network of the best step; the outcome.* of the task;
    and cpu_seconds. What a run does not have is NaN. Links to folders are not followed.
    """
    listed = _listed(folders)
    found = list(_each(listed, _row))
    if not found:
        raise ValueError(f"no run in {', '.join(map(str, listed))}")
    return frame(found)


def rows(folders: Folders) -> list[dict[str, typing.Any]]:
    """The rows of runs() as dictionaries, without pandas."""
    return list(_each(_listed(folders), _row))


def row(path: Path) -> dict[str, typing.Any]:
    """The row of a run, by its results.h5."""
    with opened(pathlib.Path(path)) as file:
        return _row(pathlib.Path(path), file)


def _row(path: pathlib.Path, file: h5py.File) -> dict[str, typing.Any]:
    return identity(path, file) | _progress(file) | configuration(file) | _metrics(file)


def frame(found: list[dict[str, typing.Any]]) -> pandas.DataFrame:
    """Rows as a table, whose lists are tuples, so that it can be grouped by them."""
    import pandas

    hashable = lambda value: tuple(value) if isinstance(value, list) else value
    return pandas.DataFrame([{key: hashable(value) for key, value in row.items()} for row in found])


def _each(folders: list[pathlib.Path], read: Callable[[pathlib.Path, h5py.File], Row]) -> Iterator[Row]:
    """What `read` returns for each run; a run that cannot be read causes a warning."""
    seen: set[pathlib.Path] = set()
    for folder in folders:
        if not folder.exists():
            raise FileNotFoundError(f"there is no {folder}")
        for path in sorted(folder.rglob("results.h5")) if folder.is_dir() else [folder]:
            if path.resolve() in seen:
                continue
            seen.add(path.resolve())
            try:
                with opened(path) as file:
                    row = read(path, file)
            except ValueError as error:
                warn(f"{error}; it is left out")
                continue
            yield row


def _listed(folders: Folders) -> list[pathlib.Path]:
    return list(map(pathlib.Path, [folders] if isinstance(folders, (str, os.PathLike)) else folders))


@contextlib.contextmanager
def opened(path: pathlib.Path) -> Iterator[h5py.File]:
    """A result file; whatever fails while it is read is a ValueError with its path.

    Raises FileNotFoundError if there is none.
    """
    if not path.exists():
        raise FileNotFoundError(f"there is no {path}: the run has not published results yet, or is somewhere else")
    try:
        with h5py.File(path, "r") as file:
            version = file.attrs.get("format_version", 0)
            ours = file.attrs.get("Conventions") == "stiefel-run-1"
            known = ours and version in (1, 2)
            if known:
                yield file
    except Exception as error:  # of almost any type if the file is damaged
        raise ValueError(f"{path} cannot be read: {error}") from error
    if not ours:
        raise ValueError(f"{path} is not a result file of stiefel")
    if not known:
        raise ValueError(f"{path} has format version {version}, but this package reads 1 and 2: update it")


def _groups(file: h5py.File) -> list[str]:
    names: list[str] = []
    file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Group) else None)
    return names


def _dataset(group: h5py.Group) -> xarray.Dataset:
    import xarray

    variables = {}
    for name, item in group.items():
        if not isinstance(item, h5py.Dataset):
            continue
        scale = h5py.h5ds.is_scale(item.id)
        axes = [name if scale else item.dims[i][0].name.rsplit("/")[-1] for i in range(item.ndim)]
        values = item.asstr()[()] if h5py.check_string_dtype(item.dtype) else item[()]
        variables[name] = (axes, values, {key: item.attrs[key] for key in item.attrs if key.islower()})
    attributes = {key: plain(group.attrs[key]) for key in group.attrs}
    return xarray.decode_cf(xarray.Dataset(variables, attrs=attributes), decode_timedelta=False).load()


def plain(value: typing.Any) -> typing.Any:
    """The number of Python that a scalar of NumPy is; anything else stays as it is."""
    return value.item() if isinstance(value, np.generic) else value


_Loader: typing.Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # that of libyaml is faster


class _Yaml(_Loader):
    """Numbers such as 1e-3 are numbers, as in YAML 1.2."""


_Yaml.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?$"), list("-+.0123456789")
)


def identity(path: pathlib.Path, file: h5py.File) -> dict[str, typing.Any]:
    """The path, name, id and state of the run with the result file `path`.

    The state is running, finished, diverged, failed, or stopped, also of a run that was killed.
    """
    found = {key: plain(file.attrs[name]) for key, name in (("name", "title"), ("id", "run_id"), ("state", "state"))}
    in_folder = (path.parent / "config.yaml").exists()
    killed = found["state"] == "running" and in_folder and not _is_alive(path.parent / "lock")
    if killed or found["state"] == "preempted":
        found["state"] = "stopped"
    return {"path": str(path.parent)} | found


def _is_alive(lock: pathlib.Path) -> bool:
    """Whether a process has touched its lock, as it does every ten seconds, in the last minute."""
    try:
        with open(lock, "rb") as file:  # opened, its time is that of the file server
            return time.time() - os.fstat(file.fileno()).st_mtime <= 60
    except OSError:
        return False


def configuration(file: h5py.File) -> dict[str, typing.Any]:
    """The keys of a run's configuration, such as optimizer.rate, with the values that a resume gave them."""
    keys = dict(_leaves(yaml.load(file["config/yaml"].asstr()[()], _Yaml)))
    changes = file.get("provenance/segments/changes")
    for text in changes.asstr()[()] if changes is not None else ():
        for key, value in json.loads(text or "{}").items():
            if key not in keys and ("." not in key or ":" in key):
                continue  # a plugin, a data file or the build
            if value is None:
                keys.pop(key, None)
            else:
                keys[key] = _changed(value, keys.get(key))
    keys.pop("name", None)  # it is the title
    return keys


def _changed(text: str, before: typing.Any) -> typing.Any:
    """The value that a resume gave to a key, which is recorded as text without quotes."""
    if isinstance(before, str) or not text:
        return text
    texts = isinstance(before, list) and any(isinstance(item, str) for item in before)
    try:
        return yaml.load(text, yaml.BaseLoader if texts else _Yaml)
    except yaml.YAMLError:
        return text


def _leaves(value: typing.Any, path: str = "") -> Iterator[tuple[str, typing.Any]]:
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _leaves(below, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        for number, below in enumerate(value):
            yield from _leaves(below, f"{path}.{number}")
    else:
        yield path, value


def _progress(file: h5py.File) -> dict[str, typing.Any]:
    names = {"created": "created", "step": "committed_step", "parameters": "parameters"}
    return {key: plain(file.attrs[name]) for key, name in names.items() if name in file.attrs}


def _numbers(table: h5py.Group, row: int) -> Iterator[tuple[str, typing.Any]]:
    """The numbers in a row of a table, those of valid_loss_by_length as valid_loss_at_64, valid_loss_at_256, …"""
    for name, item in table.items():
        if "CLASS" in item.attrs and name != "step":  # the coordinates of an axis
            continue
        if item.ndim == 1:
            yield name, plain(item[row])
        elif name.endswith("_by_length"):
            for length, value in zip(table["length"][()], item[row]):
                yield f"{name[:-len('_by_length')]}_at_{length:g}", plain(value)


def _metrics(file: h5py.File) -> dict[str, typing.Any]:
    """All metrics at the step of the best network, NaN without one, where `stiefel compare` shows the last value."""
    found = dict.fromkeys(("best_step", "valid_loss", "test_loss"), np.nan)
    status = file["status"].attrs if "status" in file else {}
    best = plain(status.get("best_step", -1))
    if best >= 0:
        found["best_step"] = best
    if best >= 0 and "epochs" in file:
        rows = np.flatnonzero(file["epochs/step"][()] == best)
        if rows.size:
            found |= {name: value for name, value in _numbers(file["epochs"], rows[-1]) if name.startswith("valid_")}
    for group, prefix in (("final", ""), ("outcome", "outcome.")):
        if group in file and file[group]["step"].size:
            found |= {prefix + name: value for name, value in _numbers(file[group], -1) if name != "step"}
    if "cpu_seconds" in status:
        found["cpu_seconds"] = plain(status["cpu_seconds"])
    return found


def _coordinate(values: list[typing.Any]) -> list[typing.Any]:
    """Numbers stay numbers, so that they can be axes; a run without one has NaN, and one without a text ""."""
    is_number = lambda value: isinstance(value, (int, float)) and not isinstance(value, bool)
    if any(map(is_number, values)) and all(value is None or is_number(value) for value in values):
        return [np.nan if value is None else value for value in values]
    text = lambda value: "" if value is None else value if isinstance(value, str) else str(value)
    return [value if is_number(value) else text(value) for value in values]

"""Experiments as the program reads them: files, names, dictionaries, and keys that replace those of a file."""

from __future__ import annotations

import contextlib
import json
import math
import os
import pathlib
import re
import sys
import tempfile
import typing
from collections.abc import Iterator, Mapping

from stiefel.process import Error

Experiment = typing.Union[str, "os.PathLike[str]", Mapping[str, typing.Any]]
"""A file, a name such as "quickstart" or "methods/lru" of an experiment that comes with stiefel, or a dictionary."""


@contextlib.contextmanager
def file_of(experiment: Experiment) -> Iterator[str]:
    """The path of a file with the experiment. Errors in a dictionary name no file."""
    if isinstance(experiment, Mapping):
        values = plain(experiment)
        for place in (values, values.get("sweep")):
            if isinstance(place, dict) and "extends" in place:
                place["extends"] = _found(place["extends"])
        _find_scripts(values)
        if isinstance(values.get("plugins"), list):
            values["plugins"] = [os.path.abspath(path) if isinstance(path, str) else path for path in values["plugins"]]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "experiment.yaml")
            pathlib.Path(path).write_text(json.dumps(values, indent=2, ensure_ascii=False), encoding="utf-8")
            try:
                yield path
            except Error as error:
                message = re.sub(rf"{re.escape(path)}:(\d+:\d+:)? ", "", error.message).replace(path, "the dictionary")
                raise Error(message, error.exit_code, error.log.replace(path, "the dictionary")) from None
    elif isinstance(experiment, (str, os.PathLike)):
        yield os.fspath(experiment)
    else:
        raise Error(f"an experiment is a file, a name or a dictionary, not {_article(experiment)}")


def _found(extends: typing.Any) -> typing.Any:
    """Files under `extends`, as seen from the current folder; other entries are names of experiments that come with stiefel."""
    if isinstance(extends, list):
        return [_found(entry) for entry in extends]
    is_file = isinstance(extends, str) and (extends.endswith((".yaml", ".yml")) or os.path.isfile(extends))
    return os.path.abspath(extends) if is_file else extends


def _find_scripts(value: typing.Any) -> None:
    """Makes the paths of Python files absolute, which would start in the folder of the experiment's file."""
    if isinstance(value, dict):
        if value.get("plugin") == "python" and isinstance(value.get("file"), str):
            value["file"] = os.path.abspath(value["file"])
        value = list(value.values())
    for below in value if isinstance(value, list) else []:
        _find_scripts(below)


def words_of(overrides: Mapping[str, typing.Any]) -> list[str]:
    """key=value, as on the command line, where text stands as it is unless it would be read as YAML."""
    words = []
    for key, value in overrides.items():
        value = plain(value, key)
        bare = isinstance(value, str) and re.fullmatch(r"[^\s{\[\"'][^\n]*", value) and value != "null"
        words.append(f"{key}={value if bare else json.dumps(value, ensure_ascii=False)}")
    return words


def plain(value: typing.Any, path: str = "") -> typing.Any:
    """The value without types of NumPy and paths. Raises Error with the path of a key whose value YAML cannot hold."""
    where = path or "the experiment"
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    numpy: typing.Any = sys.modules.get("numpy")
    if numpy and isinstance(value, numpy.ndarray):
        if value.ndim > 1:
            shape = " × ".join(map(str, value.shape))
            raise Error(f"{where} is an array of {shape}; save it with numpy.save, and give the path of the file")
        return plain(list(value) if value.ndim else value[()], path)
    if numpy and isinstance(value, numpy.generic):
        if isinstance(value, (numpy.bool_, numpy.integer)):
            return value.item()
        if isinstance(value, numpy.floating):
            value = float(str(value))  # 0.1 for numpy.float32(0.1)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Error(f"{where} is {value}, but must be a finite number")
        return value
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise Error(f"{where} has the key {key!r}, but keys are text")
        return {str(key): plain(below, f"{path}.{key}" if path else key) for key, below in value.items()}
    if isinstance(value, (list, tuple, range)):
        return [plain(below, f"{path}.{number}") for number, below in enumerate(value)]
    advice = "; write it to a CSV file, and give the path of the file" if hasattr(value, "to_csv") else ""
    raise Error(f"{where} is {_article(value)}, which YAML cannot hold{advice}")


def _article(value: typing.Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"

"""Networks that `stiefel export --weights` wrote, as NumPy arrays; docs/DEPLOY.md describes the file."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import pathlib
import typing

import numpy as np

TYPES: dict[str, np.dtype[typing.Any]] = {"F32": np.dtype("<f4"), "F64": np.dtype("<f8")}
FORMAT_VERSION = 1


@dataclasses.dataclass(frozen=True)
class Weights:
    """An exported network: matrices by name, and texts that describe it."""

    tensors: dict[str, np.ndarray]
    metadata: dict[str, str]

    def text(self, key: str) -> typing.Any:
        """The value of an entry of the metadata that is JSON, such as config_json; None where there is none."""
        return json.loads(self.metadata[key]) if key in self.metadata else None

    @property
    def config(self) -> dict[str, typing.Any]:
        """The resolved experiment."""
        return self.text("config_json")


def read_weights(path: str | os.PathLike) -> Weights:
    """Reads and checks a file; a ValueError says what is wrong with it."""
    path = pathlib.Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder; `stiefel export {path} --weights FILE` writes the file that is read")
    data = path.read_bytes()
    try:
        tensors, metadata = _parse(data)
        _check(metadata)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return Weights(tensors, metadata)


def _parse(data: bytes) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > len(data) - 8:
        raise ValueError("this is not a safetensors file, or it is truncated: its header would end after the file")
    try:
        header = json.loads(data[8 : 8 + length].decode(), object_pairs_hook=_unique)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise ValueError("this is not a safetensors file: its header is not JSON") from None
    if not isinstance(header, dict):
        raise ValueError("this is not a safetensors file: its header is not a JSON object")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError("its __metadata__ must be texts")
    body, tensors, end = memoryview(data)[8 + length :], {}, 0
    for name, entry in sorted(header.items(), key=_begin):
        kind, shape, begin = _described(name, entry)
        size = math.prod(shape) * kind.itemsize
        if begin != end or entry["data_offsets"][1] != begin + size:
            raise ValueError(f"the tensor {name} has the wrong data_offsets {entry['data_offsets']}")
        end = begin + size
        if end > len(body):
            raise ValueError(f"the file is truncated: the tensor {name} ends after it")
        tensors[name] = np.frombuffer(body[begin:end], kind).reshape(shape)
    if len({values.dtype for values in tensors.values()}) > 1:
        raise ValueError("its tensors have different dtypes")
    if end != len(body):
        raise ValueError(f"{len(body) - end} bytes after the last tensor belong to none")
    return tensors, metadata


def _unique(pairs: list[tuple[str, typing.Any]]) -> dict[str, typing.Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("its header has a name twice")
    return found


def _begin(item: tuple[str, typing.Any]) -> tuple[int, int]:
    """Tensors in the order of their data; those without numbers first."""
    offsets = item[1].get("data_offsets") if isinstance(item[1], dict) else None
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(type(offset) is int for offset in offsets):
        raise ValueError(f"the tensor {item[0]} has no data_offsets")
    return offsets[0], offsets[1]


def _described(name: str, entry: dict[str, typing.Any]) -> tuple[np.dtype[typing.Any], list[int], int]:
    kind, shape = entry.get("dtype"), entry.get("shape")
    if not isinstance(kind, str) or kind not in TYPES:
        raise ValueError(f"the tensor {name} has the dtype {kind}; networks have F32 or F64")
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError(f"the tensor {name} has no valid shape")
    return TYPES[kind], shape, entry["data_offsets"][0]


def _check(metadata: dict[str, str]) -> None:
    if metadata.get("format") != "stiefel-network":
        raise ValueError("this is not a network that `stiefel export --weights` wrote")
    version = metadata.get("format_version", "")
    if version != str(FORMAT_VERSION):
        raise ValueError(f"it has format version {version}, but this package reads {FORMAT_VERSION}: update it")
    for key in ("config_json", "alphabet", "classes", "target_names", "features", "normalisation"):
        try:
            json.loads(metadata.get(key, "null"))
        except (json.JSONDecodeError, RecursionError):
            raise ValueError(f"the entry {key} of its __metadata__ is not JSON") from None
    if not isinstance(json.loads(metadata.get("config_json", "null")), dict):
        raise ValueError("its __metadata__ has no config_json")

"""One group of the result files of many runs as an xarray Dataset; copy this file to where you work.

    from runs import load
    epochs = load("sweeps/rates", "epochs")      # dimensions run and epoch
    print(epochs["valid_loss"].min("epoch").to_series())
    print(epochs["valid_loss"].groupby("optimizer.rate").mean())

Groups are those of the result file: steps, epochs, final, gradient, spectrum/recurrent, orthogonality/recurrent. Runs of unequal length are
filled with NaN. Along `run` there are coordinates: path, name, id, state, seed, and every key of the configuration in which the runs differ.
"""
import pathlib

import h5py
import xarray
import yaml


def load(folders, group="epochs"):
    """Every results.h5 at or below the folder or folders; runs without the group are left out."""
    folders = [folders] if isinstance(folders, (str, pathlib.Path)) else folders
    paths = sorted(path for folder in folders for path in pathlib.Path(folder).rglob("results.h5"))
    found, tables = [], []
    for path in paths:
        with h5py.File(path) as file:
            if group not in file:
                continue
            found.append({"path": str(path.parent), "name": file.attrs["title"], "id": file.attrs["run_id"], "state": file.attrs["state"],
                          **dict(_leaves(yaml.safe_load(file["config/yaml"].asstr()[()])))})
        with xarray.open_dataset(path, group=group, engine="h5netcdf") as table:
            tables.append(table.load())
    if not tables:
        raise ValueError(f"no run below {', '.join(map(str, folders))} has the group {group}")
    data = xarray.concat(tables, "run", join="outer", combine_attrs="drop")
    always = ["path", "name", "id", "state", "seed"]
    keys = sorted({key for run in found for key in run} - set(always))
    differing = [key for key in keys if len({str(run.get(key)) for run in found}) > 1]
    return data.assign_coords({key: ("run", [_plain(run.get(key)) for run in found]) for key in always + differing})


def _leaves(value, path=""):
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _leaves(below, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        for number, below in enumerate(value):
            yield from _leaves(below, f"{path}.{number}")
    else:
        yield path, value


def _plain(value):
    """Numbers stay numbers, so that they can be axes; 1e-3 is a text to YAML 1.1."""
    if isinstance(value, (bool, list)) or value is None:
        return str(value)
    try:
        return float(value) if not isinstance(value, int) else value
    except ValueError:
        return value

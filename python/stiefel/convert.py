"""python -m stiefel.convert FILE TARGET: turns a file of another format into one that the task `sequence_csv` reads.

A table (.parquet, .feather, .xlsx) becomes a CSV file, .csv or .csv.gz. The arrays of a MATLAB file (.mat)
become an .npz file.
"""

from __future__ import annotations

import argparse
import importlib
import pathlib
import sys
import typing

import h5py
import numpy as np

TABLES = {
    ".parquet": ("read_parquet", "pyarrow"),
    ".feather": ("read_feather", "pyarrow"),
    ".xlsx": ("read_excel", "openpyxl"),
}
"""By the ending: what reads it in pandas, and the package that pandas needs for it."""


def convert_table(source: pathlib.Path, target: pathlib.Path) -> str:
    """Missing values become empty fields, booleans 0 and 1. An index with a name becomes a column."""
    reader, package = TABLES[source.suffix.lower()]
    try:
        import pandas

        importlib.import_module(package)
        table = getattr(pandas, reader)(source)
    except ImportError as error:
        raise ImportError(f"{source.suffix} files need pandas and {package}: pip install pandas {package}") from error
    if any(table.index.names):
        table = table.reset_index()
    for name in table:
        if pandas.api.types.is_bool_dtype(table[name]):
            table[name] = table[name].astype("Int8")
        elif any(isinstance(value, (list, dict, np.ndarray)) for value in table[name].head()):
            raise ValueError(f"{source}: the column {name} holds lists, but a field of a CSV file is a number or a word")
    table.to_csv(target, index=False)
    return f"{len(table)} rows of {', '.join(map(str, table))}"


def arrays_of(source: pathlib.Path) -> dict[str, np.ndarray]:
    """The arrays of numbers of a MATLAB file by their names. Vectors have one dimension."""
    found: dict[str, np.ndarray] = {}
    if not h5py.is_hdf5(source):
        try:
            import scipy.io
        except ImportError as error:
            raise ImportError(".mat files before version 7.3 need SciPy: pip install scipy") from error
        found = {name: value for name, value in scipy.io.loadmat(source).items() if isinstance(value, np.ndarray)}
    else:

        def visit(name: str, item: typing.Any) -> None:
            if isinstance(item, h5py.Dataset) and item.dtype.kind in "biuf":
                found[name] = item[()].T  # MATLAB has the first index fastest

        with h5py.File(source, "r") as file:
            file.visititems(visit)
    found = {name: array for name, array in found.items() if array.dtype.kind in "biuf"}
    if not found:
        raise ValueError(f"{source} has no array of numbers")
    return {name: array.ravel() if array.ndim == 2 and 1 in array.shape else array for name, array in found.items()}


def convert(source: str, target: str) -> str:
    """Writes the target and returns what it holds."""
    old, new = pathlib.Path(source), pathlib.Path(target)
    table = old.suffix.lower() in TABLES
    if not table and old.suffix.lower() != ".mat":
        raise ValueError(f"{source} must end in one of {', '.join([*TABLES, '.mat'])}")
    if not new.name.endswith((".csv", ".csv.gz") if table else ".npz"):
        raise ValueError(f"{source} becomes {'a CSV file' if table else 'an .npz file'}, so the name of the new file "
                         f"must end in {'.csv or .csv.gz' if table else '.npz'}, got {target}")
    if not old.is_file():
        raise FileNotFoundError(f"there is no file {source}")
    if table:
        return convert_table(old, new)
    arrays = arrays_of(old)
    np.savez(new, **arrays)  # type: ignore[arg-type]
    return ", ".join(f"{name} ({' × '.join(map(str, array.shape))})" for name, array in arrays.items())


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m stiefel.convert", description="Turn a table into a CSV file, or named arrays into an .npz file."
    )
    parser.add_argument("file", help=f"{', '.join(TABLES)}: a table; .mat: named arrays")
    parser.add_argument("target", help="the new file: .csv or .csv.gz for a table, .npz for arrays")
    words = parser.parse_args()
    try:
        print(f"{words.target}: {convert(words.file, words.target)}")
    except (ImportError, OSError, ValueError) as error:
        sys.exit(f"stiefel.convert: {error}")


if __name__ == "__main__":
    main()

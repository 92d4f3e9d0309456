"""Training recurrent networks with stiefel, and reading their results.

stiefel.run("quickstart", seed=2)             # trains a network: stiefel.Run
stiefel.sweep("sweep.yaml", jobs=2)           # trains many: a table with a row for each run
stiefel.compare("runs/adding")                # the table of `stiefel compare`
stiefel.open_run("runs/adding/2f7ba93647")    # one run, as xarray objects
stiefel.load("runs/adding", "epochs")         # one group of many runs, as one xarray.Dataset
stiefel.runs("runs/adding")                   # configurations and final metrics, as a pandas.DataFrame
stiefel.read_weights("model.safetensors")     # an exported network, as NumPy arrays
stiefel.plot.learning_curves("runs/adding")   # import stiefel.plot: figures by matplotlib
stiefel.torch.load("model.safetensors")       # import stiefel.torch: an exported network, as a torch.nn.Module
"""

from __future__ import annotations

TYPE_CHECKING = False  # the module typing takes long to import
if TYPE_CHECKING:
    import typing

    from stiefel.process import Error as Error
    from stiefel.results import load as load
    from stiefel.results import open_run as open_run
    from stiefel.results import runs as runs
    from stiefel.roles import Map as Map
    from stiefel.roles import Optimizer as Optimizer
    from stiefel.roles import Task as Task
    from stiefel.roles import torch_optimizer as torch_optimizer
    from stiefel.running import compare as compare
    from stiefel.running import run as run
    from stiefel.running import sweep as sweep
    from stiefel.trained import Run as Run
    from stiefel.weights import Weights as Weights
    from stiefel.weights import read_weights as read_weights

_HOME = {
    "Error": "process",
    "Map": "roles",
    "Optimizer": "roles",
    "Run": "trained",
    "Task": "roles",
    "Weights": "weights",
    "compare": "running",
    "load": "results",
    "open_run": "results",
    "read_weights": "weights",
    "run": "running",
    "runs": "results",
    "sweep": "running",
    "torch_optimizer": "roles",
}

__all__ = [
    "Error", "Map", "Optimizer", "Run", "Task", "Weights", "compare", "load", "open_run", "read_weights", "run", "runs",
    "sweep", "torch_optimizer",
]  # fmt: skip
__version__ = "0.2.0"


def __getattr__(name: str) -> typing.Any:
    """Imports what is used, when it is used: NumPy and h5py take longer to import than a command to start."""
    if name not in _HOME:
        raise AttributeError(f"module 'stiefel' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f"stiefel.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

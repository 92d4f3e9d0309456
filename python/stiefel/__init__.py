"""Results and trained networks of stiefel in Python.

stiefel.open_run("runs/adding/2f7ba93647")    # one run, as xarray objects
stiefel.load("runs/adding", "epochs")         # one group of many runs, as one xarray.Dataset
stiefel.runs("runs/adding")                   # configurations and final metrics, as a pandas.DataFrame
stiefel.read_weights("model.safetensors")     # an exported network, as NumPy arrays
stiefel.plot.learning_curves("runs/adding")   # import stiefel.plot: figures by matplotlib
stiefel.torch.load("model.safetensors")       # import stiefel.torch: an exported network, as a torch.nn.Module
"""

from stiefel.results import load, open_run, runs
from stiefel.weights import Weights, read_weights

__all__ = ["Weights", "load", "open_run", "read_weights", "runs"]
__version__ = "0.2.0"

"""Figures of runs by matplotlib. Each function draws into `ax`, or into a new figure, and returns the axes."""

from __future__ import annotations

import typing
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm

from stiefel.results import Folders, Path, load, open_run

if typing.TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes


def learning_curves(
    folders: Folders, metric: str = "valid_loss", by: str | Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """A column of `epochs` over the optimizer steps.

    A curve for each run, or, with `by`, for each value of a key of the configuration, such as "optimizer.rate", or for
    each combination of the values of several keys: the median of its runs, up to where half of them have ended, within
    a band from the lower to the upper quartile. Runs without a key form their own group. Runs that have not finished count as far as
    they got: to leave them out, give the paths of the others.
    """
    data = load(folders, "epochs", along="step")
    keys = [by] if isinstance(by, str) else list(by or ())
    if metric not in data:
        raise ValueError(f"there is no column {metric}; there are {', '.join(map(str, data.data_vars))}")
    if data[metric].isnull().all():
        reason = ", which needs train.select_on: best_test" if metric.startswith("test_") else ""
        raise ValueError(f"no run has values of {metric}{reason}")
    differing = [str(name) for name, values in data.coords.items() if values.dims == ("run",)]
    for key in keys:
        if key not in differing:
            raise ValueError(f"the runs do not differ in {key}; they differ in {', '.join(differing)}")
    own = ax is None
    ax = ax or plt.subplots(layout="constrained")[1]
    if not keys:
        for run in range(data.sizes["run"]):
            one = data[metric].isel(run=run).dropna("step")
            ax.plot(one["step"], one, label=str(one["id"].item()))
    else:
        for values, numbers in _by_values(data, keys):
            group = data[metric].isel(run=numbers).dropna("step", how="all")
            evaluated = [one.dropna("step")["step"] for one in group.transpose("run", ...)]
            ends = sorted(steps.max().item() for steps in evaluated if steps.size)
            if not ends:
                continue
            group = group.sel(step=slice(ends[(len(ends) - 1) // 2]))  # a median of those that are left is another one
            low, median, high = group.quantile([0.25, 0.5, 0.75], "run").transpose("quantile", ...)
            (line,) = ax.plot(median["step"], median, label=", ".join(map(_text, values)))
            several = group.count("run") > 1
            ax.fill_between(median["step"], low.where(several), high.where(several), alpha=0.2, color=line.get_color())
    ax.set_xlabel("optimizer step")
    ax.set_ylabel(_label(data[metric], metric))
    if own or len(ax.lines) <= 20:  # in the axes of the caller, a longer legend hides the curves
        place: dict[str, typing.Any] = {"loc": "upper left", "bbox_to_anchor": (1, 1)} if own else {}
        ax.legend(title=", ".join(keys) or "run", **place)
    return ax


def singular_values(run: Path, map: str = "recurrent", ax: Axes | None = None) -> Axes:
    """Every singular value of a recurrent map over the optimizer steps."""
    data = open_run(run, f"spectrum/{map}")
    ax = ax or plt.subplots()[1]
    ax.plot(data["snapshot"], data["singular_values"], color="C0", linewidth=0.6, alpha=0.6)
    ax.set_xlabel("optimizer step")
    ax.set_ylabel(f"singular values of {map}")
    return ax


def eigenvalues(run: Path, map: str = "recurrent", snapshot: int = -1, ax: Axes | None = None) -> Axes:
    """The eigenvalues of a recurrent map at a snapshot, by default the last one, and the unit circle."""
    data = open_run(run, f"spectrum/{map}").isel(snapshot=snapshot)
    if "eigenvalues" not in data:
        raise ValueError(f"the map {map} has no eigenvalues: it is not square")
    ax = ax or plt.subplots()[1]
    ax.add_patch(plt.Circle((0, 0), 1, fill=False, color="0.7"))
    ax.plot(data["eigenvalues"].real, data["eigenvalues"].imag, ".")
    ax.set_aspect("equal", "datalim")
    ax.set_xlabel("Re λ")
    ax.set_ylabel("Im λ")
    ax.set_title(f"{map}, step {data['snapshot'].item()}")
    return ax


def gradients(run: Path, quantity: str = "hidden_grad_norm", ax: Axes | None = None, layer: int | None = None) -> Axes:
    """A heat map of norms over time steps and snapshots: hidden_grad_norm, last_step_grad_norm or hidden_norm.

    A network of several layers has norms for each `layer`.
    """
    data = open_run(run, "gradient" if layer is None else f"gradient/layers_{layer}")
    if not data.data_vars:
        tree = open_run(run)
        layers = [name.rpartition("_")[2] for name in getattr(tree, "groups", tree) if "gradient/layers_" in name]
        raise ValueError(f"{run} has norms for each layer: choose one with layer={' or '.join(layers)}")
    data = data[quantity]
    ax = ax or plt.subplots()[1]
    values = np.ma.masked_where(~(data.values > 0), data.values)
    image = ax.pcolormesh(data["t"], data["snapshot"], values, norm=LogNorm(), shading="nearest")
    ax.set_xlabel("time step t")
    ax.set_ylabel("optimizer step")
    ax.figure.colorbar(image, ax=ax, label=quantity)
    return ax


def _by_values(data: xarray.Dataset, keys: list[str]) -> list[tuple[list[typing.Any], list[int]]]:
    """The runs with each combination of values, in the order of the values; None is that of a run without the key."""
    groups: dict[tuple[typing.Any, ...], list[int]] = {}
    for run, values in enumerate(zip(*(data[key].values.tolist() for key in keys))):
        missing = [value != value or value == "" for value in values]  # noqa: PLR0124 -- as load() fills a coordinate
        place = tuple((absent, 0 if absent else value) for absent, value in zip(missing, values))
        groups.setdefault(place, []).append(run)
    return [([None if absent else value for absent, value in place], groups[place]) for place in sorted(groups)]


def _text(value: typing.Any) -> str:
    if value is None:
        return "(none)"
    # A key that some runs lack makes integers floats.
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _label(values: xarray.DataArray, name: str) -> str:
    text, units = values.attrs.get("long_name", name), values.attrs.get("units", "1")
    return text if units == "1" else f"{text} ({units})"

"""Runs as stiefel stores them, written by h5py: only what the commands that look at runs read."""
import h5py
import numpy as np

TEXT = h5py.string_dtype("utf-8")
CONFIG = """name: {name}
seed: {seed}
threads: {threads}
task: {{plugin: {task}, length: 50}}
model:
  cell: {{plugin: elman, hidden: 32}}
  recurrent: {{plugin: {plugin}{options}}}
optimizer: {optimizer}
train: {{batch: 20, steps: {steps}, select: {select}, select_on: {select_on}}}
record: {{loss: 10}}
"""
METRICS = {"loss": "lower is better", "accuracy": "higher is better"}


def configuration(**given):
    settings = {"name": "made", "seed": 1, "threads": 1, "task": "adding", "plugin": "householder", "options": "", "rate": 0.01, "steps": 100, "select": "loss",
                "select_on": "validation", **given}
    settings.setdefault("optimizer", f"{{plugin: adam, rate: {settings['rate']}}}")
    if not settings["options"] and settings["plugin"] == "householder":
        settings["options"] = ", reflections: 8"
    return CONFIG.format(**settings)


def dataset(group, name, values, description=None):
    made = group.create_dataset(name, data=np.asarray(values))
    made.attrs["units"] = "1"
    made.attrs["long_name"] = name
    if description:
        made.attrs["description"] = description


def write_epochs(file, columns, better):
    """`columns`: of /epochs by their names, the number that selects first."""
    group = file.create_group("epochs", track_order=True)
    rows = len(next(iter(columns.values())))
    dataset(group, "epoch", np.arange(1.0, rows + 1))
    for name, values in columns.items():
        kind = name.split("_", 1)[-1]
        dataset(group, name, values, METRICS.get(kind) if better else None)


def write_run(folder, columns, state="finished", better=True, final=None, parameters=1000, **given):
    """A run in the folder."""
    folder.mkdir(parents=True)
    text = configuration(**given)
    (folder / "config.yaml").write_text(text, encoding="utf-8")
    with h5py.File(folder / "results.h5", "w", track_order=True) as file:
        file.attrs.update({"Conventions": "stiefel-run-1", "format_version": np.int32(1), "title": given.get("name", "made"),
                           "run_id": folder.name, "committed_step": np.int64(100), "state": state, "parameters": np.int64(parameters)})
        config = file.create_group("config")
        config.attrs["hash"] = "0" * 64
        for name in ("yaml", "source"):
            config.create_dataset(name, data=text, dtype=TEXT)
        provenance = file.create_group("provenance")
        provenance.attrs.update({"git_commit": "1234", "hostname": "here"})
        plugins = provenance.create_group("plugins")
        for name, value in {"name": "adam", "kind": "optimizer", "build_id": "aa", "sha256": "bb", "path": "/x", "version": "1.0"}.items():
            plugins.create_dataset(name, data=[value], dtype=TEXT)
        status = file.create_group("status")
        status.attrs.update({"message": "made", "exit_code": np.int32(0), "best_metric": 0.5, "best_step": np.int64(100), "state": state})
        if columns:
            write_epochs(file, columns, better)
        if final:
            group = file.create_group("final", track_order=True)
            dataset(group, "step", np.int64([100]))
            for name, value in final.items():
                dataset(group, name, [value], METRICS.get(name.split("_", 1)[-1]) if better else None)

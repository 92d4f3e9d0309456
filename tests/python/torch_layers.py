"""torch.nn.LSTM and torch.nn.GRU as networks of stiefel: tensors with the names of exported files, and `model` that describes them."""
import numpy as np
import torch

ROWS = {"LSTM": ["input", "forget", "candidate", "output"], "GRU": ["reset", "update", "candidate"]}  # of PyTorch's matrices
PARTS = {"LSTM": ["input", "forget", "output", "candidate"], "GRU": ["candidate", "update", "reset"]}  # of V x + b
OPTIONS = {"LSTM": {"forget_bias": 1, "forget_bias_fixed": False, "peepholes": "none"}, "GRU": {"reset": "after", "update": "keep"}}


def model(module):
    """The keys of `model`, without a readout."""
    cell = {"plugin": module.mode.lower(), "hidden": module.hidden_size, **OPTIONS[module.mode]}
    return {"cell": cell, "layers": module.num_layers, "bidirectional": module.bidirectional}


def tensors(module):
    """Arrays by name, without a readout; initial states are 0."""
    found = {}
    for layer in range(module.num_layers):
        for reverse in range(1 + module.bidirectional):
            cell = cell_tensors(module, f"_l{layer}" + "_reverse" * reverse)
            found |= {f"layers.{layer}." + "reverse." * reverse + name: values for name, values in cell.items()}
    return found


def cell_tensors(module, suffix):
    """The tensors of one cell, whose parameters in PyTorch have the suffix, such as _l0 or _l1_reverse."""
    rows, parts, n = ROWS[module.mode], PARTS[module.mode], module.hidden_size

    def gates(name):
        values = getattr(module, name + suffix).detach().numpy() if module.bias or "weight" in name else np.zeros(len(rows) * n)
        return dict(zip(rows, np.split(values, len(rows))))

    V, W, b, c = (gates(name) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    found = {}
    if module.mode == "GRU":
        found["cell.candidate.recurrent_bias"] = c["candidate"].copy()
        c["candidate"] = np.zeros(n)
    found["input.V"] = np.concatenate([V[gate] for gate in parts])
    found["input.b"] = np.concatenate([b[gate] + c[gate] for gate in parts])
    found |= {f"recurrent.{gate}.W": W[gate].copy() for gate in rows}
    found["initial"] = np.zeros(2 * n if module.mode == "LSTM" else n)
    kind = str(module.weight_ih_l0.dtype).removeprefix("torch.")
    return {name: values.astype(kind) for name, values in found.items()}


def states(module, last):
    """What an LSTM or GRU returns next to its outputs, as rows of one state: (batch, rows)."""
    cells = torch.cat(last, 2) if module.mode == "LSTM" else last  # h, and c after it
    return torch.cat(list(cells), 1)

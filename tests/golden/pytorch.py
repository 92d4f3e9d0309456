"""Losses and gradients of PyTorch's own nn.LSTM, nn.GRU and nn.RNN, also of two layers and both directions, and 50 steps of its Adam and RMSprop, in float64.

python3 tests/golden/pytorch.py > tests/golden/pytorch.json writes what pytorch_test.cpp and optimizer_test.cpp compare with; it needs
PyTorch.
Parameters have the names and the order that stiefel gives them, matrices by columns.
"""
import json

import torch

torch.manual_seed(1)
torch.set_default_dtype(torch.float64)
N, D, K, T, B = 5, 3, 2, 7, 4
inputs, targets = torch.randn(T, B, D), torch.randn(T, B, K)


def by_columns(matrix):
    return matrix.detach().T.flatten().tolist() if matrix.dim() == 2 else matrix.detach().tolist()


def rows(matrix, order):
    """Blocks of N rows in the order in which stiefel stacks them."""
    return torch.cat([matrix[i * N:(i + 1) * N] for i in order])


def case(model, module, kind, order, maps):
    """`order`: stiefel's stacking of V x + b in PyTorch's numbers of blocks; `maps`: name and PyTorch's block of each recurrent map."""
    directions = 1 + module.bidirectional
    readout = torch.nn.Linear(directions * N, K)
    output = readout(module(inputs)[0])
    loss = ((output - targets) ** 2).mean()
    parts = [*module.parameters(), *readout.parameters()]
    gradient = dict(zip(parts, torch.autograd.grad(loss, parts)))

    def blocks(of, both):
        """`both`: whether the two biases of PyTorch are to be added: parameters are, gradients are equal."""
        found = {"readout.weight": by_columns(of(readout.weight)), "readout.bias": by_columns(of(readout.bias))}
        for number in range(module.num_layers * directions):
            layer, reverse = divmod(number, directions)
            prefix = (f"layers.{layer}." if module.num_layers > 1 else "") + "reverse." * reverse
            weight, recurrent, bias, recurrent_bias = (of(p) for p in parts[4 * number:4 * number + 4])
            found[prefix + "input.weight"] = by_columns(rows(weight, order))
            if kind == "gru":  # the candidate's second bias stands inside r * (...)
                found[prefix + "candidate.recurrent_bias"] = by_columns(recurrent_bias[2 * N:])
                recurrent_bias = torch.cat([recurrent_bias[:2 * N], torch.zeros(N)])
            found[prefix + "input.bias"] = by_columns(rows(bias + both * recurrent_bias, order))
            for name, block in maps:
                found[prefix + name] = by_columns(recurrent[block * N:(block + 1) * N])
        return found

    return {"model": model, "loss": loss.item(), "parameters": blocks(lambda p: p, True),
            "gradient": blocks(lambda p: gradient[p], False)}


RATE, START = 0.05, [0.5, -1.25, 2.0, -0.03]
SLOPES = [(torch.sin(1.3 * step + torch.arange(4)) * torch.tensor([1.0, 30.0, 1e-4, 0.3])).tolist() for step in range(50)]


def path(plugin, options, make, **choices):
    parameter = torch.nn.Parameter(torch.tensor(START))
    optimizer, points = make([parameter], lr=RATE, **choices), []
    for slope in SLOPES:
        parameter.grad = torch.tensor(slope)
        optimizer.step()
        points.append(parameter.tolist())
    return {"plugin": plugin, "options": options, "theta": points}


gates = [("recurrent.input.W", 0), ("recurrent.forget.W", 1), ("recurrent.output.W", 3), ("recurrent.candidate.W", 2)]
gru_maps = [("recurrent.update.W", 1), ("recurrent.reset.W", 0), ("recurrent.candidate.W", 2)]
cells = [
    case(f"cell: {{plugin: elman, hidden: {N}, activation: tanh}}", torch.nn.RNN(D, N), "rnn", [0], [("recurrent.W", 0)]),
    case(f"cell: {{plugin: lstm, hidden: {N}}}", torch.nn.LSTM(D, N), "lstm", [0, 1, 3, 2], gates),
    case(f"cell: {{plugin: gru, hidden: {N}, reset: after}}", torch.nn.GRU(D, N), "gru", [2, 1, 0],
         gru_maps),
]
for both in (False, True):
    shape = {"num_layers": 2, "bidirectional": both}
    keys = f"layers: 2\n  bidirectional: {str(both).lower()}"
    cells += [case(f"cell: {{plugin: lstm, hidden: {N}}}\n  {keys}", torch.nn.LSTM(D, N, **shape), "lstm", [0, 1, 3, 2], gates),
              case(f"cell: {{plugin: gru, hidden: {N}, reset: after}}\n  {keys}", torch.nn.GRU(D, N, **shape), "gru", [2, 1, 0], gru_maps)]
runs = [
    path("adam", {}, torch.optim.Adam),
    path("rmsprop", {"decay": 0.99}, torch.optim.RMSprop, alpha=0.99),
    path("sgd", {"momentum": 0.9, "nesterov": True}, torch.optim.SGD, momentum=0.9, nesterov=True),
]
print(json.dumps({"inputs": inputs.flatten().tolist(), "targets": targets.flatten().tolist(), "steps": T, "sequences": B, "input_size": D,
                  "output_size": K, "cells": cells, "optimizers": {"rate": RATE, "start": START, "gradients": SLOPES, "runs": runs}}))

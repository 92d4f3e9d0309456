"""Losses and gradients of PyTorch's own nn.LSTM, nn.GRU and nn.RNN, and 50 steps of its Adam and RMSprop, in float64.

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


def case(model, cell, kind, order, maps):
    """`order`: stiefel's stacking of V x + b in PyTorch's numbers of blocks; `maps`: name and PyTorch's block of each recurrent map."""
    readout = torch.nn.Linear(N, K)
    output = readout(cell(inputs)[0])
    loss = ((output - targets) ** 2).mean()
    parts = [*cell.parameters(), *readout.parameters()]
    gradient = dict(zip(parts, torch.autograd.grad(loss, parts)))

    def blocks(of):
        weight, recurrent, bias, recurrent_bias = (of(p) for p in cell.parameters())
        found = {"input.weight": by_columns(rows(weight, order)), "readout.weight": by_columns(of(readout.weight)),
                 "readout.bias": by_columns(of(readout.bias))}
        for name, block in maps:
            found[name] = by_columns(recurrent[block * N:(block + 1) * N])
        return found, bias, recurrent_bias

    value, bias, recurrent_bias = blocks(lambda p: p)
    slope, dbias, drecurrent_bias = blocks(lambda p: gradient[p])
    if kind == "gru":  # the candidate's second bias stands inside r * (...)
        value["candidate.recurrent_bias"] = by_columns(recurrent_bias[2 * N:])
        slope["candidate.recurrent_bias"] = by_columns(drecurrent_bias[2 * N:])
        recurrent_bias = torch.cat([recurrent_bias[:2 * N], torch.zeros(N)])
    value["input.bias"] = by_columns(rows(bias + recurrent_bias, order))
    slope["input.bias"] = by_columns(rows(dbias, order))
    return {"model": model, "loss": loss.item(), "parameters": value, "gradient": slope}


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
cells = [
    case(f"cell: {{plugin: elman, hidden: {N}, activation: tanh}}", torch.nn.RNN(D, N), "rnn", [0], [("recurrent.W", 0)]),
    case(f"cell: {{plugin: lstm, hidden: {N}}}", torch.nn.LSTM(D, N), "lstm", [0, 1, 3, 2], gates),
    case(f"cell: {{plugin: gru, hidden: {N}, reset: after}}", torch.nn.GRU(D, N), "gru", [2, 1, 0],
         [("recurrent.update.W", 1), ("recurrent.reset.W", 0), ("recurrent.candidate.W", 2)]),
]
runs = [
    path("adam", {}, torch.optim.Adam),
    path("rmsprop", {"decay": 0.99}, torch.optim.RMSprop, alpha=0.99),
    path("sgd", {"momentum": 0.9, "nesterov": True}, torch.optim.SGD, momentum=0.9, nesterov=True),
]
print(json.dumps({"inputs": inputs.flatten().tolist(), "targets": targets.flatten().tolist(), "steps": T, "sequences": B, "input_size": D,
                  "output_size": K, "cells": cells, "optimizers": {"rate": RATE, "start": START, "gradients": SLOPES, "runs": runs}}))

#!/usr/bin/python3
"""Ten training steps again, in NumPy, from initial parameters and batches alone; differences above 1e-10 fail.

Written from the formulas: W as a product of reflections one by one, the Cayley transform by a solve, back-propagation through time
sample by sample of the batch, optimizers as printed in their papers. usage: ten_steps.py PROGRAM FOLDER-OF-YAML
"""
import json
import subprocess
import sys

import numpy as np


# ---- maps: W(theta) and the gradient of theta from that of W

class Dense:
    def __init__(self, n, **_):
        self.n = n

    def matrix(self, theta):
        return theta["W"].reshape(self.n, self.n, order="F")

    def pullback(self, theta, dW):
        return {"W": dW.flatten(order="F")}

    def after(self, theta):
        pass


class Householder:
    """W = H(u_1) ... H(u_m), column j of U with j leading zeros; the last reflection meets h first."""

    def __init__(self, n, m, normalise=True, **_):
        self.n, self.m, self.normalise = n, m, normalise

    def columns(self, packed):
        columns, at = [], 0
        for j in range(self.m):
            u = np.zeros(self.n)
            u[j:] = packed[at:at + self.n - j]
            at += self.n - j
            columns.append(u)
        return columns

    def matrix(self, theta):
        W = np.eye(self.n)
        for u in self.columns(theta["U"]):
            W = W @ (np.eye(self.n) - 2 * np.outer(u, u) / (u @ u))
        return W

    def pullback(self, theta, dW):
        columns = self.columns(theta["U"])
        H = [np.eye(self.n) - 2 * np.outer(u, u) / (u @ u) for u in columns]
        packed = []
        for j, u in enumerate(columns):
            left, right = np.eye(self.n), np.eye(self.n)
            for k in range(j):
                left = left @ H[k]
            for k in range(j + 1, self.m):
                right = right @ H[k]
            G = left.T @ dW @ right.T                      # gradient of H_j
            uu = u @ u
            du = -2 * (G + G.T) @ u / uu + 4 * (u @ G @ u) * u / uu ** 2
            packed.append(du[j:])
        return {"U": np.concatenate(packed)}

    def after(self, theta):
        if self.normalise:
            theta["U"][:] = np.concatenate([u[j:] / np.linalg.norm(u) for j, u in enumerate(self.columns(theta["U"]))])


class ScaledCayley:
    """W = (I + A)^-1 (I - A) D, A skew with its strict lower triangle by columns, the last rho signs of D negative."""

    def __init__(self, n, rho, **_):
        self.n, self.D = n, np.diag([1.0] * (n - rho) + [-1.0] * rho)

    def skew(self, theta):
        A, at = np.zeros((self.n, self.n)), 0
        for j in range(self.n):
            for i in range(j + 1, self.n):
                A[i, j], A[j, i] = theta["A"][at], -theta["A"][at]
                at += 1
        return A

    def matrix(self, theta):
        A, I = self.skew(theta), np.eye(self.n)
        return np.linalg.solve(I + A, I - A) @ self.D

    def pullback(self, theta, dW):
        A, I = self.skew(theta), np.eye(self.n)
        W = self.matrix(theta)
        dA = -np.linalg.solve((I + A).T, dW) @ (self.D + W.T)
        return {"A": np.array([dA[i, j] - dA[j, i] for j in range(self.n) for i in range(j + 1, self.n)])}

    def after(self, theta):
        pass


# ---- activations: h and da from dh, parameters by name

def leaky_relu(a, p):
    return np.where(a > 0, a, 0.1 * a), lambda dh: (np.where(a > 0, 1, 0.1) * dh, {})


def tanh(a, p):
    h = np.tanh(a)
    return h, lambda dh: ((1 - h * h) * dh, {})


def modrelu(a, p):
    on = np.abs(a) + p["activation.bias"][:, None] > 0
    h = np.where(on, np.sign(a) * (np.abs(a) + p["activation.bias"][:, None]), 0)
    return h, lambda dh: (np.where(on, dh, 0), {"activation.bias": np.where(on, np.sign(a) * dh, 0).sum(1)})


# ---- optimizers

class Adam:
    def __init__(self, rate):
        self.rate, self.state = rate, {}

    def step(self, name, x, g):
        t, m, v = self.state.get(name, (0, 0 * g, 0 * g))
        t, m, v = t + 1, 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        self.state[name] = t, m, v
        x -= self.rate * (m / (1 - 0.9 ** t)) / (np.sqrt(v / (1 - 0.999 ** t)) + 1e-8)


class Rmsprop:
    def __init__(self, rate, epsilon=1e-8, inside=False, initial=0.0):
        self.rate, self.epsilon, self.inside, self.initial, self.state = rate, epsilon, inside, initial, {}

    def step(self, name, x, g):
        r = 0.9 * self.state.get(name, self.initial + 0 * g) + 0.1 * g * g
        self.state[name] = r
        x -= self.rate * g / (np.sqrt(r + self.epsilon) if self.inside else np.sqrt(r) + self.epsilon)


class Momentum:
    def __init__(self, rate, momentum):
        self.rate, self.momentum, self.state = rate, momentum, {}

    def step(self, name, x, g):
        v = self.momentum * self.state.get(name, 0 * g) - self.rate * g
        self.state[name] = v
        x += v


# ---- losses on k x c outputs: values and gradients per column

def cross_entropy(o, labels):
    shifted = o - o.max(0)
    log_p = shifted - np.log(np.exp(shifted).sum(0))
    one = np.zeros_like(o)
    one[labels, np.arange(o.shape[1])] = 1
    return -(one * log_p).sum(0), np.exp(log_p) - one


def mean_square(o, y):
    return ((o - y) ** 2).mean(0), 2 * (o - y) / o.shape[0]


class Network:
    def __init__(self, parameters, n, recurrent, activation, last):
        self.p = {name: np.array(block["values"]) for name, block in parameters.items()}
        self.shape = {name: (block["rows"], block["cols"]) for name, block in parameters.items()}
        self.n, self.map, self.activation, self.last = n, recurrent, activation, last

    def matrix(self, name):
        return self.p[name].reshape(self.shape[name], order="F")

    def theta(self):
        return {name[len("recurrent."):]: values for name, values in self.p.items() if name.startswith("recurrent.")}

    def loss(self, batch):
        B, T = batch["sequences"], batch["steps"]
        V, Y, W = self.matrix("input.weight"), self.matrix("readout.weight"), self.map.matrix(self.theta())
        b = self.p.get("input.bias", np.zeros(self.n))
        if "inputs" in batch:
            x = np.array(batch["inputs"]).reshape(T, B, -1).transpose(0, 2, 1)
        else:
            x = np.zeros((T, V.shape[1], B))
            symbols = np.array(batch["symbols"]).reshape(T, B)
            for t in range(T):
                x[t, symbols[t], np.arange(B)] = 1
        h = [np.repeat(self.p.get("initial_state", np.zeros(self.n))[:, None], B, 1)]
        back = []
        for t in range(T):
            ht, pull = self.activation(W @ h[-1] + V @ x[t] + b[:, None], self.p)
            h.append(ht)
            back.append(pull)

        weights = np.array(batch["weights"]).reshape(-1, B)
        loss, g = 0.0, {name: np.zeros_like(values) for name, values in self.p.items()}
        dV, dY, dW, dh = np.zeros_like(V), np.zeros_like(Y), np.zeros_like(W), np.zeros((self.n, B))
        for t in reversed(range(T)):
            row = 0 if self.last else t
            if t == T - 1 or not self.last:
                o = Y @ h[t + 1] + self.p["readout.bias"][:, None]
                if "labels" in batch:
                    values, do = cross_entropy(o, np.array(batch["labels"]).reshape(-1, B)[row])
                else:
                    values, do = mean_square(o, np.array(batch["targets"]).reshape(-1, B, o.shape[0])[row].T)
                loss += (weights[row] * values).sum() / weights.sum()
                do = do * weights[row] / weights.sum()
                dY += do @ h[t + 1].T
                g["readout.bias"] += do.sum(1)
                dh = dh + Y.T @ do
            da, dp = back[t](dh)
            for name, values in dp.items():
                g[name] += values
            dW += da @ h[t].T
            dV += da @ x[t].T
            if "input.bias" in g:
                g["input.bias"] += da.sum(1)
            dh = W.T @ da
        if "initial_state" in g:
            g["initial_state"] += dh.sum(1)
        g["input.weight"], g["readout.weight"] = dV.flatten(order="F"), dY.flatten(order="F")
        return loss, g, W, dW


def oracle(run):
    name, data = run["name"], run["data"]
    case = CASES[name]
    network = Network(data["parameters"], case["n"], case["map"], case["activation"], case["last"])
    losses = []
    for batch in data["batches"]:
        loss, g, W, dW = network.loss(batch)
        losses.append(loss)
        dW = dW + 2 * case.get("composite_decay", 0) * W
        for block, values in network.map.pullback(network.theta(), dW).items():
            g["recurrent." + block] = values
        for block in g:
            if not block.startswith("recurrent.") or "composite_decay" not in case:
                g[block] = g[block] + 2 * case.get("decay", 0) * network.p[block]
        if "clip_norm" in case:
            norm = np.sqrt(sum((values ** 2).sum() for values in g.values()))
            if norm > case["clip_norm"]:
                g = {block: values * case["clip_norm"] / norm for block, values in g.items()}
        for block, values in g.items():
            optimizer = case["optimizers"][block.startswith("recurrent.") and len(case["optimizers"]) > 1]
            optimizer.step(block, network.p[block], values)
        network.map.after(network.theta())
    return losses


CASES = {
    "ornn_adding": dict(n=12, map=Householder(12, 5), activation=leaky_relu, last=True, optimizers=[Adam(0.01)]),
    "scornn_copy": dict(n=10, map=ScaledCayley(10, 4), activation=modrelu, last=False,
                        optimizers=[Rmsprop(1e-2), Rmsprop(1e-2, 1e-10, True, 1.0)]),
    "rnn_decay_clip": dict(n=9, map=Dense(9), activation=tanh, last=False, composite_decay=0.01, decay=0.01, clip_norm=0.05,
                           optimizers=[Momentum(0.1, 0.9)]),
}


def main():
    program, folder = sys.argv[1:3]
    worst_of_all = 0
    for name in CASES:
        data = json.loads(subprocess.run([program, f"{folder}/{name}.yaml"], check=True, stdout=subprocess.PIPE).stdout)
        expected = np.array(oracle({"name": name, "data": data}))
        difference = np.abs(expected - np.array(data["losses"])) / np.abs(expected)
        moved = abs(expected[0] - expected[-1]) / expected[0]
        print(f"{name}: loss {expected[0]:.12f} to {expected[-1]:.12f}, largest relative difference {difference.max():.2e}")
        if len(expected) != 10 or not moved > 1e-4:
            sys.exit(f"{name}: the ten steps moved the loss by {moved:.1e} only: nothing was tested")
        worst_of_all = max(worst_of_all, difference.max())
    if not worst_of_all <= 1e-10:
        sys.exit(f"the losses differ by {worst_of_all:.2e}, more than 1e-10")


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""Ten training steps again, in NumPy, from initial parameters and batches alone; differences above 1e-10 fail.

Written from the formulas: W as a product of reflections one by one, the Cayley transform by a solve, back-propagation through time
sample by sample of the batch, optimizers as printed in their papers. Complex networks train fifty steps; here they are real networks of
twice the size: every vector is Re over Im, and no complex number occurs. usage: ten_steps.py PROGRAM FOLDER-OF-YAML
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


class SvdMargin:
    """W = U diag(1 + m tanh(p/2)) V^T."""

    def __init__(self, n, margin):
        self.n, self.margin = n, margin

    def factors(self, theta):
        U, V = (theta[name].reshape(self.n, self.n, order="F") for name in "UV")
        return U, np.diag(1 + self.margin * np.tanh(theta["p"] / 2)), V

    def matrix(self, theta):
        U, S, V = self.factors(theta)
        return U @ S @ V.T

    def pullback(self, theta, dW):
        U, S, V = self.factors(theta)
        dp = self.margin / 2 * (1 - np.tanh(theta["p"] / 2) ** 2) * np.diag(U.T @ dW @ V)
        return {"U": (dW @ V @ S).flatten(order="F"), "V": (dW.T @ U @ S).flatten(order="F"), "p": dp}

    def after(self, theta):
        pass


def reflection(u):
    return np.eye(u.size) - 2 * np.outer(u, u) / (u @ u)


def reflection_gradient(u, G):
    """Gradient of u from the gradient G of H(u)."""
    uu = u @ u
    return -2 * (G + G.T) @ u / uu + 4 * (u @ G @ u) * u / uu ** 2


def product_gradients(factors, dW):
    """Gradient of each factor from that of their product."""
    gradients = []
    for j in range(len(factors)):
        left, right = np.eye(len(dW)), np.eye(len(dW))
        for factor in factors[:j]:
            left = left @ factor
        for factor in factors[j + 1:]:
            right = right @ factor
        gradients.append(left.T @ dW @ right.T)
    return gradients


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
            W = W @ reflection(u)
        return W

    def pullback(self, theta, dW):
        columns = self.columns(theta["U"])
        gradients = product_gradients([reflection(u) for u in columns], dW)
        return {"U": np.concatenate([reflection_gradient(u, G)[j:] for j, (u, G) in enumerate(zip(columns, gradients))])}

    def after(self, theta):
        if self.normalise:
            theta["U"][:] = np.concatenate([u[j:] / np.linalg.norm(u) for j, u in enumerate(self.columns(theta["U"]))])


class UnitaryHouseholderReal:
    """The real 2n x 2n form [[A, -B], [B, A]] of a product of m complex reflections and phases.

    A reflection in u is a pair of real ones, in v = (Re u; Im u) and in Jv = (-Im u; Re u), at right angles and tied by v; the phases are
    rotations in the planes (i, n + i).
    """

    def __init__(self, n, m):
        self.n, self.m = n, m
        O, I = np.zeros((n, n)), np.eye(n)
        self.J = np.block([[O, -I], [I, O]])

    def vectors(self, packed):
        vectors, at = [], 0
        for j in range(self.m):
            v, length = np.zeros(2 * self.n), self.n - j
            v[j:self.n], v[self.n + j:] = packed[at:at + length], packed[at + length:at + 2 * length]
            at += 2 * length
            vectors.append(v)
        return vectors

    def stored(self, vectors):
        return np.concatenate([part for j, v in enumerate(vectors) for part in (v[j:self.n], v[self.n + j:])])

    def factors(self, theta):
        C, S = np.diag(np.cos(theta["theta"])), np.diag(np.sin(theta["theta"]))
        pairs = [reflection(w) for v in self.vectors(theta["U"]) for w in (v, self.J @ v)]
        return pairs + [np.block([[C, -S], [S, C]])]

    def matrix(self, theta):
        W = np.eye(2 * self.n)
        for factor in self.factors(theta):
            W = W @ factor
        return W

    def pullback(self, theta, dW):
        *pairs, G = product_gradients(self.factors(theta), dW)
        dU = [reflection_gradient(v, G1) + self.J.T @ reflection_gradient(self.J @ v, G2)
              for v, G1, G2 in zip(self.vectors(theta["U"]), pairs[0::2], pairs[1::2])]
        n, cos, sin = self.n, np.cos(theta["theta"]), np.sin(theta["theta"])
        G11, G12, G21, G22 = (np.diag(part) for part in (G[:n, :n], G[:n, n:], G[n:, :n], G[n:, n:]))
        return {"U": self.stored(dU), "theta": -sin * (G11 + G22) + cos * (G21 - G12)}

    def after(self, theta):
        theta["U"][:] = self.stored([v / np.linalg.norm(v) for v in self.vectors(theta["U"])])


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


def identity(a, p):
    return a, lambda dh: (dh, {})


def tanh(a, p):
    h = np.tanh(a)
    return h, lambda dh: ((1 - h * h) * dh, {})


def modrelu(a, p):
    on = np.abs(a) + p["activation.bias"][:, None] > 0
    h = np.where(on, np.sign(a) * (np.abs(a) + p["activation.bias"][:, None]), 0)
    return h, lambda dh: (np.where(on, dh, 0), {"activation.bias": np.where(on, np.sign(a) * dh, 0).sum(1)})


def modrelu_pairs(a, p):
    """(rho + b)u of the vector rho u = (a_i, a_{n+i}), 0 where rho + b is not positive: radial parts of dh pass, tangential ones scale."""
    pairs = a.reshape(2, -1, a.shape[1])
    rho = np.sqrt((pairs ** 2).sum(0))
    length = np.maximum(rho + p["activation.bias"][:, None], 0)
    u = pairs / rho

    def back(dh):
        g = dh.reshape(pairs.shape)
        radial = (g * u).sum(0)
        da = (g - radial * u) * length / rho + radial * u * (length > 0)
        return da.reshape(a.shape), {"activation.bias": (radial * (length > 0)).sum(1)}
    return (length * u).reshape(a.shape), back


# ---- cells: one step from (a = V x + b, state, W by name, parameters) to the state and its pullback,
# (gradient of the state) -> (of a, of the state before, of each W, of parameters). The first n rows of the state are h.

def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Elman:
    maps = [""]

    def __init__(self, activation):
        self.activation = activation

    def step(self, a, state, W, p):
        h, back = self.activation(W[""] @ state + a, p)

        def pull(dh):
            da, dp = back(dh)
            return da, W[""].T @ da, {"": da @ state.T}, dp
        return h, pull


class Lstm:
    """Gates in the order input, forget, output, candidate; every gate by itself, as printed. Peepholes are vectors or one matrix."""

    def __init__(self, n, fixed_bias=0.0, full=False):
        self.n, self.fixed_bias, self.maps = n, fixed_bias, ["input", "forget", "output", "candidate"] + ["output_peephole"] * full

    def step(self, a, state, W, p):
        n = self.n
        h0, c0 = state[:n], state[n:]
        pi, pf, po = (np.diag(p.get("peephole." + gate, np.zeros(n))) for gate in ("input", "forget", "output"))
        po = W.get("output_peephole", po)
        i = sigmoid(a[:n] + W["input"] @ h0 + pi @ c0)
        f = sigmoid(a[n:2 * n] + W["forget"] @ h0 + pf @ c0 + self.fixed_bias)
        q = np.tanh(a[3 * n:] + W["candidate"] @ h0)
        c = f * c0 + i * q
        o = sigmoid(a[2 * n:3 * n] + W["output"] @ h0 + po @ c)

        def pull(dstate):
            dh, dc = dstate[:n], dstate[n:]
            d = {"output": dh * np.tanh(c) * o * (1 - o)}
            dc = dc + dh * o / np.cosh(c) ** 2 + po.T @ d["output"]
            d["input"], d["forget"], d["candidate"] = dc * q * i * (1 - i), dc * c0 * f * (1 - f), dc * i * (1 - q ** 2)
            dh0 = sum(W[gate].T @ d[gate] for gate in d)
            dc0 = dc * f + pi.T @ d["input"] + pf.T @ d["forget"]
            dW = {gate: d[gate] @ h0.T for gate in d}
            seen = {"input": c0, "forget": c0, "output": c}
            dp = {"peephole." + gate: (d[gate] * seen[gate]).sum(1) for gate in seen if "peephole." + gate in p}
            if "output_peephole" in W:
                dW["output_peephole"] = d["output"] @ c.T
            return np.vstack([d["input"], d["forget"], d["output"], d["candidate"]]), np.vstack([dh0, dc0]), dW, dp
        return np.vstack([o * np.tanh(c), c]), pull


class Gru:
    """Rows of a in the order candidate, update, reset."""
    maps = ["update", "reset", "candidate"]

    def __init__(self, n, after, keep):
        self.n, self.after, self.keep = n, after, keep

    def step(self, a, h0, W, p):
        n, Wz, Wr, Wq = self.n, W["update"], W["reset"], W["candidate"]
        z, r = sigmoid(a[n:2 * n] + Wz @ h0), sigmoid(a[2 * n:] + Wr @ h0)
        s = Wq @ h0 + p["candidate.recurrent_bias"][:, None] if self.after else None
        q = np.tanh(a[:n] + (r * s if self.after else Wq @ (r * h0)))
        old, new = (z, 1 - z) if self.keep else (1 - z, z)

        def pull(dh):
            aq = dh * new * (1 - q ** 2)
            az = dh * ((h0 - q) if self.keep else (q - h0)) * z * (1 - z)
            if self.after:
                dr, ds = aq * s, aq * r
                through, dWq, dp = Wq.T @ ds, ds @ h0.T, {"candidate.recurrent_bias": ds.sum(1)}
            else:
                drh = Wq.T @ aq
                dr, through, dWq, dp = drh * h0, drh * r, aq @ (r * h0).T, {}
            ar = dr * r * (1 - r)
            return (np.vstack([aq, az, ar]), dh * old + through + Wz.T @ az + Wr.T @ ar,
                    {"update": az @ h0.T, "reset": ar @ h0.T, "candidate": dWq}, dp)
        return old * h0 + new * q, pull


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


class GeodesicCayley:
    """M <- (I + rate/2 A)^-1 (I - rate/2 A) M with A = G M^T - M G^T."""

    def __init__(self, rate):
        self.rate = rate

    def step(self, name, x, g):
        n = int(np.sqrt(x.size))
        M, G, I = x.reshape(n, n, order="F"), g.reshape(n, n, order="F"), np.eye(n)
        half = self.rate / 2 * (G @ M.T - M @ G.T)
        x[:] = np.linalg.solve(I + half, (I - half) @ M).flatten(order="F")


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
    def __init__(self, parameters, n, recurrent, cell, last):
        self.p = {name: np.array(block["values"]) for name, block in parameters.items()}
        self.shape = {name: (block["rows"], block["cols"]) for name, block in parameters.items()}
        self.n, self.map, self.cell, self.last = n, recurrent, cell, last

    def matrix(self, name):
        return self.p[name].reshape(self.shape[name], order="F")

    def theta(self, map_name):
        prefix = prefix_of(map_name)
        return {name[len(prefix):]: values for name, values in self.p.items() if name.startswith(prefix)}

    def loss(self, batch):
        B, T, n = batch["sequences"], batch["steps"], self.n
        V, Y = self.matrix("input.weight"), self.matrix("readout.weight")
        W = {name: self.map.matrix(self.theta(name)) for name in self.cell.maps}
        b = self.p.get("input.bias", np.zeros(V.shape[0]))
        if "inputs" in batch:
            x = np.array(batch["inputs"]).reshape(T, B, -1).transpose(0, 2, 1)
        else:
            x = np.zeros((T, V.shape[1], B))
            symbols = np.array(batch["symbols"]).reshape(T, B)
            for t in range(T):
                x[t, symbols[t], np.arange(B)] = 1
        rows = 2 * n if isinstance(self.cell, Lstm) else n
        state = [np.repeat(self.p.get("initial_state", np.zeros(rows))[:, None], B, 1)]
        back = []
        for t in range(T):
            after, pull = self.cell.step(V @ x[t] + b[:, None], state[-1], W, self.p)
            state.append(after)
            back.append(pull)

        weights = np.array(batch["weights"]).reshape(-1, B)
        loss, g = 0.0, {name: np.zeros_like(values) for name, values in self.p.items()}
        dV, dY, dW, dstate = np.zeros_like(V), np.zeros_like(Y), {name: 0 for name in W}, np.zeros((rows, B))
        for t in reversed(range(T)):
            row, h = 0 if self.last else t, state[t + 1][:n]
            if t == T - 1 or not self.last:
                o = Y @ h + self.p["readout.bias"][:, None]
                if "labels" in batch:
                    values, do = cross_entropy(o, np.array(batch["labels"]).reshape(-1, B)[row])
                else:
                    values, do = mean_square(o, np.array(batch["targets"]).reshape(-1, B, o.shape[0])[row].T)
                loss += (weights[row] * values).sum() / weights.sum()
                do = do * weights[row] / weights.sum()
                dY += do @ h.T
                g["readout.bias"] += do.sum(1)
                dstate = dstate + np.vstack([Y.T @ do, np.zeros((rows - n, B))])
            da, dstate, dW_t, dp = back[t](dstate)
            for name, values in dp.items():
                g[name] += values
            for name, values in dW_t.items():
                dW[name] = dW[name] + values
            dV += da @ x[t].T
            if "input.bias" in g:
                g["input.bias"] += da.sum(1)
        if "initial_state" in g:
            g["initial_state"] += dstate.sum(1)
        g["input.weight"], g["readout.weight"] = dV.flatten(order="F"), dY.flatten(order="F")
        return loss, g, W, dW


def prefix_of(map_name):
    return "recurrent." + map_name + "." * bool(map_name)


def optimizer_of(case, block):
    """A list holds the optimizers of the rest and of the map; a mapping has those of single blocks, and "" for all others."""
    optimizers = case["optimizers"]
    if isinstance(optimizers, dict):
        return optimizers.get(block, optimizers[""])
    return optimizers[block.startswith("recurrent.") and len(optimizers) > 1]


def oracle(run):
    name, data = run["name"], run["data"]
    case = CASES[name]
    network = Network(data["parameters"], case["n"], case["map"], case["cell"], case["last"])
    losses = []
    for batch in data["batches"]:
        loss, g, W, dW = network.loss(batch)
        losses.append(loss)
        for map_name in W:
            total = dW[map_name] + 2 * case.get("composite_decay", 0) * W[map_name]
            for block, values in network.map.pullback(network.theta(map_name), total).items():
                g[prefix_of(map_name) + block] = values
        for block in g:
            if block.endswith(case.get("decayed", "")) and not (block.startswith("recurrent.") and "composite_decay" in case):
                g[block] = g[block] + 2 * case.get("decay", 0) * network.p[block]
        if "clip_norm" in case:
            norm = np.sqrt(sum((values ** 2).sum() for values in g.values()))
            if norm > case["clip_norm"]:
                g = {block: values * case["clip_norm"] / norm for block, values in g.items()}
        for block, values in g.items():
            optimizer_of(case, block).step(block, network.p[block], values)
        for map_name in W:
            network.map.after(network.theta(map_name))
    return losses


CASES = {
    "ornn_adding": dict(n=12, map=Householder(12, 5), cell=Elman(leaky_relu), last=True, optimizers=[Adam(0.01)]),
    "scornn_copy": dict(n=10, map=ScaledCayley(10, 4), cell=Elman(modrelu), last=False,
                        optimizers=[Rmsprop(1e-2), Rmsprop(1e-2, 1e-10, True, 1.0)]),
    "rnn_decay_clip": dict(n=9, map=Dense(9), cell=Elman(tanh), last=False, composite_decay=0.01, decay=0.01, clip_norm=0.05,
                           optimizers=[Momentum(0.1, 0.9)]),
    "lstm_peepholes_adding": dict(n=7, map=Householder(7, 3), cell=Lstm(7), last=True, optimizers=[Adam(0.01)]),
    "lstm_full_copy": dict(n=8, map=Dense(8), cell=Lstm(8, 0.7, True), last=False, optimizers=[Rmsprop(1e-2)]),
    "gru_before_adding": dict(n=9, map=ScaledCayley(9, 4), cell=Gru(9, False, True), last=True, optimizers=[Adam(0.01)]),
    "gru_after_copy": dict(n=8, map=Dense(8), cell=Gru(8, True, False), last=False, optimizers=[Rmsprop(1e-2)]),
    "unitary_copy": dict(n=16, map=UnitaryHouseholderReal(8, 3), cell=Elman(modrelu_pairs), last=False, optimizers=[Adam(0.01)], steps=50),
    "unitary_adding": dict(n=12, map=UnitaryHouseholderReal(6, 5), cell=Elman(modrelu_pairs), last=True,
                           optimizers=[Rmsprop(1e-3)], steps=50),
    # The file itself, smaller and with larger rates and decay, so that each of its groups shows in ten losses.
    "vorontsov_copy": dict(
        n=6, map=SvdMargin(6, 0.5), cell=Elman(identity), last=False, composite_decay=0.02, decay=0.03, decayed=".weight",
        file="../../../experiments/vorontsov/copy_200.yaml",
        overrides=["scalar=float64", "task.length=5", "model.cell.hidden=6", "model.recurrent.margin=0.5", "train.batch=4", "train.epochs=0",
                   "train.steps=10", "optimizer.0.rate=0.05", "optimizer.1.rate=0.05", "optimizer.2.rate=0.002", "optimizer.3.rate=0.001",
                   "optimizer.4.rate=0.001", "optimizer.2.weight_decay=0.02", "optimizer.3.weight_decay=0.03"],
        optimizers={"recurrent.U": GeodesicCayley(0.05), "recurrent.V": GeodesicCayley(0.05), "recurrent.p": Rmsprop(0.002, 1e-6, True),
                    "": Rmsprop(0.001, 1e-6, True)}),
}


def main():
    program, folder = sys.argv[1:3]
    worst_of_all = 0
    for name in CASES:
        file = CASES[name].get("file", name + ".yaml")
        words = [program, f"{folder}/{file}", *CASES[name].get("overrides", [])]
        data = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)
        expected = np.array(oracle({"name": name, "data": data}))
        difference = np.abs(expected - np.array(data["losses"])) / np.abs(expected)
        moved = abs(expected[0] - expected[-1]) / expected[0]
        print(f"{name}: loss {expected[0]:.12f} to {expected[-1]:.12f}, largest relative difference {difference.max():.2e}")
        if len(expected) != CASES[name].get("steps", 10) or not moved > 1e-4:
            sys.exit(f"{name}: {len(expected)} steps moved the loss by {moved:.1e} only: nothing was tested")
        worst_of_all = max(worst_of_all, difference.max())
    if not worst_of_all <= 1e-10:
        sys.exit(f"the losses differ by {worst_of_all:.2e}, more than 1e-10")


if __name__ == "__main__":
    main()

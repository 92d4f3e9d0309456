"""Exported networks for tests: files with random matrices, and what they compute, in NumPy from the equations of docs/DEPLOY.md."""
import json

import numpy as np

ACTIVATION = {"kind": "tanh", "slope": 0.1, "trainable": True, "shared": True, "pairing": "halves", "form": "exact", "epsilon": 0,
              "pairs": False}
OPTIONS = {
    "elman": {"activation": ACTIVATION, "transition": "standard", "gain": 1, "step": 0.01},
    "lstm": {"forget_bias": 1, "forget_bias_fixed": False, "peepholes": "none"},
    "gru": {"reset": "before", "update": "keep"},
    "goru": {"activation": {**ACTIVATION, "kind": "modrelu"}},
    "cornn": {"step": 0.042, "gamma": 2.7, "epsilon": 4.7},
    "lem": {"step": 1},
    "lru": {},
    "mingru": {"candidate": "linear"},
    "lipschitz": {"step": 0.01, "scheme": "euler"},
}
MAPS = {"elman": [], "lstm": ["input", "forget", "output", "candidate"], "gru": ["update", "reset", "candidate"],
        "goru": ["update", "reset", "candidate"], "cornn": ["position", "velocity"], "lem": ["step_z", "step_y", "z", "y"], "lru": [],
        "mingru": [], "lipschitz": ["nonlinear", "linear"]}
PARTS = {"elman": 1, "lstm": 4, "gru": 3, "goru": 3, "cornn": 1, "lem": 4, "lru": 1, "mingru": 2, "lipschitz": 1}
STATES = {"elman": 1, "lstm": 2, "gru": 1, "goru": 1, "cornn": 2, "lem": 2, "lru": 1, "mingru": 1, "lipschitz": 1}


def write(path, tensors, metadata):
    header, data = {"__metadata__": metadata}, b""
    for name, values in tensors.items():
        kind = {"float32": "F32", "float64": "F64"}[str(values.dtype)]
        header[name] = {"dtype": kind, "shape": list(values.shape), "data_offsets": [len(data), len(data) + values.nbytes]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def network(cell, n=6, d=3, k=2, kind="float64", inputs="dense", readout="every", complex_map=False, seed=0, activation=None, **options):
    """Tensors and metadata of a random network."""
    rng = np.random.default_rng(seed)
    options = {**OPTIONS[cell], **options}
    if activation:
        options["activation"] = {**ACTIVATION, **activation}
    rows = 2 * n if complex_map or cell == "lru" else n

    def random(*shape):
        return (rng.standard_normal(shape) * 0.7).astype(kind)

    def orthogonal(*_):
        return np.linalg.qr(rng.standard_normal((n, n)))[0].astype(kind)

    def unitary():
        matrix = np.linalg.qr(rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n)))[0]
        return np.stack([matrix.real, matrix.imag], 2).astype(kind)

    tensors = {}
    if inputs != "none":
        tensors["layers.0.input.V"] = random(PARTS[cell] * rows, d)
    tensors["layers.0.input.b"] = random(PARTS[cell] * rows)
    if cell == "elman":
        tensors["layers.0.recurrent.W"] = unitary() if complex_map else orthogonal()
    for name in MAPS[cell] + (["output_peephole"] if options.get("peepholes") == "output_full" else []):
        tensors[f"layers.0.recurrent.{name}.W"] = orthogonal()
    chosen = options.get("activation", {})
    blocks = {}
    if chosen.get("kind") == "modrelu":
        pairs = complex_map or chosen["pairs"] or chosen["form"] == "squared"
        blocks["activation.bias"] = rows // 2 if pairs else rows
    if chosen.get("kind") == "prelu" and chosen["trainable"]:
        blocks["activation.slope"] = 1 if chosen["shared"] else rows
    if options.get("peepholes") == "diagonal":
        blocks |= dict.fromkeys(("peephole.input", "peephole.forget", "peephole.output"), n)
    if options.get("reset") == "after":
        blocks["candidate.recurrent_bias"] = n
    if cell == "lru":
        blocks |= dict.fromkeys(("nu", "phi", "log_gamma"), n)
    tensors |= {f"layers.0.cell.{name}": random(size) for name, size in blocks.items()}
    tensors["layers.0.initial"] = random(STATES[cell] * rows)
    tensors |= {"readout.Y": random(k, rows), "readout.c": random(k)}
    config = {"name": "test", "model": {"cell": {"plugin": cell, "hidden": n, **options}}}
    metadata = {"format": "stiefel-network", "format_version": "1", "config_json": json.dumps(config), "input": inputs,
                "input_size": str(d), "output_size": str(k), "readout": readout, "targets": "values"}
    return tensors, metadata


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def modrelu(a, b, options, pairs):
    form = options["form"]
    if not pairs:
        shift = options["epsilon"] or {"eu": 0.01, "goru": 0.001}.get(form, 0)
        return np.sign(a) * np.maximum(np.abs(a) + b + shift * (form in ("eu", "goru")), 0)
    epsilon = options["epsilon"] or (0.01 if form == "eu" else 1e-5)
    z = a[:a.size // 2] + 1j * a[a.size // 2:]
    rho = np.abs(z)
    above, below = {"exact": (rho, rho), "arj": (rho, rho + epsilon), "eu": (rho + epsilon, rho + epsilon), "squared": (rho**2, rho**2),
                    "wis": (np.sqrt(epsilon + rho**2), np.sqrt(epsilon + rho**2) + epsilon)}[form]
    h = np.where(above + b > 0, (above + b) / below, 0) * z
    return np.concatenate([h.real, h.imag])


def constants_of_lru(block):
    """Re λ, Im λ and γ, every function rounded to the type of the file."""
    def rounded(function, x):
        return function(x.astype("float64")).astype(x.dtype)
    modulus, phase = rounded(np.exp, -rounded(np.exp, block["nu"])), rounded(np.exp, block["phi"])
    return modulus * rounded(np.cos, phase), modulus * rounded(np.sin, phase), rounded(np.exp, block["log_gamma"])


def activate(a, options, tensors, complex_map):
    kind = options["kind"]
    if kind == "modrelu":
        pairs = complex_map or options["pairs"] or options["form"] == "squared"
        return modrelu(a, tensors["layers.0.cell.activation.bias"], options, pairs)
    if kind == "oplu":
        first, second = np.split(a, 2) if options["pairing"] == "halves" else (a[0::2], a[1::2])
        pairs = np.maximum(first, second), np.minimum(first, second)
        return np.concatenate(pairs) if options["pairing"] == "halves" else np.stack(pairs, 1).ravel()
    if kind in ("leaky_relu", "prelu"):
        slope = tensors.get("layers.0.cell.activation.slope", options["slope"])
        return np.where(a > 0, a, slope * a)
    return {"identity": lambda x: x, "tanh": np.tanh, "relu": lambda x: np.maximum(x, 0)}[kind](a)


def run(tensors, metadata, inputs):
    """Outputs of every step of one sequence: numbers (time, features), or symbols (time)."""
    cell = json.loads(metadata["config_json"])["model"]["cell"]
    name, n = cell["plugin"], cell["hidden"]
    W = {key.split(".")[-2]: values for key, values in tensors.items() if key.endswith(".W")}
    block = {key.removeprefix("layers.0.cell."): values for key, values in tensors.items() if key.startswith("layers.0.cell.")}
    b, state = tensors["layers.0.input.b"], tensors["layers.0.initial"]
    complex_map = name == "elman" and W["recurrent"].ndim == 3
    outputs = []
    for x in inputs:
        if metadata["input"] == "none":
            a = b
        elif metadata["input"] == "symbols":
            a = b + (tensors["layers.0.input.V"][:, x] if x >= 0 else 0)
        else:
            a = tensors["layers.0.input.V"] @ x + b
        parts = np.split(a, PARTS[name])
        if name == "elman":
            W_h = W["recurrent"] @ state if not complex_map else None
            if complex_map:
                product = (W["recurrent"][..., 0] + 1j * W["recurrent"][..., 1]) @ (state[:n] + 1j * state[n:])
                W_h = np.concatenate([product.real, product.imag])
            if cell["transition"] == "outside":
                h = W_h + activate(cell["gain"] * a, cell["activation"], tensors, complex_map)
            else:
                h = activate(cell["gain"] * (W_h + a), cell["activation"], tensors, complex_map)
                h = state + cell["step"] * h if cell["transition"] == "residual" else h
            state = h
        elif name == "lstm":
            h, c = np.split(state, 2)
            p = {gate: block.get(f"peephole.{gate}", 0) for gate in ("input", "forget", "output")}
            fixed = cell["forget_bias"] if cell["forget_bias_fixed"] else 0
            i = sigmoid(parts[0] + W["input"] @ h + p["input"] * c)
            f = sigmoid(parts[1] + W["forget"] @ h + p["forget"] * c + fixed)
            c = f * c + i * np.tanh(parts[3] + W["candidate"] @ h)
            full = W["output_peephole"] @ c if "output_peephole" in W else 0
            h = sigmoid(parts[2] + W["output"] @ h + p["output"] * c + full) * np.tanh(c)
            state = np.concatenate([h, c])
        elif name in ("gru", "goru"):
            z, r = sigmoid(parts[1] + W["update"] @ state), sigmoid(parts[2] + W["reset"] @ state)
            if name == "goru":
                q = activate(parts[0] + r * (W["candidate"] @ state), cell["activation"], tensors, False)
            elif cell["reset"] == "before":
                q = np.tanh(parts[0] + W["candidate"] @ (r * state))
            else:
                q = np.tanh(parts[0] + r * (W["candidate"] @ state + block["candidate.recurrent_bias"]))
            keep = z if cell.get("update", "keep") == "keep" else 1 - z
            state = keep * state + (1 - keep) * q
        elif name == "cornn":
            y, z = np.split(state, 2)
            u = np.tanh(W["position"] @ y + W["velocity"] @ z + a)
            z = z + cell["step"] * (u - cell["gamma"] * y - cell["epsilon"] * z)
            state = np.concatenate([y + cell["step"] * z, z])
        elif name == "lem":
            y, z = np.split(state, 2)
            d, e = cell["step"] * sigmoid(parts[0] + W["step_z"] @ y), cell["step"] * sigmoid(parts[1] + W["step_y"] @ y)
            z = (1 - d) * z + d * np.tanh(parts[2] + W["z"] @ y)
            y = (1 - e) * y + e * np.tanh(parts[3] + W["y"] @ z)
            state = np.concatenate([y, z])
        elif name == "lru":
            re, im, gamma = constants_of_lru(block)
            x_t = (re + 1j * im) * (state[:n] + 1j * state[n:]) + gamma * (a[:n] + 1j * a[n:])
            state = np.concatenate([x_t.real, x_t.imag])
        elif name == "mingru":
            z, q = sigmoid(parts[0]), parts[1]
            if cell["candidate"] == "positive":
                q = np.where(q >= 0, q + 0.5, sigmoid(q))
            state = (1 - z) * state + z * q
        elif name == "lipschitz":
            def slope(h):
                return W["linear"] @ h + np.tanh(W["nonlinear"] @ h + a)
            middle = state + cell["step"] / 2 * slope(state) if cell["scheme"] == "rk2" else state
            state = state + cell["step"] * slope(middle)
        Y = tensors["readout.Y"]
        outputs.append(Y @ state[:Y.shape[1]] + tensors["readout.c"])
    return np.array(outputs)

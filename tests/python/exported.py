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
    "reflections": {"reflections": 2, "beta": "input", "nonlinearity": "identity", "additive": False, "map": False},
    "delta_product": {"heads": 2, "key_size": 4, "reflections": 2, "gate": False, "eigenvalues": [-1, 1], "key_activation": "silu"},
    "asrnn": {"a": 0.02, "b": 0.02, "epsilon": 0.01},
    "slstm": {"heads": 2, "forget_gate": "sigmoid", "forget_bias_exponent": 0.3},
    "lipschitz": {"step": 0.01, "scheme": "euler"},
}
MAPS = {"elman": [], "lstm": ["input", "forget", "output", "candidate"], "gru": ["update", "reset", "candidate"],
        "goru": ["update", "reset", "candidate"], "cornn": ["position", "velocity"], "lem": ["step_z", "step_y", "z", "y"], "lru": [],
        "mingru": [], "reflections": [], "delta_product": [], "asrnn": ["transition", "saturation"], "slstm": [], "lipschitz": ["nonlinear", "linear"]}
PARTS = {"elman": 1, "lstm": 4, "gru": 3, "goru": 3, "cornn": 1, "lem": 4, "lru": 1, "mingru": 2, "asrnn": 1, "slstm": 4, "lipschitz": 1}
STATES = {"elman": 1, "lstm": 2, "gru": 1, "goru": 1, "cornn": 2, "lem": 2, "lru": 1, "mingru": 1, "reflections": 1,
          "asrnn": 1, "slstm": 3, "lipschitz": 1}


SLSTM_GATES = ("input", "forget", "candidate", "output")


def write(path, tensors, metadata):
    header, data = {"__metadata__": metadata}, b""
    for name, values in tensors.items():
        kind = {"float32": "F32", "float64": "F64"}[str(values.dtype)]
        header[name] = {"dtype": kind, "shape": list(values.shape), "data_offsets": [len(data), len(data) + values.nbytes]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def network(cell, d=3, k=2, kind="float64", inputs="dense", readout="every", seed=0, **options):
    """Tensors and metadata of a random network of one layer; `options` are those of layer()."""
    return deep_network([{"cell": cell, **options}], d, k, kind, inputs, readout, seed)


def deep_network(layers, d=3, k=2, kind="float64", inputs="dense", readout="every", seed=0):
    """Tensors and metadata of a random network, from the arguments of layer() for each layer."""
    rng = np.random.default_rng(seed)
    tensors, models, width = {}, [], None if inputs == "none" else d
    for number, options in enumerate(layers):
        part, model, width = layer(rng, kind, width, first=number == 0, **options)
        tensors |= {f"layers.{number}.{name}": values for name, values in part.items()}
        models.append(model)
    tensors |= {"readout.Y": random(rng, kind, k, width), "readout.c": random(rng, kind, k)}
    config = {"name": "test", "model": models[0] if len(models) == 1 else {"layers": models}}
    metadata = {"format": "stiefel-network", "format_version": "1", "config_json": json.dumps(config), "input": inputs,
                "input_size": str(d), "output_size": str(k), "readout": readout, "targets": "values"}
    return tensors, metadata


def random(rng, kind, *shape):
    return (rng.standard_normal(shape) * 0.7).astype(kind)


def layer(rng, kind, width, first, cell, n=6, complex_map=False, activation=None, norm=None, gate=None, residual=None, bidirectional=None,
          dropout=None, initial_state="learned", **options):
    """Tensors of a random layer, its description, and the number of its outputs; the keys that are None are not described."""
    options = {**OPTIONS[cell], **options}
    if gate is True:  # that of the cell
        options["gate"], gate = True, None
    if activation:
        options["activation"] = {**ACTIVATION, **activation}
    tensors = direction(rng, kind, width, cell, n, complex_map, options)
    if initial_state == "zero":
        tensors["initial"] = np.zeros_like(tensors["initial"])
    rows = tensors["initial"].size // states(cell, options)
    if bidirectional:
        tensors |= {f"reverse.{name}": values for name, values in direction(rng, kind, width, cell, n, complex_map, options).items()}
        rows *= 2
    if norm in ("layer", "rms") and not first:
        tensors["norm.weight"] = random(rng, kind, width)
    if norm == "layer" and not first:
        tensors["norm.bias"] = random(rng, kind, width)
    if gate == "glu":
        tensors |= {"gate.weight": random(rng, kind, 2 * rows, rows), "gate.bias": random(rng, kind, 2 * rows)}
    keys = {"initial_state": {"kind": initial_state}, "norm": norm, "gate": gate, "residual": residual, "bidirectional": bidirectional, "dropout": dropout}
    model = {"cell": {"plugin": cell, "hidden": n, **options}, **{key: value for key, value in keys.items() if value is not None}}
    return tensors, model, rows


def states(cell, options):
    """Rows of the state for each row of h."""
    return options["key_size"] if cell == "delta_product" else STATES[cell]


def input_rows(cell, rows, options):
    if cell in PARTS:
        return PARTS[cell] * rows
    if cell == "delta_product":
        return options["heads"] * sum(parts_of_head(options, rows))
    return options["reflections"] * (rows + (options["beta"] == "input")) + rows * options["additive"]


def parts_of_head(cell, n):
    """Rows of keys, values, strengths, query and gate of delta_product."""
    r, key = cell["reflections"], cell["key_size"]
    return [r * key, r * n // cell["heads"], r, key, int(cell["gate"])]


def direction(rng, kind, width, cell, n, complex_map, options):
    """Tensors of a random cell, which reads `width` numbers at each step, or nothing."""
    rows = 2 * n if complex_map or cell == "lru" else n

    def orthogonal(n=n):
        return np.linalg.qr(rng.standard_normal((n, n)))[0].astype(kind)

    def unitary():
        matrix = np.linalg.qr(rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n)))[0]
        return np.stack([matrix.real, matrix.imag], 2).astype(kind)

    tensors = {}
    if width is not None:
        tensors["input.V"] = random(rng, kind, input_rows(cell, rows, options), width)
    tensors["input.b"] = random(rng, kind, input_rows(cell, rows, options))
    if cell == "elman" or options.get("map"):
        tensors["recurrent.W"] = unitary() if complex_map else orthogonal()
    for name in MAPS[cell] + (["output_peephole"] if options.get("peepholes") == "output_full" else []):
        tensors[f"recurrent.{name}.W"] = orthogonal()
    if cell == "slstm":
        for head in range(options["heads"]):
            tensors |= {f"recurrent.{gate}_{head + 1}.W": orthogonal(n // options["heads"]) for gate in SLSTM_GATES}
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
    if cell == "asrnn":
        blocks["scale"] = n
    if options.get("gate") is True:
        blocks |= dict.fromkeys(("gate.log_rate", "gate.bias"), options["heads"])
    tensors |= {f"cell.{name}": random(rng, kind, size) for name, size in blocks.items()}
    tensors["initial"] = random(rng, kind, states(cell, options) * rows)
    return tensors


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
        return modrelu(a, tensors["cell.activation.bias"], options, pairs)
    if kind == "oplu":
        first, second = np.split(a, 2) if options["pairing"] == "halves" else (a[0::2], a[1::2])
        pairs = np.maximum(first, second), np.minimum(first, second)
        return np.concatenate(pairs) if options["pairing"] == "halves" else np.stack(pairs, 1).ravel()
    if kind in ("leaky_relu", "prelu"):
        slope = tensors.get("cell.activation.slope", options["slope"])
        return np.where(a > 0, a, slope * a)
    return {"identity": lambda x: x, "tanh": np.tanh, "relu": lambda x: np.maximum(x, 0)}[kind](a)


def under(tensors, prefix):
    """The tensors whose names begin with the prefix, without it."""
    return {name.removeprefix(prefix): values for name, values in tensors.items() if name.startswith(prefix)}


def run(tensors, metadata, inputs):
    """Outputs of every step of one sequence: numbers (time, features), or symbols (time)."""
    model = json.loads(metadata["config_json"])["model"]
    layers = model.get("layers", 1)
    values, kind = inputs, metadata["input"]
    for number, options in enumerate([model] * layers if isinstance(layers, int) else layers):
        values = outputs_of_layer(under(tensors, f"layers.{number}."), options, values, kind, number)
        kind = "dense"
    Y = tensors["readout.Y"]
    return np.array([Y @ h[:Y.shape[1]] + tensors["readout.c"] for h in values])


def outputs_of_layer(tensors, options, inputs, kind, number):
    norm, read = options.get("norm", "none") if number else "none", inputs
    if norm == "layer":
        read = [(s - s.mean()) / np.sqrt(s.var() + 1e-5) * tensors["norm.weight"] + tensors["norm.bias"] for s in inputs]
    elif norm == "rms":
        read = [s / np.sqrt((s**2).mean() + 1e-5) * tensors["norm.weight"] for s in inputs]
    outputs = outputs_of_cell(tensors, options["cell"], read, kind)
    if options.get("bidirectional"):
        reverse = outputs_of_cell(under(tensors, "reverse."), options["cell"], read[::-1], kind)
        outputs = np.concatenate([outputs, reverse[::-1]], 1)
    if options.get("gate", "none") == "glu":
        first, second = np.split(outputs @ tensors["gate.weight"].T + tensors["gate.bias"], 2, 1)
        outputs = first * sigmoid(second)
    return inputs + outputs if options.get("residual") and number else outputs


def outputs_of_cell(tensors, cell, inputs, kind):
    state, outputs = tensors["initial"], []
    for x in inputs:
        a = tensors["input.b"]
        if kind == "symbols":
            a = a + (tensors["input.V"][:, x] if x >= 0 else 0)
        elif kind == "dense":
            a = tensors["input.V"] @ x + a
        state = step(tensors, cell, a, state)
        outputs.append(hidden(cell, a, state))
    return np.array(outputs)


def unit(cell, x):
    x = x * sigmoid(x) if cell["key_activation"] == "silu" else x
    return x / np.sqrt(x @ x + 1e-12)


def heads_of(cell, a):
    """Keys, values, strengths, query and gate of each head of delta_product."""
    places = np.cumsum(parts_of_head(cell, cell["hidden"]))[:-1]
    return [np.split(part, places) for part in np.split(a, cell["heads"])]


def hidden(cell, a, state):
    """h after a step with a = V x + b that ended in this state."""
    if cell["plugin"] != "delta_product":
        return state[:state.size // STATES[cell["plugin"]]]
    return np.concatenate([unit(cell, query) @ S for (_, _, _, query, _), S in
                           zip(heads_of(cell, a), state.reshape(cell["heads"], cell["key_size"], -1))])


def step(tensors, cell, a, state):
    """The state after a step with a = V x + b."""
    name, n = cell["plugin"], cell["hidden"]
    W = {key.split(".")[-2]: values for key, values in tensors.items() if key.startswith("recurrent.")}
    block, parts = under(tensors, "cell."), np.split(a, PARTS.get(name, 1))
    if name == "elman":
        complex_map = W["recurrent"].ndim == 3
        if complex_map:
            product = (W["recurrent"][..., 0] + 1j * W["recurrent"][..., 1]) @ (state[:n] + 1j * state[n:])
        W_h = np.concatenate([product.real, product.imag]) if complex_map else W["recurrent"] @ state
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
    elif name == "reflections":
        r, n = cell["reflections"], len(state)
        state = W["recurrent"] @ state if cell["map"] else state
        for j in range(r):
            k = a[j * n:(j + 1) * n] / np.linalg.norm(a[j * n:(j + 1) * n])
            state = state - (2 * sigmoid(a[r * n + j]) if cell["beta"] == "input" else 2) * k * (k @ state)
        state = state + (a[-n:] if cell["additive"] else 0)
        state = np.tanh(state) if cell["nonlinearity"] == "tanh" else state
    elif name == "asrnn":
        D = np.abs(block["scale"]) + cell["epsilon"]
        state = W["saturation"].T @ np.tanh(W["saturation"] @ (D * (a + W["transition"] @ state))) / D
    elif name == "slstm":
        h, y, log_n = (part.reshape(cell["heads"], -1) for part in np.split(state, 3))
        i, f, z, o = a.reshape(cell["heads"], 4, -1).swapaxes(0, 1) + [
            [W[f"{gate}_{head + 1}"] @ h[head] for head in range(cell["heads"])] for gate in SLSTM_GATES]
        kept = log_n + (f if cell["forget_gate"] == "exponential" else -np.logaddexp(0, -f))
        kept = np.where((y == 0) & (log_n == 0), -np.inf, kept)
        log_n = np.logaddexp(i, kept)
        y = y * np.exp(kept - log_n) + np.tanh(z) * np.exp(i - log_n)
        state = np.concatenate([(sigmoid(o) * y).ravel(), y.ravel(), np.where(log_n == 0, 1e-30, log_n).ravel()])
    elif name == "delta_product":
        matrices = []
        for head, (keys, values, strengths, _, gate) in enumerate(heads_of(cell, a)):
            S = np.split(state, cell["heads"])[head].reshape(cell["key_size"], -1).T
            if cell["gate"]:
                S = S * np.exp(-np.exp(block["gate.log_rate"][head]) * np.logaddexp(0, gate[0] + block["gate.bias"][head]))
            for k, v, b in zip(np.split(keys, cell["reflections"]), np.split(values, cell["reflections"]), strengths):
                k, beta = unit(cell, k), sigmoid(b) * (2 if cell["eigenvalues"] == [-1, 1] else 1)
                S = S + np.outer(beta * (v - S @ k), k)
            matrices.append(S.T.ravel())
        state = np.concatenate(matrices)
    elif name == "lipschitz":
        def slope(h):
            return W["linear"] @ h + np.tanh(W["nonlinear"] @ h + a)
        middle = state + cell["step"] / 2 * slope(state) if cell["scheme"] == "rk2" else state
        state = state + cell["step"] * slope(middle)
    return state

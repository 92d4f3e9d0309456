"""The process that runs a map, a task or an optimizer written in Python: worker.py FILE ROLE THREADS.

The plugin `python` starts it with a socket as descriptor 3, on which requests arrive and replies leave, and a pipe as
descriptor 4, whose other end closes when the program ends. Messages are sequences of fields: 'i' and 8 bytes, 'd' and 8
bytes, or 's', 4 bytes of length and text. A reply begins with an exit code of the program; unless that is 0, a
sentence follows. Numbers of arrays are in memory that the worker creates and shares with the program.
"""

from __future__ import annotations

import ast
import difflib
import importlib.util
import os
import signal
import sys
import typing

_SOCKET, _LIFELINE = 3, 4
_LARGEST = 1 << 17  # bytes of a message
_USAGE, _PLUGIN, _EXHAUSTED = 2, 3, 8  # exit codes of the program
_ANNOTATIONS: dict[typing.Any, str] = {bool: "bool", int: "int", float: "float", str: "str"}
_SPLITS = ("train", "validation", "test")


class Fault(Exception):
    """A mistake in the file or in what its methods return, in a sentence with its place."""

    def __init__(self, sentence: str, code: int = _PLUGIN):
        super().__init__(sentence)
        self.code = code


def _package() -> None:
    """Makes `import stiefel` find the package of this file, whichever the interpreter has installed."""
    folder = os.path.dirname(os.path.abspath(__file__))
    spec = importlib.util.spec_from_file_location(
        "stiefel", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["stiefel"] = module
    spec.loader.exec_module(module)


# Messages


def encode(fields: typing.Iterable[int | float | str]) -> bytes:
    import struct

    message = bytearray()
    for field in fields:
        if isinstance(field, str):
            text = field.encode(errors="replace")
            message += b"s" + struct.pack("=I", len(text)) + text
        elif isinstance(field, float):
            message += b"d" + struct.pack("=d", field)
        else:
            message += b"i" + struct.pack("=q", field)
    return bytes(message)


def decode(message: bytes) -> list[typing.Any]:
    import struct

    fields: list[typing.Any] = []
    place = 0
    while place < len(message):
        kind, place = message[place : place + 1], place + 1
        if kind == b"s":
            (size,) = struct.unpack_from("=I", message, place)
            fields.append(message[place + 4 : place + 4 + size].decode())
            place += 4 + size
        else:
            fields.append(struct.unpack_from("=d" if kind == b"d" else "=q", message, place)[0])
            place += 8
    return fields


# The file and its class


class Source:
    """The Python file: its module, and the class of the role."""

    def __init__(self, path: str, role: str):
        self.path, self.role = path, role
        with open(path, "rb") as file:
            self.text = file.read()
        sys.path.insert(0, os.path.dirname(path))
        name = os.path.splitext(os.path.basename(path))[0]
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec and spec.loader
        self.module = importlib.util.module_from_spec(spec)
        sys.modules.setdefault(name, self.module)
        exec(compile(self.text, path, "exec", dont_inherit=True), self.module.__dict__)
        self.kind = self._find_class()

    def place(self, line: int) -> str:
        return f"{self.path}:{line}"

    def _find_class(self) -> type:
        from stiefel import roles

        bases = {"parametrisation": roles.Map, "task": roles.Task, "optimizer": roles.Optimizer}
        classes = {role: self._classes_from(base) for role, base in bases.items()}
        found, wanted = classes[self.role], f"stiefel.{bases[self.role].__name__}"
        if not found:
            others = " and ".join(f"stiefel.{bases[role].__name__}" for role in bases if classes[role])
            raise Fault(
                f"{self.path} has no class derived from {wanted}" + (f", only from {others}" if others else ""), _USAGE
            )
        if len(found) > 1:
            names = ", ".join(value.__name__ for value in found)
            raise Fault(f"{self.path} has {len(found)} classes derived from {wanted} ({names}); leave one", _USAGE)
        return found[0]

    def _classes_from(self, base: type) -> list[type]:
        values = [v for v in vars(self.module).values() if isinstance(v, type)]
        return [v for v in dict.fromkeys(values) if issubclass(v, base) and v is not base]

    def options(self) -> list[tuple[str, str, str, typing.Any, list[str]]]:
        """Key, meaning, type, default or Ellipsis, and choices of each option, in the order of the file."""
        meanings, lines = self._comments(), self._lines()
        found: dict[str, tuple[str, str, str, typing.Any, list[str]]] = {}
        for owner in reversed(self._classes()):
            hints = self._annotations(owner)
            for name, value in vars(owner).items():
                plain = isinstance(value, (bool, int, float, str, list, tuple))
                if plain and name not in hints and not name.startswith("_") and not self._of_base(name):
                    raise Fault(
                        f"{self.place(lines.get((owner.__name__, name), 1))}: {name} has no annotation, so it is no "
                        f"option: write `{name}: {type(value).__name__} = {value!r}`, or `_{name}` for a constant",
                        _USAGE,
                    )
            for name, hint in hints.items():
                if name.startswith("_") or typing.get_origin(hint) is typing.ClassVar or self._of_base(name):
                    continue
                place = self.place(lines.get((owner.__name__, name), 1))
                kind, choices = self._type_of(hint, name, place)
                meaning = meanings.get((owner.__name__, name)) or f"an option of {self.kind.__name__}"
                default = self._default(getattr(self.kind, name, ...), kind, name, place)
                found[name] = (name, meaning, kind, default, choices)
        return list(found.values())

    def _classes(self) -> list[type]:
        """The class and its bases that are not stiefel's."""
        from stiefel import roles

        return [c for c in self.kind.__mro__ if c is not object and c.__module__ != roles.__name__]

    def _of_base(self, name: str) -> bool:
        """Whether stiefel's own class has an attribute of this name."""
        return any(
            name in vars(c) or name in vars(c).get("__annotations__", {})
            for c in self.kind.__mro__
            if c is not object and c not in self._classes()
        )

    def _annotations(self, owner: type) -> dict[str, typing.Any]:
        import inspect

        there = self.module if owner.__module__ == self.module.__name__ else sys.modules[owner.__module__]
        if sys.version_info >= (3, 10):
            return inspect.get_annotations(owner, globals=vars(there), eval_str=True)
        hints = vars(owner).get("__annotations__", {})
        return {name: eval(hint, vars(there)) if isinstance(hint, str) else hint for name, hint in hints.items()}

    def _type_of(self, hint: typing.Any, name: str, place: str) -> tuple[str, list[str]]:
        arguments = typing.get_args(hint)
        if hint in _ANNOTATIONS:
            return _ANNOTATIONS[hint], []
        if typing.get_origin(hint) is typing.Literal and all(isinstance(a, str) for a in arguments):
            return "str", list(arguments)
        if typing.get_origin(hint) is list and arguments[0] in (int, float, str):
            return f"list[{_ANNOTATIONS[arguments[0]]}]", []
        raise Fault(
            f"{place}: the option {name} is annotated with {getattr(hint, '__name__', hint)}; use bool, int, float, "
            "str, list[int], list[float], list[str] or a Literal of strings",
            _USAGE,
        )

    def _default(self, value: typing.Any, kind: str, name: str, place: str) -> typing.Any:
        if value is ...:
            return value
        types = {"bool": bool, "int": int, "float": (int, float), "str": str}
        entries = value if kind.startswith("list") and isinstance(value, list) else [value]
        wanted = types[kind[5:-1] if kind.startswith("list") else kind]
        if (kind.startswith("list") and not isinstance(value, list)) or not all(
            isinstance(e, wanted) and (kind == "bool" or not isinstance(e, bool)) for e in entries
        ):
            raise Fault(f"{place}: the default of {name} is {value!r}, but its annotation is {kind}", _USAGE)
        return value

    def _fields(self) -> typing.Iterator[tuple[str, ast.stmt, str]]:
        for node in ast.walk(ast.parse(self.text)):
            for statement in node.body if isinstance(node, ast.ClassDef) else []:
                targets = (
                    [statement.target]
                    if isinstance(statement, ast.AnnAssign)
                    else statement.targets
                    if isinstance(statement, ast.Assign)
                    else []
                )
                for target in targets:
                    if isinstance(target, ast.Name):
                        yield typing.cast(ast.ClassDef, node).name, statement, target.id

    def _lines(self) -> dict[tuple[str, str], int]:
        return {(owner, name): statement.lineno for owner, statement, name in self._fields()}

    def _comments(self) -> dict[tuple[str, str], str]:
        """The comments that end the lines of fields."""
        import io
        import tokenize

        tokens = tokenize.tokenize(io.BytesIO(self.text).readline)
        comments = {t.start[0]: t.string.lstrip("# ").rstrip() for t in tokens if t.type == tokenize.COMMENT}
        return {
            (owner, name): comments[statement.end_lineno or 0]
            for owner, statement, name in self._fields()
            if (statement.end_lineno or 0) in comments
        }

    def ready(self) -> list[int | float | str]:
        fields: list[int | float | str] = [_versions()]
        options = self.options()
        fields.append(len(options))
        for key, meaning, kind, default, choices in options:
            values = [] if default is ... else default if isinstance(default, list) else [default]
            fields += [key, meaning, kind, int(default is ...), len(values)]
            fields += [str(v).lower() if isinstance(v, bool) else repr(v) if isinstance(v, float) else str(v) for v in values]
            fields += [len(choices), *choices]
        return fields


def _versions() -> str:
    """Of the interpreter and of the libraries that the file has imported."""
    found = [f"Python {sys.version.split()[0]}"]
    for module, name in (("numpy", "NumPy"), ("torch", "torch"), ("jax", "JAX")):
        if module in sys.modules:
            found.append(f"{name} {getattr(sys.modules[module], '__version__', 'of unknown version')}")
    return ", ".join(found)


# Objects


class Memory:
    """Memory that is shared with the program, as NumPy arrays: their places are told to the program."""

    def __init__(self, sizes: typing.Iterable[int]):
        """Makes room for parts of these sizes in bytes."""
        import mmap

        self.offsets = []
        end = 0
        for size in sizes:
            self.offsets.append(end)
            end += -(-size // 64) * 64
        self.descriptor = os.memfd_create("stiefel-python", os.MFD_CLOEXEC)
        os.ftruncate(self.descriptor, max(end, 64))
        self._map = mmap.mmap(self.descriptor, max(end, 64))

    def array(self, part: int, shape: tuple[int, ...], dtype: typing.Any, order: str = "F") -> typing.Any:
        import numpy as np

        return np.ndarray(shape, dtype, self._map, self.offsets[part], order=typing.cast(typing.Any, order))


def _library(value: typing.Any) -> str:
    """numpy, torch, jax, or the name of the type."""
    import numpy as np

    if isinstance(value, np.ndarray):
        return "numpy"
    for name in ("torch", "jax"):
        module = sys.modules.get(name)
        if module and isinstance(value, module.Tensor if name == "torch" else module.Array):
            return name
    return type(value).__name__


def _checked(value: typing.Any, shape: tuple[int, ...], dtype: typing.Any, what: str) -> typing.Any:
    """The value as a NumPy array of this shape and type; a Fault says what it is instead."""
    import numpy as np

    if not isinstance(value, np.ndarray):
        raise Fault(f"{what} is {_article(type(value).__name__)}, not an array")
    if value.shape != shape:
        raise Fault(f"{what} has the shape {value.shape}, but must have {shape}")
    if value.dtype != dtype:
        raise Fault(f"{what} is {value.dtype}, but the run computes in {dtype}: use dtype=self.dtype")
    return value


def _article(name: str) -> str:
    return ("an " if name[:1].lower() in "aeiou" else "a ") + name


def _named(values: typing.Any, names: typing.Collection[str], what: str, all_of_them: bool = True) -> dict[str, typing.Any]:
    """A dictionary with these names; a Fault says what is missing or unknown."""
    if not isinstance(values, typing.Mapping):
        raise Fault(f"{what} returns {_article(type(values).__name__)}, but must return a dictionary")
    for name in values:
        if name not in names:
            close = difflib.get_close_matches(str(name), names, 1)
            raise Fault(
                f"{what} returns `{name}`; "
                + (f"did you mean `{close[0]}`?" if close else f"it can have {', '.join(names) or 'nothing'}")
            )
    missing = [name for name in names if name not in values]
    if missing and all_of_them:
        raise Fault(f"{what} does not return `{missing[0]}`")
    return dict(values)


class Subject:
    """An object of the file's class, its options set."""

    def __init__(self, source: Source, scalar: str, options: dict[str, typing.Any], **attributes: typing.Any):
        import numpy as np

        self.name = source.kind.__name__
        self.dtype = np.dtype(scalar)
        self.object: typing.Any = source.kind.__new__(source.kind)
        clash = set(options) & ({"dtype", *attributes})
        if clash:
            raise Fault(f"the option {clash.pop()} of {self.name} has the name of an attribute of its base class", _USAGE)
        for name, value in {**options, **attributes, "dtype": self.dtype}.items():
            setattr(self.object, name, value)
        self.object.__init__()

    def settle_state(self) -> list[int | float | str]:
        """Notes the names and shapes of the state. Returns their number, then name, type and size of each."""
        self.form = {name: (value.dtype, value.shape) for name, value in self._state().items()}
        fields: list[int | float | str] = [len(self.form)]
        for name, (dtype, shape) in self.form.items():
            fields += [name, str(dtype), _count(shape)]
        return fields

    def _state(self) -> dict[str, typing.Any]:
        import numpy as np

        state = self.object.state()
        what = f"state() of {self.name}"
        if not isinstance(state, typing.Mapping):
            raise Fault(f"{what} returns {_article(type(state).__name__)}, but must return a dictionary")
        arrays = {}
        for name, value in state.items():
            array = np.asarray(value)
            if array.dtype.kind in "bu" and array.dtype.itemsize < 8:
                array = array.astype(np.int64)
            if array.dtype not in (np.float32, np.float64, np.int64):
                raise Fault(
                    f"{what} has `{name}`, {_article(type(value).__name__)}, which cannot be saved: return numbers, and "
                    "arrays of float32, float64 or int64"
                )
            arrays[str(name)] = array
        return arrays

    def save(self, memory: Memory, first: int) -> None:
        state = _named(self._state(), self.form, f"state() of {self.name}")
        for k, (name, (dtype, shape)) in enumerate(self.form.items()):
            value = state[name]
            if (value.dtype, value.shape) != (dtype, shape):
                raise Fault(
                    f"`{name}` of state() of {self.name} was {dtype} {shape} at first and is now {value.dtype} "
                    f"{value.shape}, which cannot be saved: keep its size"
                )
            memory.array(first + k, shape, dtype)[...] = value

    def load(self, memory: Memory, first: int) -> None:
        self.object.load(
            {
                name: memory.array(first + k, shape, dtype).copy() if shape else memory.array(first + k, shape, dtype)[()]
                for k, (name, (dtype, shape)) in enumerate(self.form.items())
            }
        )

    def state_sizes(self) -> list[int]:
        return [dtype.itemsize * _count(shape) for dtype, shape in self.form.values()]


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for length in shape:
        count *= length
    return count


# How W is differentiated: call(f, parameters) computes f, and pullback(dW) the gradients by name.


class ByHand:
    library = "numpy"

    def __init__(self, pullback: typing.Callable[..., typing.Any] | None, _: typing.Any):
        self._pullback = pullback

    def call(self, f: typing.Callable[..., typing.Any], parameters: dict[str, typing.Any]) -> typing.Any:
        self._parameters = parameters
        return f(**parameters)

    def pullback(self, dW: typing.Any) -> typing.Any:
        assert self._pullback
        return self._pullback(dW=dW, **self._parameters)


class ByTorch:
    library = "torch"

    def __init__(self, _: typing.Any, dtype: typing.Any):
        import torch

        self._torch: typing.Any = torch

    def call(self, f: typing.Callable[..., typing.Any], parameters: dict[str, typing.Any]) -> typing.Any:
        self._parameters = {name: self._torch.from_numpy(value).requires_grad_() for name, value in parameters.items()}
        with self._torch.enable_grad():
            self._value = f(**self._parameters)
        return self._value.detach().numpy() if isinstance(self._value, self._torch.Tensor) else self._value

    def pullback(self, dW: typing.Any) -> typing.Any:
        grads = [self._torch.zeros_like(p) for p in self._parameters.values()]
        if self._value.requires_grad:
            found = self._torch.autograd.grad(
                self._value,
                list(self._parameters.values()),
                self._torch.from_numpy(dW),
                retain_graph=True,
                allow_unused=True,
            )
            grads = [zero if grad is None else grad for zero, grad in zip(grads, found)]
        return {name: grad.numpy() for name, grad in zip(self._parameters, grads)}


class ByJax:
    library = "jax"

    def __init__(self, _: typing.Any, dtype: typing.Any):
        import jax

        self._jax: typing.Any = jax
        if dtype == "float64" and not jax.config.jax_enable_x64:
            raise Fault(
                "JAX computes without 64 bits, but the run in float64: put "
                '`jax.config.update("jax_enable_x64", True)` after `import jax`, or `scalar: float32` in the experiment'
            )

    def call(self, f: typing.Callable[..., typing.Any], parameters: dict[str, typing.Any]) -> typing.Any:
        import numpy as np

        arrays = {name: self._jax.numpy.asarray(value) for name, value in parameters.items()}
        value, self._vjp = self._jax.vjp(lambda given: f(**given), arrays)
        return np.asarray(value) if isinstance(value, self._jax.Array) else value

    def pullback(self, dW: typing.Any) -> typing.Any:
        import numpy as np

        (grads,) = self._vjp(self._jax.numpy.asarray(dW))
        return {name: np.asarray(grad) for name, grad in grads.items()}


class MapObject:
    """A map: parts of the memory are θ, dθ, W, dW and the state."""

    def __init__(self, source: Source, scalar: str, rows: int, cols: int, options: dict[str, typing.Any]):
        from stiefel import roles
        from stiefel.process import Error

        if rows != cols and not source.kind.rectangular:  # type: ignore[attr-defined]
            raise Error(f"{source.kind.__name__} needs a square map, but this one has {rows} rows and {cols} columns")
        self.subject = Subject(source, scalar, options, rows=rows, cols=cols, n=rows)
        self.object, self.name = self.subject.object, self.subject.name
        self.shape, self.dtype = (rows, cols), self.subject.dtype
        self.kind = source.kind
        self._roles: typing.Any = roles
        shapes = self.object.parameters(rows)
        if not isinstance(shapes, typing.Mapping):
            raise Fault(f"parameters() of {self.name} returns {_article(type(shapes).__name__)}, but must return a dictionary")
        self.shapes = {str(k): tuple(int(d) for d in ((v,) if isinstance(v, int) else v)) for k, v in shapes.items()}
        for name, shape in self.shapes.items():
            if len(shape) not in (1, 2) or min(shape) < 1:
                raise Fault(f"the parameter {name} of {self.name} has the shape {shape}: one or two positive sizes are possible")
        self.matrix_by: typing.Any = None
        self.penalty_by: typing.Any = None

    def _has(self, method: str) -> bool:
        return callable(getattr(self.kind, method, None))

    def created(self) -> tuple[list[int | float | str], int]:
        claim = self.object.claim
        bounds = claim if isinstance(claim, tuple) and len(claim) == 2 else (0.0, 0.0)
        if claim not in ("none", "orthogonal") and bounds is not claim:
            raise Fault(f'claim of {self.name} is {claim!r}; it can be "none", "orthogonal" or a pair of bounds', _USAGE)
        fields: list[int | float | str] = [len(self.shapes)]
        for name, shape in self.shapes.items():
            fields += [name, *(shape if len(shape) == 2 else (shape[0], 0))]
        fields += ["bounded" if bounds is claim else claim, float(bounds[0]), float(bounds[1])]
        fields += [int(self._has(m)) for m in ("penalty", "after_step", "record")]
        fields += self.subject.settle_state()
        size = self.dtype.itemsize
        count, matrix = sum(map(_count, self.shapes.values())), _count(self.shape)
        self.memory = Memory([count * size, count * size, matrix * size, matrix * size, *self.subject.state_sizes()])
        return [*fields, len(self.memory.offsets), *self.memory.offsets], self.memory.descriptor

    def _blocks(self, part: int) -> dict[str, typing.Any]:
        """Views of θ (0) or dθ (1)."""
        count = sum(map(_count, self.shapes.values()))
        flat = self.memory.array(part, (count,), self.dtype)
        views, place = {}, 0
        for name, shape in self.shapes.items():
            views[name] = flat[place : place + _count(shape)].reshape(shape, order="F")
            place += _count(shape)
        return views

    def _parameters(self) -> dict[str, typing.Any]:
        return {name: view.copy() for name, view in self._blocks(0).items()}

    def _assign(self, part: int, values: dict[str, typing.Any], what: str) -> None:
        for name, view in self._blocks(part).items():
            if name in values:
                view[...] = _checked(values[name], view.shape, self.dtype, f"`{name}` of {what}")

    def initial(self, seed: int) -> list[int | float | str]:
        import numpy as np

        what = f"initial() of {self.name}"
        values = _named(self.object.initial(np.random.default_rng(seed % 2**64)), self.shapes, what)
        for name, value in values.items():
            if isinstance(value, np.ndarray) and value.dtype.kind == "f":  # a generator's numbers are float64
                values[name] = value.astype(self.dtype)
        self._assign(0, values, what)
        return []

    def _choose(self, f: typing.Callable[..., typing.Any], by_hand: typing.Any, what: str) -> typing.Any:
        """Tries the libraries on the first θ. The first whose array f returns differentiates it."""
        if by_hand:
            return ByHand(by_hand, self.dtype)
        failure: Exception | None = None
        for route in (ByTorch, ByJax):
            if route.library not in sys.modules:
                continue
            try:
                by = route(None, self.dtype)
                if route is ByJax:
                    returned = f(**{n: sys.modules["jax"].numpy.asarray(v) for n, v in self._parameters().items()})  # type: ignore[attr-defined]
                else:
                    by.call(f, self._parameters())
                    returned = by._value
                if _library(returned) == route.library:
                    return by
            except Exception as error:
                failure = failure or error
        if failure:
            raise failure
        raise Fault(
            f"{what} is not computed with torch or JAX, whose derivatives are known: write pullback(self, dW, "
            f"{', '.join(self.shapes)}), or import torch or jax and use it"
        )

    def matrix(self) -> list[int | float | str]:
        if self.matrix_by is None:
            self.matrix_by = self._choose(self.object.matrix, getattr(self.object, "pullback", None), f"matrix() of {self.name}")
        W = self.matrix_by.call(self.object.matrix, self._parameters())
        self.memory.array(2, self.shape, self.dtype)[...] = _checked(W, self.shape, self.dtype, f"matrix() of {self.name}")
        return []

    def pullback(self) -> list[int | float | str]:
        what = f"pullback() of {self.name}"
        grads = self.matrix_by.pullback(self.memory.array(3, self.shape, self.dtype).copy())
        self._assign(1, _named(grads, self.shapes, what), what)
        return []

    def penalty(self) -> list[int | float | str]:
        import numpy as np

        what = f"penalty() of {self.name}"
        if self.penalty_by is None:
            self.penalty_by = self._choose(self.object.penalty, getattr(self.object, "pullback", None), what)
        value = self.penalty_by.call(self.object.penalty, self._parameters())
        if isinstance(self.penalty_by, ByHand):
            if not isinstance(value, tuple) or len(value) != 2:
                raise Fault(f"{what} must return its value and a dictionary of derivatives")
            value, grads = value
        else:
            value = _checked(value, (), self.dtype, what)
            grads = self.penalty_by.pullback(np.ones((), self.dtype))
        self._assign(1, _named(grads, self.shapes, what), what)
        return [float(value)]

    def after_step(self) -> list[int | float | str]:
        what = f"after_step() of {self.name}"
        changed = self.object.after_step(**self._parameters())
        self._assign(0, {} if changed is None else _named(changed, self.shapes, what, all_of_them=False), what)
        return []

    def record(self) -> list[int | float | str]:
        scalars = self.object.record()
        fields: list[int | float | str] = [len(scalars)]
        for name, value in scalars.items():
            fields += [str(name), float(value)]
        return fields

    def save(self) -> list[int | float | str]:
        self.subject.save(self.memory, 4)
        return []

    def load(self) -> list[int | float | str]:
        self.subject.load(self.memory, 4)
        return []


class TaskObject:
    """A task: parts of the memory are inputs or symbols, targets or labels, weights and lengths of the last batch."""

    SHAPE = {
        "input": "dense", "input_size": 0, "output_size": 0, "readout": "every", "labels": False, "steps": 0,
        "streams": False, "training_set": 0, "predicts_inputs": False,
    }  # fmt: skip

    def __init__(
        self, source: Source, scalar: str, seed: int, batch: int, data: str, options: dict[str, typing.Any]
    ):
        self.subject = Subject(source, scalar, options, seed=seed, batch_size=batch, data_directory=data)
        self.object, self.name, self.dtype = self.subject.object, self.subject.name, self.subject.dtype
        what = f"shape() of {self.name}"
        self.shape = {**self.SHAPE, **_named(self.object.shape(), self.SHAPE, what, all_of_them=False)}
        for name, default in self.SHAPE.items():
            value = self.shape[name]
            right = isinstance(value, str if isinstance(default, str) else (bool, int))
            if not right or (isinstance(default, int) and value < 0):
                raise Fault(f"`{name}` of {what} is {value!r}, but must be like {default!r}", _USAGE)
        for name, choices in (("input", ("dense", "symbols", "none")), ("readout", ("every", "last"))):
            if self.shape[name] not in choices:
                raise Fault(f"`{name}` of {what} is {self.shape[name]!r}; choose from {', '.join(choices)}", _USAGE)
        losses = ("mean_square", "softmax_cross_entropy", "bernoulli")
        self.loss = self.object.loss or losses[bool(self.shape["labels"])]
        if self.loss not in losses:
            raise Fault(f"loss of {self.name} is {self.loss!r}; choose from {', '.join(losses)}", _USAGE)
        if (self.loss == "softmax_cross_entropy") != bool(self.shape["labels"]):
            raise Fault(f"loss of {self.name} is {self.loss}, but labels is {self.shape['labels']}", _USAGE)
        self.memory: Memory | None = None
        self.sizes: list[int] = []

    def created(self) -> tuple[list[int | float | str], int]:
        s = self.shape
        files = [os.fspath(path) for path in self.object.files()]
        fields: list[int | float | str] = [s[name] if isinstance(s[name], str) else int(s[name]) for name in self.SHAPE]
        fields += [self.loss, float(self.object.baseline)]
        for split in _SPLITS:
            count = self.object.batches(split)
            if not isinstance(count, int):
                raise Fault(f"batches({split!r}) of {self.name} returns {_article(type(count).__name__)}, not an int")
            fields.append(count)
        return [*fields, len(files), *files], -1

    def _part(self, batch: dict[str, typing.Any], name: str, shape: tuple[int, ...], dtype: typing.Any, what: str) -> typing.Any:
        """An array of the batch, integers of any width as int32."""
        import numpy as np

        value = batch[name]
        if _library(value) == "torch":
            value = value.detach().numpy()
        value = np.asarray(value)
        if dtype == np.int32 and value.dtype.kind in "iub":
            value = value.astype(np.int32)
        elif dtype != np.int32 and value.dtype.kind == "f":
            value = value.astype(self.dtype)
        return _checked(value, shape, dtype, f"`{name}` of {what}")

    def batch(self, split: int, index: int) -> tuple[list[int | float | str], int]:
        import numpy as np

        s = self.shape
        what = f"batch({_SPLITS[split]!r}, {index}) of {self.name}"
        inputs = {"dense": ["inputs"], "symbols": ["symbols"], "none": []}[s["input"]]
        goal = "labels" if s["labels"] else "targets"
        batch = _named(self.object.batch(_SPLITS[split], index), [*inputs, goal, "lengths", "weights"], what, False)
        for name in (*inputs, goal):
            if name not in batch:
                raise Fault(f"{what} does not return `{name}`")
        first = np.shape(batch[inputs[0] if inputs else goal])
        if len(first) < 1 or (len(first) < 2 and (inputs or s["readout"] == "every")):
            raise Fault(f"`{inputs[0] if inputs else goal}` of {what} has the shape {first}, but must begin with sequences and steps")
        B, T = first[0], first[1] if len(first) > 1 and (inputs or s["readout"] == "every") else s["steps"]
        every = s["readout"] == "every"
        scored = (B, T) if every else (B,)

        def steps_first(array: typing.Any, per_step: bool = True) -> typing.Any:
            return np.ascontiguousarray(np.swapaxes(array, 0, 1) if per_step else array)

        parts = []
        if s["input"] == "dense":
            parts.append(steps_first(self._part(batch, "inputs", (B, T, s["input_size"]), self.dtype, what)))
        elif s["input"] == "symbols":
            parts.append(steps_first(self._part(batch, "symbols", (B, T), np.int32, what)))
        else:
            parts.append(np.empty(0, self.dtype))
        if s["labels"]:
            parts.append(steps_first(self._part(batch, "labels", scored, np.int32, what), every))
        else:
            parts.append(steps_first(self._part(batch, "targets", (*scored, s["output_size"]), self.dtype, what), every))
        if "weights" in batch:
            parts.append(steps_first(self._part(batch, "weights", scored, self.dtype, what), every))
        else:
            parts.append(np.empty(0, self.dtype))
        if "lengths" in batch:
            parts.append(self._part(batch, "lengths", (B,), np.int32, what))
        else:
            parts.append(np.empty(0, np.int32))

        descriptor = -1
        sizes = [part.nbytes for part in parts]
        if self.memory is None or any(size > room for size, room in zip(sizes, self.sizes)):
            self.sizes = sizes
            self.memory = Memory(sizes)
            descriptor = self.memory.descriptor
        for k, part in enumerate(parts):
            self.memory.array(k, part.shape, part.dtype, "C")[...] = part
        fields: list[int | float | str] = [B, T]
        for part, offset in zip(parts, self.memory.offsets):
            fields += [offset, part.size]
        return fields, descriptor


class OptimizerObject:
    """An optimizer: parts of the memory are θ and gradient of each block in turn, and then the state."""

    def __init__(self, source: Source, scalar: str, options: dict[str, typing.Any]):
        self.subject = Subject(source, scalar, options)
        self.object, self.name, self.dtype = self.subject.object, self.subject.name, self.subject.dtype
        self.source = source

    def created(self) -> tuple[list[int | float | str], int]:
        return [int(bool(self.object.decouples))], -1

    def attach(self, *fields: typing.Any) -> tuple[list[int | float | str], int]:
        from stiefel.roles import Block

        self.blocks = [
            Block(name, (rows, cols) if cols else (rows,))
            for name, rows, cols in zip(fields[0::3], fields[1::3], fields[2::3])
        ]
        self.object.attach(list(self.blocks))
        state = self.subject.settle_state()
        sizes = [self.dtype.itemsize * _count(block.shape) for block in self.blocks for _ in range(2)]
        self.memory = Memory([*sizes, *self.subject.state_sizes()])
        return [*state, len(self.memory.offsets), *self.memory.offsets], self.memory.descriptor

    def step(self, block: int, rate: float) -> list[int | float | str]:
        shape = self.blocks[block].shape
        theta = self.memory.array(2 * block, shape, self.dtype)
        gradient = self.memory.array(2 * block + 1, shape, self.dtype)
        gradient.flags.writeable = False
        self.object.step(block, rate, theta, gradient)
        return []

    def save(self) -> list[int | float | str]:
        self.subject.save(self.memory, 2 * len(self.blocks))
        return []

    def load(self) -> list[int | float | str]:
        self.subject.load(self.memory, 2 * len(self.blocks))
        return []


# Requests


class Server:
    def __init__(self, source: Source):
        self.source = source
        self.objects: dict[int, typing.Any] = {}
        self.made = 0

    def answer(self, verb: str, *fields: typing.Any) -> tuple[list[int | float | str], int]:
        if verb == "create":
            kind = {"parametrisation": MapObject, "task": TaskObject, "optimizer": OptimizerObject}[self.source.role]
            count = {"parametrisation": 3, "task": 4, "optimizer": 1}[self.source.role]
            made = kind(self.source, *fields[:count], _read_options(self.source, fields[count:]))
            created, descriptor = made.created()
            self.made += 1
            self.objects[self.made] = made
            return [self.made, *created], descriptor
        if verb == "delete":
            self.objects.pop(fields[0], None)
            return [], -1
        reply = getattr(self.objects[fields[0]], verb)(*fields[1:])
        return reply if isinstance(reply, tuple) else (reply, -1)


def _read_options(source: Source, fields: typing.Sequence[typing.Any]) -> dict[str, typing.Any]:
    """Keys with the number of their values, and the values as text."""
    kinds = {key: kind for key, _, kind, _, _ in source.options()}
    read: typing.Mapping[str, typing.Callable[[str], typing.Any]] = {
        "bool": lambda text: text == "true", "int": int, "float": float, "str": str,
    }  # fmt: skip
    options: dict[str, typing.Any] = {}
    place = 0
    while place < len(fields):
        key, count = fields[place], fields[place + 1]
        texts = fields[place + 2 : place + 2 + count]
        kind = kinds[key]
        options[key] = [read[kind[5:-1]](t) for t in texts] if kind.startswith("list") else read[kind](texts[0])
        place += 2 + count
    return options


def _failure(error: BaseException, path: str, verb: str) -> tuple[int, str]:
    """The exit code and the sentence for an exception, whose traceback goes to standard error."""
    import traceback

    if isinstance(error, Fault):
        return error.code, str(error)
    process = sys.modules.get("stiefel.process")
    if process and verb == "create" and isinstance(error, process.Error):
        return _USAGE, str(error)
    if isinstance(error, SyntaxError) and error.filename == path:
        return _USAGE, f"{path}:{error.lineno}:{error.offset}: {type(error).__name__}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == path]
    place = f"{own[-1].filename}:{own[-1].lineno}: " if own else f"{path}: "
    told = str(error).strip()
    if isinstance(error, SystemExit):
        told = f"sys.exit({error.code!r}) was called"
    else:
        trace = error.__traceback__
        while own and trace and trace.tb_frame.f_code.co_filename != path:
            trace = trace.tb_next  # without the frames of this file
        traceback.print_exception(type(error), error, trace)
        told = f"{type(error).__name__}: {told}" if told else type(error).__name__
    code = _EXHAUSTED if isinstance(error, MemoryError) else _USAGE if verb == "import" else _PLUGIN
    return code, f"{place}{told.splitlines()[0]}" + (f" (in {own[-1].name}())" if own and verb != "import" else "")


def _live_no_longer_than_the_program() -> None:
    """The kernel kills this process when the other end of the lifeline closes, whatever it is doing."""
    import fcntl

    fcntl.fcntl(_LIFELINE, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(_LIFELINE, getattr(fcntl, "F_SETSIG", 10), signal.SIGKILL)
    fcntl.fcntl(_LIFELINE, fcntl.F_SETFL, fcntl.fcntl(_LIFELINE, fcntl.F_GETFL) | os.O_ASYNC)


_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU)


def _leave_signals_to_the_program() -> None:
    """A signal to the whole group or job lets the program save the run, for which it needs this process."""
    for number in _STOPPING:
        signal.signal(number, signal.SIG_IGN)


class Growth:
    """Warns once when this process has grown by a gigabyte since its first requests."""

    def __init__(self) -> None:
        self.requests, self.before, self.warned = 0, 0, False

    def look(self, path: str) -> None:
        self.requests += 1
        if self.requests % 64 or self.warned:
            return
        with open("/proc/self/statm") as file:
            now = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        self.before = self.before or now
        if now - self.before > 1 << 30:
            self.warned = True
            print(
                f"warning: the Python process of {path} has grown by {(now - self.before) / 2**30:.1f} GiB in "
                f"{self.requests} calls: something keeps what each call allocates",
                file=sys.stderr,
                flush=True,
            )


def main(path: str, role: str, threads: str) -> None:
    import faulthandler
    import socket

    _live_no_longer_than_the_program()
    _leave_signals_to_the_program()
    faulthandler.enable()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = threads
    if threads == "1":
        os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    channel = socket.socket(fileno=_SOCKET)
    channel.set_inheritable(False)
    os.set_inheritable(_LIFELINE, False)
    process = os.getpid()

    def send(code: int, fields: typing.Iterable[int | float | str], descriptor: int = -1) -> None:
        if os.getpid() != process:
            print(f"a process forked by {path} returns from its method; end it with os._exit()", file=sys.stderr)
            os._exit(1)
        message = encode([code, *fields])
        if len(message) > _LARGEST:
            message = encode([_PLUGIN, f"{path}: a reply has {len(message)} bytes, and {_LARGEST} are possible"])
        if descriptor < 0:
            channel.send(message)
        else:
            socket.send_fds(channel, [message], [descriptor])

    source = None
    try:
        if sys.version_info < (3, 9):
            raise Fault(f"{sys.executable} is Python {sys.version.split()[0]}, but 3.9 is needed", _USAGE)
        if importlib.util.find_spec("numpy") is None:
            raise Fault(
                f"{sys.executable} has no NumPy: install it there, or name another interpreter with `python:` or "
                "STIEFEL_PYTHON",
                _USAGE,
            )
        import numpy  # noqa: F401

        source = Source(path, role)
        send(0, source.ready())
    except BaseException as error:
        code, sentence = _failure(error, path, "import")
        send(code, [sentence])
        return

    server, growth = Server(source), Growth()
    while message := channel.recv(_LARGEST):
        verb, *fields = decode(message)
        try:
            reply, descriptor = server.answer(verb, *fields)
            code = 0
        except BaseException as error:
            code, sentence = _failure(error, path, verb)
            reply, descriptor = [sentence], -1
        send(code, reply, descriptor)
        growth.look(path)


if __name__ == "__main__":
    sys.path.pop(0)  # this file's folder, whose modules are those of the package
    _package()
    main(*sys.argv[1:])

"""A Python file with a map, a task or an optimizer: its class, and the options that the class declares."""

from __future__ import annotations

import ast
import difflib
import importlib.util
import inspect
import io
import os
import sys
import tokenize
import typing

from stiefel import roles

USAGE, PLUGIN, EXHAUSTED = 2, 3, 8  # exit codes of the program
_ANNOTATIONS: dict[typing.Any, str] = {bool: "bool", int: "int", float: "float", str: "str"}

Field = typing.Union[int, float, str]


class Fault(Exception):
    """A mistake in the file or in what its methods return, in a sentence with its place."""

    def __init__(self, sentence: str, code: int = PLUGIN):
        super().__init__(sentence)
        self.code = code


_PROCESS = os.getpid()


def end_if_forked() -> None:
    """Ends a process that a method has forked and in which the method returns: two workers would answer."""
    if os.getpid() != _PROCESS:
        print("a process that was forked in a method returns from it; end it with os._exit()", file=sys.stderr)
        os._exit(1)


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
        self.options = self._options()

    def place(self, line: int) -> str:
        return f"{self.path}:{line}"

    def _find_class(self) -> type:
        bases = {"parametrisation": roles.Map, "task": roles.Task, "optimizer": roles.Optimizer}
        classes = {role: self._classes_from(base) for role, base in bases.items()}
        found, wanted = classes[self.role], f"stiefel.{bases[self.role].__name__}"
        if not found:
            others = " and ".join(f"stiefel.{bases[role].__name__}" for role in bases if classes[role])
            raise Fault(
                f"{self.path} has no class derived from {wanted}" + (f", only from {others}" if others else ""), USAGE
            )
        if len(found) > 1:
            names = ", ".join(value.__name__ for value in found)
            raise Fault(f"{self.path} has {len(found)} classes derived from {wanted} ({names}); leave one", USAGE)
        return found[0]

    def _classes_from(self, base: type) -> list[type]:
        values = [v for v in vars(self.module).values() if isinstance(v, type)]
        return [v for v in dict.fromkeys(values) if issubclass(v, base) and v is not base]

    def _options(self) -> list[tuple[str, str, str, typing.Any, list[str]]]:
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
                        USAGE,
                    )
            for name, hint in hints.items():
                place = self.place(lines.get((owner.__name__, name), 1))
                if self._of_base(name) and not any(hasattr(base, name) for base in self.kind.__mro__ if base.__module__ == roles.__name__):
                    raise Fault(f"{place}: {name} is set by stiefel; give the option another name", USAGE)
                if name.startswith("_") or typing.get_origin(hint) is typing.ClassVar or self._of_base(name):
                    continue
                kind, choices = self._type_of(hint, name, place)
                meaning = meanings.get((owner.__name__, name)) or f"an option of {self.kind.__name__}"
                default = self._default(getattr(self.kind, name, ...), kind, name, place)
                found[name] = (name, meaning, kind, default, choices)
        return list(found.values())

    def _classes(self) -> list[type]:
        """The class and its bases that are not stiefel's."""
        return [c for c in self.kind.__mro__ if c is not object and c.__module__ != roles.__name__]

    def _of_base(self, name: str) -> bool:
        """Whether stiefel's own class has an attribute of this name."""
        return any(
            name in vars(c) or name in vars(c).get("__annotations__", {})
            for c in self.kind.__mro__
            if c is not object and c not in self._classes()
        )

    def _annotations(self, owner: type) -> dict[str, typing.Any]:
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
            USAGE,
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
            raise Fault(f"{place}: the default of {name} is {value!r}, but its annotation is {kind}", USAGE)
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
        tokens = tokenize.tokenize(io.BytesIO(self.text).readline)
        comments = {t.start[0]: t.string.lstrip("# ").rstrip() for t in tokens if t.type == tokenize.COMMENT}
        return {
            (owner, name): comments[statement.end_lineno or 0]
            for owner, statement, name in self._fields()
            if (statement.end_lineno or 0) in comments
        }

    def read_options(self, fields: typing.Sequence[typing.Any]) -> dict[str, typing.Any]:
        """The values of options from a request: key, number of values, and values as text."""
        read: dict[str, typing.Callable[[str], typing.Any]] = {
            "bool": lambda text: text == "true", "int": int, "float": float, "str": str,
        }  # fmt: skip
        kinds = {key: kind for key, _, kind, _, _ in self.options}
        options: dict[str, typing.Any] = {}
        place = 0
        while place < len(fields):
            key, count = fields[place], fields[place + 1]
            texts, kind = fields[place + 2 : place + 2 + count], kinds[key]
            options[key] = [read[kind[5:-1]](t) for t in texts] if kind.startswith("list") else read[kind](texts[0])
            place += 2 + count
        return options

    def ready(self) -> list[Field]:
        """The first message: versions, and of each option key, meaning, type, whether it is required, default, choices."""
        fields: list[Field] = [_versions()]
        fields.append(len(self.options))
        for key, meaning, kind, default, choices in self.options:
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


def article(name: str) -> str:
    return ("an " if name[:1].lower() in "aeiou" else "a ") + name


def named(values: typing.Any, names: typing.Collection[str], what: str, all_of_them: bool = True) -> dict[str, typing.Any]:
    """A dictionary with these names; a Fault says what is missing or unknown."""
    if not isinstance(values, typing.Mapping):
        raise Fault(f"{what} returns {article(type(values).__name__)}, but must return a dictionary")
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



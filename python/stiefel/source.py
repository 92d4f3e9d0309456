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

USAGE, PLUGIN, DIVERGED, EXHAUSTED = 2, 3, 5, 8  # exit codes of the program
_ANNOTATIONS: dict[typing.Any, str] = {bool: "bool", int: "int", float: "float", str: "str"}

_RESERVED = {"plugin", "file", "python", "threads"}
"""Keys of an experiment next to the options."""

Field = typing.Union[int, float, str]


_REQUIRED: dict[type, tuple[str, ...]] = {
    roles.Map: ("parameters", "initial", "matrix"),
    roles.Task: ("shape", "batches", "batch"),
    roles.Optimizer: ("step",),
}
"""Methods that a class must have."""


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


class Option(typing.NamedTuple):
    """An annotated field; `default` is an ellipsis if it has none."""

    key: str
    meaning: str
    kind: str
    default: typing.Any
    choices: list[str]


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
        exec(compile(self.text, path, "exec", dont_inherit=True), vars(self.module))  # noqa: S102 — this is what it is for
        self.kind = self._find_class()
        self.options = self._options()

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
        self._demand_methods(found[0], bases[self.role])
        return found[0]

    def _demand_methods(self, kind: type, base: type) -> None:
        """Refuses a class that lacks a method, or whose method of that name has another spelling."""
        own = {name for c in kind.__mro__ if c not in base.__mro__ for name in vars(c)}
        for name in _REQUIRED[base]:
            if name not in own:
                close = difflib.get_close_matches(name, own, 1)
                advice = f"; did you mean it by `{close[0]}`?" if close else ""
                raise Fault(f"{self.path}: {kind.__name__} has no method `{name}`{advice}", USAGE)

    def _classes_from(self, base: type) -> list[type]:
        values = [v for v in vars(self.module).values() if isinstance(v, type)]
        return [v for v in dict.fromkeys(values) if issubclass(v, base) and v is not base]

    def _options(self) -> list[Option]:
        """The annotated fields of the class, in the order of the file, without what stiefel's class has itself."""
        theirs = [c for c in self.kind.__mro__ if c.__module__ == roles.__name__]
        own = [c for c in reversed(self.kind.__mro__) if c not in theirs and c is not object]
        settings = {name for c in theirs for name in vars(c)}
        context = {name for c in theirs for name in vars(c).get("__annotations__", {})} - settings | _RESERVED
        lines, meanings = self._places()
        found: dict[str, Option] = {}
        for owner in own:
            hints = self._annotations(owner)
            for name in dict.fromkeys([*hints, *vars(owner)]):
                place = f"{self.path}:{lines.get((owner.__name__, name), 1)}"
                value, hint = vars(owner).get(name, ...), hints.get(name)
                if name in context:
                    raise Fault(f"{place}: {name} is set by stiefel; give the option another name", USAGE)
                if name.startswith("_") or name in settings or typing.get_origin(hint) is typing.ClassVar:
                    continue
                if hint is not None:
                    kind, choices = self._type_of(hint, name, place)
                    meaning = meanings.get((owner.__name__, name), f"an option of {self.kind.__name__}")
                    found[name] = Option(name, meaning, kind, self._default(value, kind, name, place), choices)
                elif name in found:  # another default than that of a base class
                    default = self._default(value, found[name].kind, name, place)
                    found[name] = found[name]._replace(default=default)
                elif isinstance(value, (bool, int, float, str, list, tuple)):
                    raise Fault(
                        f"{place}: {name} has no annotation, so it is no option: write "
                        f"`{name}: {type(value).__name__} = {value!r}`, or `_{name}` for a constant",
                        USAGE,
                    )
        return list(found.values())

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
        types: dict[str, typing.Any] = {"bool": bool, "int": int, "float": (int, float), "str": str}
        entries = value if kind.startswith("list") and isinstance(value, list) else [value]
        wanted = types[kind[5:-1] if kind.startswith("list") else kind]
        if (kind.startswith("list") and not isinstance(value, list)) or not all(
            isinstance(e, wanted) and (kind == "bool" or not isinstance(e, bool)) for e in entries
        ):
            raise Fault(f"{place}: the default of {name} is {value!r}, but its annotation is {kind}", USAGE)
        return value

    def _places(self) -> tuple[dict[tuple[str, str], int], dict[tuple[str, str], str]]:
        """The line of each field by class and name, and the comment that ends it."""
        tokens = tokenize.tokenize(io.BytesIO(self.text).readline)
        comments = {t.start[0]: t.string.lstrip("# ").rstrip() for t in tokens if t.type == tokenize.COMMENT}
        lines, meanings = {}, {}
        for owner in ast.walk(ast.parse(self.text)):
            for field in owner.body if isinstance(owner, ast.ClassDef) else []:
                targets = field.targets if isinstance(field, ast.Assign) else [getattr(field, "target", None)]
                for target in targets:
                    if isinstance(target, ast.Name) and isinstance(owner, ast.ClassDef):
                        lines[owner.name, target.id] = field.lineno
                        if field.end_lineno in comments:
                            meanings[owner.name, target.id] = comments[field.end_lineno]
        return lines, meanings

    def read_options(self, fields: typing.Sequence[typing.Any]) -> dict[str, typing.Any]:
        """The values of options from a request: key, number of values, and values as text."""
        read: dict[str, typing.Callable[[str], typing.Any]] = {
            "bool": lambda text: text == "true", "int": int, "float": float, "str": str,
        }  # fmt: skip
        kinds = {option.key: option.kind for option in self.options}
        options: dict[str, typing.Any] = {}
        place = 0
        while place < len(fields):
            key, count = fields[place], fields[place + 1]
            texts, kind = fields[place + 2 : place + 2 + count], kinds[key]
            options[key] = [read[kind[5:-1]](t) for t in texts] if kind.startswith("list") else read[kind](texts[0])
            place += 2 + count
        return options

    def ready(self) -> list[Field]:
        """The first message: versions, whether a map is complex, and the options.

        Of each option: key, meaning, type, whether it is required, default, choices.
        """
        fields: list[Field] = [_versions(), int(getattr(self.kind, "complex", False)), len(self.options)]
        for option in self.options:
            default = option.default
            values = [] if default is ... else default if isinstance(default, list) else [default]
            fields += [option.key, option.meaning, option.kind, int(default is ...), len(values), *map(_text, values)]
            fields += [len(option.choices), *option.choices]
        return fields


def _text(value: typing.Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _versions() -> str:
    """Of the interpreter and of the libraries that the file has imported."""
    found = [f"Python {sys.version.split()[0]}"]
    for module, name in (("numpy", "NumPy"), ("torch", "torch"), ("jax", "JAX")):
        if module in sys.modules:
            found.append(f"{name} {getattr(sys.modules[module], '__version__', 'of unknown version')}")
    return ", ".join(found)


def method_of(kind: type, name: str, arguments: str = "") -> str:
    """A method of a class and where it is defined, for messages."""
    code = getattr(inspect.unwrap(getattr(kind, name)), "__code__", None)
    return (f"{code.co_filename}:{code.co_firstlineno}: " if code else "") + f"{name}({arguments}) of {kind.__name__}"


def article(name: str) -> str:
    return ("an " if name[:1].lower() in "aeiou" else "a ") + name


def named(
    values: typing.Any, names: typing.Collection[str], what: str, all_of_them: bool = True
) -> dict[str, typing.Any]:
    """A dictionary with these names; a Fault says what is missing or unknown."""
    if values is None:
        raise Fault(f"{what} returns None: is a `return` missing?")
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

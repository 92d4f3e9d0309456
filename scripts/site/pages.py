#!/usr/bin/env python3
"""Puts the pages of the site into a folder, for Sphinx.

usage: pages.py SOURCE FOLDER PROGRAM

They are the documents of the source tree, without links to folders, and two that are made here: the Python API, and the
published results with what was measured, as `stiefel reproduce list` knows them.
"""

import ast
import html
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import yaml

CHAPTERS = {
    "Use": ["docs/WHY", "docs/RUNNING", "docs/RESUMING", "docs/DATA", "docs/LAYERS", "docs/SWEEPS", "docs/ANALYSIS", "results/README"],
    "From Python": ["python/README", "docs/PYTHON", "docs/DEPLOY", "docs/API"],
    "Published results": ["docs/PUBLISHED", "docs/PAPERS", "results/measured/REPRODUCTION"],
    "Measurements": ["docs/PERFORMANCE", "Measured performance <results/measured/PERFORMANCE>", "results/measured/METHODS", "results/measured/FIGURES",
                     "results/measured/KRU", "results/measured/LAYERS", "results/measured/TASKS"],
    "Write a method": ["docs/PLUGINS", "docs/SDK", "docs/CHECKS", "docs/GRADIENTS"],
    "Project": ["docs/CONTRIBUTING", "docs/RELEASING", "SECURITY", "CODE_OF_CONDUCT", "CHANGELOG"],
}
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s:]+)(#[^)]*)?\)")


def outside_fences(text, change):
    """The document with `change` applied to all but its fenced blocks."""
    end, parts = 0, []
    for fence in FENCE.finditer(text):
        parts += [change(text[end:fence.start()]), fence[0]]
        end = fence.end()
    return "".join(parts) + change(text[end:])


def documents(source, folder):
    """Copies the documents, what they link to, and their pictures."""
    listed = subprocess.run(["git", "-C", source, "ls-files", "-z", "*.md", "*.svg"], capture_output=True, check=True).stdout
    for name in filter(None, os.fsdecode(listed).split("\0")):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not name.endswith(".md"):
            shutil.copyfile(source / name, target)
            continue

        def link(found, here=pathlib.Path(name).parent):
            file = source / here / found[2]
            if file.is_dir():
                return found[1]
            if file.suffix not in (".md", ".svg"):
                copied = folder / here / found[2]
                copied.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copied)
            return found[0]
        text = outside_fences((source / name).read_text(encoding="utf-8"), lambda part: LINK.sub(link, part))
        if name == "README.md":
            text += "".join(f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n" + "\n".join(names) + "\n```\n" for title, names in CHAPTERS.items())
        target.write_text(text, encoding="utf-8")


def described(node, name):
    """A function or class, and the public methods of a class, as Markdown."""
    lines = [f"### `{name}`\n"]
    if isinstance(node, ast.ClassDef):
        lines.append((ast.get_docstring(node) or "") + "\n")
        for below in node.body:
            if isinstance(below, ast.FunctionDef) and not below.name.startswith("_") and ast.get_docstring(below):
                lines += [f"```python\n{signature(below, below.name)}\n```\n", ast.get_docstring(below) + "\n"]
        return "\n".join(lines)
    return "\n".join([*lines, f"```python\n{signature(node, name)}\n```\n", (ast.get_docstring(node) or "") + "\n"])


def parameters(arguments):
    """The parameters of a function with annotations and defaults."""
    def shown(argument, default=None):
        words = argument.arg + (f": {ast.unparse(argument.annotation)}" if argument.annotation else "")
        return words if default is None else f"{words} = {ast.unparse(default)}"
    plain = arguments.args
    found = [shown(*pair) for pair in zip(plain, [None] * (len(plain) - len(arguments.defaults)) + arguments.defaults)]
    if arguments.vararg or arguments.kwonlyargs:
        found.append("*" + (shown(arguments.vararg) if arguments.vararg else ""))
    found += [shown(*pair) for pair in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    return found + (["**" + shown(arguments.kwarg)] if arguments.kwarg else [])


def signature(node, name):
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    if any(isinstance(mark, ast.Name) and mark.id == "property" for mark in node.decorator_list):
        return name + returns.replace(" ->", ":")
    words = parameters(node.args)
    line = f"{name}({', '.join(words)}){returns}"
    return line if len(line) <= 88 else f"{name}(\n" + "".join(f"    {word},\n" for word in words) + f"){returns}"


def api(package):
    """The page of the Python API, from the docstrings."""
    trees = {path.stem: ast.parse(path.read_text(encoding="utf-8")) for path in package.glob("*.py")}
    home = next(ast.literal_eval(node.value) for node in trees["__init__"].body
                if isinstance(node, ast.Assign) and node.targets[0].id == "_HOME")

    def public(module):
        return {node.name: node for node in trees[module].body
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_")}
    parts = ["# Python API\n", "[PYTHON.md](PYTHON.md) explains it with examples.\n", "## stiefel\n"]
    parts += [described(public(module)[name], f"stiefel.{name}") for name, module in sorted(home.items(), key=lambda item: item[0].lower())]
    for module in ("plot", "torch", "track"):
        parts += [f"## stiefel.{module}\n", ast.get_docstring(trees[module]) + "\n"]
        parts += [described(node, f"stiefel.{module}.{name}") for name, node in public(module).items()
                  if isinstance(node, ast.FunctionDef) and name != "main" and ast.get_docstring(node)]
    return "\n".join(parts)


def plain(text):
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def curve(row, figures):
    """The figure that shows a row: the only one of its item, or the one whose panel the row names."""
    found = [name for name in figures if re.match(plain(f"{row['paper']} {row['item']}") + r"(_|$)", name)]
    if len(found) > 1:
        start = len(plain(f"{row['paper']} {row['item']}")) + 1
        found = [name for name in found if name[start:] and re.search(rf"(^|_){re.escape(name[start:])}(_|$)", plain(row["row"]))]
    return found[0] if len(found) == 1 else None


def published(source, program):
    """The page of published results: a row for each, with the command that repeats it."""
    papers = yaml.safe_load((source / "experiments/papers/published.yaml").read_text(encoding="utf-8"))["papers"]
    listed = subprocess.run([program, "reproduce", "list", "--json", "--experiments", source / "experiments", "--output", os.devnull + "/none"],
                            capture_output=True, check=True).stdout
    rows = json.loads(listed)
    figures = sorted(path.stem for path in (source / "results/measured/figures").glob("*.svg"))
    label = {name: f"{re.match(r'[^,& ]+', paper['authors'])[0]} et al. {paper['year']}" for name, paper in papers.items()}
    number = lambda value: "" if value is None else f"{value:.4g}"
    option = lambda value, shown: f'<option value="{html.escape(value)}">{html.escape(shown)}</option>'

    def select(name, title, values):
        return f'<select name="{name}" aria-label="{title}"><option value="">{title}</option>' + "".join(option(*value) for value in values) + "</select>"
    metrics, verdicts = (sorted({row[key] for row in rows}) for key in ("metric", "state"))
    lines = ['<form class="filters" hidden><input type="search" placeholder="words, such as LSTM T = 400" aria-label="words">',
             select("paper", "all papers", label.items()), select("metric", "all metrics", [(name, name) for name in metrics]),
             select("verdict", "all verdicts", [(name, name) for name in verdicts]), "<output></output></form>",
             '<div class="published"><table><thead><tr><th>paper</th><th>where</th><th>result</th><th>metric</th><th>published</th><th>measured</th>'
             "<th>verdict</th><th>command</th></tr></thead><tbody>"]
    for row in rows:
        figure = curve(row, figures)
        verdict = html.escape(row["state"])
        if figure:
            verdict = f'<a href="../results/measured/figures/{figure}.svg">{verdict}</a>'
        command = f"stiefel reproduce {row['paper']} --row {shlex.quote(row['row'])}"
        cells = [html.escape(label[row["paper"]]), html.escape(row["item"]), html.escape(row["row"]), html.escape(row["metric"])]
        lines.append(f'<tr data-paper="{row["paper"]}" data-metric="{html.escape(row["metric"])}" data-verdict="{html.escape(row["state"])}">'
                     + "".join(f"<td>{cell}</td>" for cell in cells)
                     + f'<td class="number">{number(row["published"])}</td><td class="number">{number(row["measured"])}</td>'
                     + f"<td>{verdict}</td><td><code>{html.escape(command)}</code></td></tr>")
    lines.append('</tbody></table></div><script src="../_static/published.js"></script>')
    text = """# Published results

Numbers, curves, claims and orders of four papers, with what was measured here. The command repeats a row: it runs the
experiment with each of its seeds and judges the result again. Where the verdict is a link, it leads to the curves.
[REPRODUCTION.md](../results/measured/REPRODUCTION.md) has the seeds, the criteria and the notes, and
[PAPERS.md](PAPERS.md) says how to run them.

"""
    return text + "```{raw} html\n" + "\n".join(lines) + "\n```\n"


def main():
    source, folder = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    documents(source, folder)
    (folder / "docs/API.md").write_text(api(source / "python/stiefel"), encoding="utf-8")
    (folder / "docs/PUBLISHED.md").write_text(published(source, sys.argv[3]), encoding="utf-8")


main()

#!/usr/bin/env python3
"""Puts the pages of the site into a folder, for Sphinx.

usage: pages.py SOURCE FOLDER PROGRAM

They are the documents of the source tree, without links to folders, and those that are made here: references of the
Python package and of the SDK, the published results with what was measured, as `stiefel reproduce list` knows them, what
the papers state, a gallery of the measured curves, and one of methods.
"""

import ast
import csv
import html
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import xml.etree.ElementTree

import yaml

CHAPTERS = {
    "Use": ["docs/WHY", "docs/RUNNING", "docs/RESUMING", "docs/DATA", "docs/DATA_TABLES", "docs/DATA_SOUND", "docs/DATA_PUBLISHED",
            "docs/NOT_LEARNING", "docs/FROM_PYTORCH", "docs/LAYERS", "docs/SWEEPS", "docs/ANALYSIS", "results/README", "docs/GLOSSARY"],
    "From Python": ["python/README", "docs/PYTHON", "docs/DEPLOY", "docs/API"],
    "Published results": ["docs/PUBLISHED", "docs/STATEMENTS", "docs/GALLERY", "docs/PAPERS", "results/measured/REPRODUCTION"],
    "Measurements": ["docs/PERFORMANCE", "Measured performance <results/measured/PERFORMANCE>", "results/measured/METHODS", "results/measured/FIGURES",
                     "results/measured/STATE_TRACKING", "results/measured/KRU", "results/measured/LAYERS", "results/measured/TASKS"],
    "Write a method": ["docs/PLUGINS", "docs/METHODS", "docs/SDK", "docs/HEADERS", "docs/CHECKS", "docs/GRADIENTS"],
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


HEADERS = ["parametrisation", "cell", "task", "optimizer", "plugin", "schema", "activation", "initialiser", "losses", "manifold", "matrix", "linear_algebra",
           "vector_math", "product", "parallel", "random", "recorder", "archive", "item_batches", "held_sequences", "error", "index"]
DOXYGEN = """QUIET=YES\nWARN_AS_ERROR=FAIL_ON_WARNINGS\nGENERATE_HTML=NO\nGENERATE_LATEX=NO\nGENERATE_XML=YES\nXML_PROGRAMLISTING=NO\nEXTRACT_ALL=YES
MACRO_EXPANSION=YES\nEXPAND_ONLY_PREDEF=YES\nPREDEFINED=STIEFEL_API=\nEXCLUDE_SYMBOLS=*detail*\nAUTOLINK_SUPPORT=NO\nINPUT={0}/headers\nOUTPUT_DIRECTORY={0}
"""


def headers(source, work):
    """The page of the SDK's headers, which breathe fills from Doxygen's XML."""
    (work / "headers").mkdir()
    for path in source.glob("*.hpp"):
        text = re.sub(r"^( *///) {3,}(?=\S)", r"\1     ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)  # formulas are code blocks
        text = re.sub(r"///.*", lambda comment: re.sub(r"<(\w+)>", r"&lt;\1&gt;", comment[0]), text)
        (work / "headers" / path.name).write_text("/// \\file\n" + text, encoding="utf-8")
    (work / "Doxyfile").write_text(DOXYGEN.format(work), encoding="utf-8")
    subprocess.run(["doxygen", work / "Doxyfile"], check=True)

    def described(file):
        return xml.etree.ElementTree.parse(work / "xml" / file).getroot().find("compounddef")
    members = list(described("namespacestiefel.xml").iter("memberdef"))
    lines = ["# Headers of the SDK\n", "[PLUGINS.md](PLUGINS.md) and [SDK.md](SDK.md) explain them with examples.\n"]
    for header in HEADERS:
        lines += [f"## {header}.hpp\n", f"```{{doxygenfile}} {header}.hpp\n:sections: briefdescription detaileddescription\n```\n"]
        for name, kind in ((inner.text, inner.get("refid").split("stiefel")[0]) for inner in described(f"{header.replace('_', '__')}_8hpp.xml").findall("innerclass")):
            if name.count("::") == 1:
                lines += [f"### {name.partition('::')[2]}\n", f"```{{doxygen{kind}}} {name}\n:members:\n:undoc-members:\n```\n"]
        for member in members:
            if member.find("location").get("file").endswith(f"/{header}.hpp"):
                arguments = member.findtext("argsstring") if member.get("kind") == "function" else ""
                lines.append(f"```{{doxygen{member.get('kind')}}} stiefel::{member.findtext('name')}{arguments}\n```\n")
    return "\n".join(lines)


def methods(source):
    """The page of methods that stand outside the program, each with its experiment and its source."""
    lines = ["# A gallery of methods", "", "Each is a folder in docs/examples with an experiment, a source and its build. [PLUGINS.md](PLUGINS.md) says how to build",
             "and check one. To add yours, put its folder next to these, and send it as [CONTRIBUTING.md](CONTRIBUTING.md) says.", ""]
    for folder in sorted(path for path in (source / "docs/examples").iterdir() if path.is_dir()):
        code = (folder / f"{folder.name}.cpp").read_text(encoding="utf-8")
        experiment = (folder / f"{folder.name}.yaml").read_text(encoding="utf-8")
        lines += [f"## {folder.name}", "", "```yaml", experiment.rstrip(), "```", "", "```cpp", code.rstrip(), "```", ""]
    return "\n".join(lines)


def plain(text):
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def curve(row, figures):
    """The figure that shows a row: the only one of its item, or the one with its panel, metric, or both."""
    item = plain(f"{row['paper']} {row['item']}")
    found = [name for name in figures if re.match(item + r"(_|$)", name)]
    if len(found) > 1:
        panels = {name: name.removeprefix(item).removesuffix(plain(row["metric"])).strip("_") for name in found}
        found = [name for name, panel in panels.items() if name != item and re.search(rf"(^|_){re.escape(panel)}(_|$)", plain(row["row"]) + "_")]
    return found[0] if len(found) == 1 else None


def option(value, shown):
    return f'<option value="{html.escape(value)}">{html.escape(shown)}</option>'


def table(words, choices, columns, rows):
    """A table with filters: a search for words, and a choice for each (attribute, title, values)."""
    lines = [f'<form class="filters" hidden><input type="search" placeholder="words, such as {words}" aria-label="words">']
    for name, title, values in choices:
        lines.append(f'<select name="{name}" aria-label="{title}"><option value="">{title}</option>' + "".join(option(*value) for value in values) + "</select>")
    lines += ["<output></output></form>", '<div class="published"><table><thead><tr>' + "".join(f"<th>{name}</th>" for name in columns) + "</tr></thead><tbody>"]
    lines += [*rows, '</tbody></table></div><script src="../_static/published.js"></script>']
    return "```{raw} html\n" + "\n".join(lines) + "\n```\n"


def slug(row):
    """The item as `stiefel reproduce` names it."""
    return row["paper"] + "/" + re.sub(r"[^A-Za-z0-9.]+", "-", row["item"])


class Published:
    """What the four papers print and state, and what was measured."""

    def __init__(self, source, program):
        papers = yaml.safe_load((source / "experiments/papers/published.yaml").read_text(encoding="utf-8"))["papers"]
        listed = subprocess.run([program, "reproduce", "list", "--json", "--experiments", source / "experiments", "--output", os.devnull + "/none"],
                                capture_output=True, check=True).stdout
        self.rows = json.loads(listed)
        self.figures = sorted(path.stem for path in (source / "results/measured/figures").glob("*.svg"))
        self.label = {name: f"{re.match(r'[^,& ]+', paper['authors'])[0]} et al. {paper['year']}" for name, paper in papers.items()}
        with (source / "experiments/papers/statements.csv").open(encoding="utf-8") as file:
            self.stated = list(csv.DictReader(line for line in file if not line.startswith("#")))

    def results(self):
        """The page of published results: a row for each, with the command that repeats it."""
        number = lambda value: "" if value is None else f"{value:.4g}"
        said = {}
        for place, statement in enumerate(self.stated):
            for item in filter(None, statement["item"].split("; ")):
                said.setdefault(item, []).append(place)
        rows = []
        for row in self.rows:
            figure = curve(row, self.figures)
            verdict = html.escape(row["state"])
            if figure:
                verdict = f'<a href="../results/measured/figures/{figure}.svg">{verdict}</a>'
            places = said.get(slug(row), []) + said.get(f"{slug(row)}: {row['row']}", [])
            says = ", ".join(f'<a href="STATEMENTS.html#s{place}" title="{html.escape(self.stated[place]["statement"])}">{html.escape(self.stated[place]["section"])}</a>'
                             for place in places)
            command = f"stiefel reproduce {row['paper']} --row {shlex.quote(row['row'])}"
            cells = [html.escape(self.label[row["paper"]]), html.escape(row["item"]), html.escape(row["row"]), html.escape(row["metric"])]
            rows.append(f'<tr data-paper="{row["paper"]}" data-metric="{html.escape(row["metric"])}" data-verdict="{html.escape(row["state"])}">'
                        + "".join(f"<td>{cell}</td>" for cell in cells)
                        + f'<td class="number">{number(row["published"])}</td><td class="number">{number(row["measured"])}</td>'
                        + f"<td>{verdict}</td><td>{says}</td><td><code>{html.escape(command)}</code></td></tr>")
        metrics, verdicts = (sorted({row[key] for row in self.rows}) for key in ("metric", "state"))
        choices = [("paper", "all papers", self.label.items()), ("metric", "all metrics", [(name, name) for name in metrics]),
                   ("verdict", "all verdicts", [(name, name) for name in verdicts])]
        columns = ["paper", "where", "result", "metric", "published", "measured", "verdict", "stated in", "command"]
        return """# Published results

Numbers, curves, claims and orders of four papers, with what was measured here. The command repeats a row: it runs the
experiment with each of its seeds and judges the result again. Where the verdict is a link, it leads to the curves, and
sections lead to [what the paper states](STATEMENTS.md). [REPRODUCTION.md](../results/measured/REPRODUCTION.md) has the
seeds, the criteria and the notes, and [PAPERS.md](PAPERS.md) says how to run them.

""" + table("LSTM T = 400", choices, columns, rows)

    def statements(self):
        """The page of what the papers state, with what the experiments do about it."""
        rows = []
        for place, row in enumerate(self.stated):
            does = " ".join(filter(None, [row["used"] and f"{row['setting']} is {row['used']}, not {row['published']}.", row["reason"]]))
            cells = [self.label[row["paper"]], row["section"], row["statement"], row["standing"], does, row["files"]]
            rows.append(f'<tr id="s{place}" data-paper="{row["paper"]}" data-standing="{row["standing"]}">' + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
        choices = [("paper", "all papers", self.label.items()),
                   ("standing", "all", [(name, name) for name in sorted({row["standing"] for row in self.stated})])]
        return """# What the papers state

Every statement of the four papers about their experiments, in our words, and what the experiments do about it. A
statement is *followed* by the files, or they *deviate* for the reason given. An outcome is *judged* by a criterion or a
value of [the published results](PUBLISHED.md), only *shown* by their figures, or *out of reach*.

""" + table("learning rate", choices, ["paper", "section", "statement", "standing", "why, or with what difference", "files"], rows)

    def gallery(self):
        """The page of figures, each with the command that makes it."""
        lines = ["# A gallery of measured curves", "", "The commands below a figure run its experiments and draw it again.", ""]
        for figure in self.figures:
            shown = [row for row in self.rows if curve(row, self.figures) == figure]
            if not shown:
                continue
            title = f"{self.label[shown[0]['paper']]}, {shown[0]['item']}"
            part = figure.removeprefix(plain(f"{shown[0]['paper']} {shown[0]['item']}")).strip("_").replace("_", " ")
            files = sorted({row["file"] for row in shown})
            lines += [f"## {title}{': ' + part if part else ''}", "", f"![{title}](../results/measured/figures/{figure}.svg)", "",
                      "```sh", f"stiefel reproduce {slug(shown[0])}", "stiefel reproduce report", "```", "",
                      "Experiments: " + ", ".join(f"`{file}`" for file in files) + ".", ""]
        return "\n".join(lines)


def main():
    source, folder = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    documents(source, folder)
    found = Published(source, sys.argv[3])
    pages = {"API": api(source / "python/stiefel"), "HEADERS": headers(source / "core/include/stiefel", folder.parent), "METHODS": methods(source),
             "PUBLISHED": found.results(), "STATEMENTS": found.statements(), "GALLERY": found.gallery()}
    for name, text in pages.items():
        (folder / f"docs/{name}.md").write_text(text, encoding="utf-8")


main()

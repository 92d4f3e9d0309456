#!/usr/bin/python3
"""The JSON schema accepts every experiment of the project, as they are and with all of their keys, and refuses what is wrong.

usage: schema_test.py PROGRAM FOLDER. published.yaml is not an experiment. The files are read as YAML 1.2, as editors do.
"""
import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import yaml

PROGRAM, FOLDER = sys.argv[1], Path(sys.argv[2])


class Loader(yaml.SafeLoader):
    """The core schema of YAML 1.2: 1e-3 is a number, `on` is text."""
    yaml_implicit_resolvers = {}


for tag, pattern in (("null", "~|null|"), ("bool", "true|false"), ("int", "[-+]?[0-9]+"),
                     ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")):
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), None)


def stiefel(*words):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=True, timeout=60).stdout


def main():
    schema = json.loads(stiefel("schema"))
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)

    def faults(text):
        return [f"{'.'.join(map(str, error.absolute_path))}: {error.message}"[:300] for error in validator.iter_errors(yaml.load(text, Loader))]

    wrong = []
    files = sorted(file for file in FOLDER.rglob("*.yaml") if file != FOLDER / "papers/published.yaml")
    texts = [(str(file), file.read_text()) for file in files]
    texts += [(f"validate {file} --resolved", stiefel("validate", file, "--resolved")) for file in files if file.parent.name in ("methods", "own")]
    for name, text in texts:
        wrong += [f"{name}: {fault}" for fault in faults(text)]
    quickstart = (FOLDER / "quickstart.yaml").read_text()
    timit = (FOLDER / "kru/timit_phonemes.yaml").read_text()
    assert re.search("classes: *61", timit), timit
    for what, text in (("an unknown key", quickstart + "\nbogus: 1\n"), ("no task", re.sub("(?m)^task:", "title:", quickstart)),
                       ("text for a number", re.sub(r"hidden: *\d+", "hidden: many", quickstart)),
                       ("a size above its range", re.sub(r"hidden: *\d+", "hidden: 1000000000000", quickstart)),
                       ("an unknown choice", re.sub("classes: *61", "classes: 40", timit))):
        assert text not in (quickstart, timit), what
        if not faults(text):
            wrong.append(f"the schema accepts {what}")
    print("\n".join(wrong) or f"{len(texts)} files fit the schema")
    return 1 if wrong or len(files) < 100 else 0


if __name__ == "__main__":
    sys.exit(main())

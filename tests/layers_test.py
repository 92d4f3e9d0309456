#!/usr/bin/python3
"""The layers of core and results: no file includes one of a layer above its own.

usage: layers_test.py ROOT
"""
import re
import sys
from pathlib import Path

LAYERS = ["core/include/stiefel", "core/src/sdk", "core/src/base", "core/src/record", "core/src/host", "core/src/config", "core/src/engine",
          "core/src/training", "results/analysis", "core/src/sweep", "core/src/conformance", "core/cli"]
ROOTS = ["core/include", "core/src", "core", "."]


def layer_of(path):
    return next((at for at, layer in enumerate(LAYERS) if path.startswith(layer + "/")), None)


def main():
    root = Path(sys.argv[1])
    wrong, arrows = [], 0
    for layer in LAYERS:
        for file in sorted(root.glob(f"{layer}/**/*.[ch]pp")):
            name = str(file.relative_to(root))
            for line, text in enumerate(file.read_text().splitlines(), 1):
                found = re.match(r'#include [<"]([^>"]+)[>"]', text)
                target = found and next((f"{folder}/{found[1]}" for folder in ROOTS if (root / folder / found[1]).exists()), None)
                if target is None:
                    continue
                arrows += 1
                target = str(Path(target))
                if layer_of(target) is None or layer_of(target) > layer_of(name):
                    wrong.append(f"{name}:{line}: {layer} includes {target}, which is above it or in no layer")
    print("\n".join(wrong) or f"{arrows} includes of own headers, all of the same layer or one below")
    return 1 if wrong or arrows < 500 else 0


if __name__ == "__main__":
    sys.exit(main())

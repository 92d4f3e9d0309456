"""What several tests share."""
import os
import pathlib
import re
import subprocess


def source_files(root, *new):
    """The names of the files that git has in the source tree `root`, sorted; with "--others", also those not yet added. Without git, all outside
    build/.
    """
    root = pathlib.Path(root)
    listed = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--exclude-standard", *new], capture_output=True, text=True)
    names = listed.stdout.splitlines() if listed.returncode == 0 else [
        str(path.relative_to(root)) for path in root.rglob("*") if "build" not in path.relative_to(root).parts]
    return sorted(name for name in set(names) if (root / name).is_file())


def simd_targets(program):
    """The instruction sets that STIEFEL_SIMD can choose on this CPU, the widest first."""
    refused = subprocess.run([program, "--version"], env={**os.environ, "STIEFEL_SIMD": "none"}, capture_output=True, text=True)
    return re.search("this CPU have (.*); choose", refused.stderr)[1].split(", ")

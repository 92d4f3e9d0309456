#!/usr/bin/env python3
"""The verdict of `stiefel check` does not depend on the seed: seeds_test.py PROGRAM SEEDS passes|fails PLUGIN OPTION...

A plugin that passes must pass at all seeds; a wrong gradient must be found at all of them.
"""
import subprocess
import sys

program, seeds, verdict, *words = sys.argv[1:]
wrong = []
for seed in range(1, int(seeds) + 1):
    done = subprocess.run([program, "check", *words, f"--seed={seed}"], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    found = any(line.startswith(("  FAIL gradient ", "  FAIL loss gradient ")) for line in done.stdout.splitlines())
    if (done.returncode == 0) != (verdict == "passes") or found != (verdict == "fails"):
        wrong.append(seed)
        print(f"seed {seed}:\n{done.stdout}")
print(f"{words}: {int(seeds) - len(wrong)} of {seeds} seeds {'pass' if verdict == 'passes' else 'fail'}; not {wrong}")
sys.exit(bool(wrong))

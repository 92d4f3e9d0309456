#!/usr/bin/env python3
"""A wrong gradient is found at every seed: seeds_test.py PROGRAM SEEDS PLUGIN OPTION..."""
import subprocess
import sys

program, seeds, *words = sys.argv[1:]
wrong = []
for seed in range(1, int(seeds) + 1):
    done = subprocess.run([program, "check", *words, f"--seed={seed}"], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    found = any(line.startswith(("  FAIL gradient ", "  FAIL loss gradient ")) for line in done.stdout.splitlines())
    if done.returncode == 0 or not found:
        wrong.append(seed)
        print(f"seed {seed}:\n{done.stdout}")
print(f"{words}: found at {int(seeds) - len(wrong)} of {seeds} seeds; not at {wrong}")
sys.exit(bool(wrong))

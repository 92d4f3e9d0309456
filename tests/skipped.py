#!/usr/bin/python3
"""What a run of ctest skipped, why, and what would run it: one line for each reason.

usage: skipped.py JUNIT, the file that `ctest --output-junit JUNIT` wrote
"""
import collections
import re
import sys
import xml.etree.ElementTree

# A pattern of the reason, what it is called in the table ("": as it is), and what to do.
CURES = [
    (r"STIEFEL_DATA", "no data sets", "STIEFEL_DATA=FOLDER with the sets of docs/DATA_PUBLISHED.md"),
    (r"STIEFEL_PYTHON", "no virtual environment", "STIEFEL_PYTHON=PYTHON, as docs/CONTRIBUTING.md says"),
    (r"(\w+) is the default", "", "nothing: the tests without a target ran on it"),
    (r"STIEFEL_SIMD is (\w+)", r"this CPU or Highway has no \1", "another CPU"),
    (r"No module named '?(torch|matplotlib)", r"no \1", r"apt-get install python3-\1"),
    (r"No module named '?(\w+)", r"no \1", "another Python, in STIEFEL_PYTHON"),
    (r"not installed|there is no", "", "./test.sh installs [build] and [test] of scripts/packages.txt; [engines] and [check] have more"),
]


def reasons(output):
    """The reasons that a test printed for what it skipped."""
    found = re.findall(r"^skipped: (.*)", output, re.M) + re.findall(r"^not tried: (.*)", output, re.M)
    found += [f"parts of a test, for reasons that its -v shows ({number})" for number in re.findall(r"^OK \(skipped=(\d+)\)", output, re.M)]
    return list(dict.fromkeys(found))


def explained(reason):
    for pattern, name, cure in CURES:
        if match := re.search(pattern, reason):
            return match.expand(name) or reason, match.expand(cure)
    return reason, ""


def main():
    tests = collections.defaultdict(list)
    for case in xml.etree.ElementTree.parse(sys.argv[1]).getroot().iter("testcase"):
        found = reasons(case.findtext("system-out") or "")
        if case.find("skipped") is not None and not found:
            found = ["no reason given"]
        for row in dict.fromkeys(map(explained, found)):
            tests[row].append(case.get("name"))
    if not tests:
        return
    print(f"skipped, in {len(set(sum(tests.values(), [])))} tests:")
    for (reason, cure), names in sorted(tests.items(), key=lambda item: -len(item[1])):
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        print(f"  {reason}: {shown}" + (f"\n    to run them: {cure}" if cure else ""))


if __name__ == "__main__":
    main()

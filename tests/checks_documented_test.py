#!/usr/bin/python3
"""docs/CHECKS.md names every line that `stiefel check` can print, and no other.

usage: checks_documented_test.py ROOT
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
document = (root / "docs/CHECKS.md").read_text(encoding="utf-8")
rows = [row.split("|") for row in document.splitlines() if row.startswith("| ") and not row.startswith("| rule")]
remarks = re.search(r"^Remarks, not failures: (.*?)\n\n", document, re.M | re.S)[1]
documented = {name for row in rows for name in re.findall("`([^`]+)`", row[2])} | set(re.findall("`([^`]+)`", remarks))
assert len(rows) > 40 and all(re.findall("`([^`]+)`", row[2]) for row in rows), "a rule has no line"

verbs = r"(?:demand|require|measure|fail|skip|remark|leave|require_same_bits|check_adds|compare_slopes|note)"
called = re.compile(verbs + r'\(\s*(?:probe, )?(?:report, )?"([^"]+)"|report\(report, "([^"]+)"|\b(?:attempt|one)\((?:subject, report, )?"([^"]+)"')
printed = {"".join(names) for path in (root / "core/src/conformance").glob("*.?pp") for names in called.findall(path.read_text(encoding="utf-8"))}
printed -= {"--shape", "name", "create"}  # of the command itself, and what cannot be made
assert "gradient" in printed and "apply is W" in printed
if printed != documented:
    sys.exit(f"docs/CHECKS.md lacks {sorted(printed - documented)}, and check never prints {sorted(documented - printed)}")

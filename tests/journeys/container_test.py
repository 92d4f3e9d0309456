#!/usr/bin/python3
"""The instructions of scripts/Containerfile, carried out in chroots of a bare Debian; the image then runs the quickstart experiment
and builds a plugin.

usage: container_test.py SOURCE SCRATCH; needs root and debootstrap, and is skipped without. Debian's packages come from where this machine
gets them.
"""
import pathlib
import re
import sys
import time

import chroot

SOURCE, SCRATCH = (pathlib.Path(word).resolve() for word in sys.argv[1:])


def instructions(file):
    text = re.sub(r"^#.*\n", "", file.read_text(encoding="utf-8"), flags=re.M)
    return [line.split(maxsplit=1) for line in text.splitlines() if line]


def build(file, base):
    images = {}
    current = None
    try:
        for verb, words in instructions(file):
            print(f"==> {verb} {words}", flush=True)
            start = time.monotonic()
            if verb == "FROM":
                source, _, name = words.partition(" AS ")
                assert source == "debian:12", source
                current = images[name or "final"] = chroot.Image(SCRATCH / (name or "final"), base)
            elif verb == "COPY" and words.startswith("--from="):
                stage, pattern, target = re.fullmatch(r"--from=(\S+) (\S+) (\S+)", words).groups()
                for found in images[stage].root.glob(pattern.lstrip("/")):
                    current.copy(found, target)
            elif verb == "COPY":
                current.copy(SOURCE, words.split()[1])
            elif verb == "RUN":
                done = current.run("/bin/sh", "-c", words)
                assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
            elif verb == "WORKDIR":
                current.folder = words
            elif verb == "ENTRYPOINT":
                current.entry = re.findall(r'"([^"]+)"', words)
            else:
                raise AssertionError(f"{verb} is not known here")
            print(f"    {time.monotonic() - start:.0f} s", flush=True)
        return images, current
    except BaseException:
        for image in images.values():
            image.remove()
        raise


def same_steps(definition):
    """What the Apptainer definition runs is what the Containerfile runs."""
    stages = [re.sub(r"\s+", " ", part).strip() for part in
              re.findall(r"^%post\n((?: .*\n)+)", definition.read_text(encoding="utf-8"), re.M)]
    commands = [words for verb, words in instructions(SOURCE / "scripts/Containerfile") if verb == "RUN"]
    words_of = [sorted(re.findall(r"[\w/.*-]+", text)) for text in (*stages, *commands)]
    assert words_of[:2] == words_of[2:], words_of


def main():
    if not chroot.can_be_had():
        return chroot.SKIPPED
    same_steps(SOURCE / "scripts/stiefel.def")
    SCRATCH.mkdir(parents=True, exist_ok=True)
    images, image = build(SOURCE / "scripts/Containerfile", chroot.bare_debian(SCRATCH))
    try:
        version = image.run(*image.entry, "--version")
        assert version.returncode == 0 and version.stdout.startswith("stiefel "), version
        start = time.monotonic()
        done = image.run(*image.entry, "run", "/usr/share/stiefel/experiments/quickstart.yaml")
        assert done.returncode == 0 and re.search(r"^finished: test loss 0\.00\d+ ", done.stdout, re.M), done
        print(f"{version.stdout.splitlines()[0]}: the quickstart experiment took {time.monotonic() - start:.0f} s: {done.stdout.splitlines()[-2]}")
        for words in ("stiefel new parametrisation cayley", "cmake -S cayley -B cayley/build", "cmake --build cayley/build",
                      "stiefel check cayley/build/cayley.so", "stiefel run cayley/example.yaml"):
            done = image.run(*words.split())
            assert done.returncode == 0, (words, done)
        manual = image.run("sh", "-c", "ls /usr/share/man/man1 /usr/share/zsh/vendor-completions /usr/share/fish/vendor_completions.d; dpkg -s stiefel")
        assert manual.returncode == 0 and "Depends:" in manual.stdout, manual
    finally:
        for each in images.values():
            each.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())

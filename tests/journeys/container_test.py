#!/usr/bin/python3
"""The instructions of scripts/Containerfile, carried out in chroots of a bare Debian; the image then runs the quickstart experiment
and builds a plugin.

usage: container_test.py SOURCE SCRATCH; needs root and debootstrap, and is skipped without. Debian's packages come from where this machine
gets them.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time

SOURCE, SCRATCH = (pathlib.Path(word).resolve() for word in sys.argv[1:])
PROXIES = {name: value for name, value in os.environ.items() if name.lower() in ("http_proxy", "https_proxy", "no_proxy")}
SKIPPED = 77


def mirror():
    """Where apt gets Debian's packages from."""
    said = subprocess.run(["apt-get", "download", "--print-uris", "base-files"], capture_output=True, text=True, check=True).stdout
    return re.match(r"'(https?://\S+?)/pool/", said)[1]


def bare_debian():
    """A minimal Debian, made once; apt reaches its packages as it does on this machine."""
    base = SCRATCH / "debian"
    if not (SCRATCH / "made").exists():
        shutil.rmtree(base, ignore_errors=True)
        subprocess.run(["debootstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", base, mirror()], check=True,
                       stdout=subprocess.DEVNULL)
        for name in ("apt.conf.d", "auth.conf.d"):
            shutil.copytree(f"/etc/apt/{name}", base / "etc/apt" / name, dirs_exist_ok=True)
        for name in ("auth.conf", "apt.conf"):
            if os.path.exists(f"/etc/apt/{name}"):
                shutil.copy(f"/etc/apt/{name}", base / "etc/apt")
        certificates = pathlib.Path("/usr/local/share/ca-certificates")
        if certificates.is_dir():
            shutil.copytree(certificates, base / certificates.relative_to("/"), dirs_exist_ok=True)
            subprocess.run(["chroot", base, "update-ca-certificates"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        (SCRATCH / "made").touch()
    return base


def instructions(file):
    text = re.sub(r"^#.*\n", "", file.read_text(encoding="utf-8"), flags=re.M)
    return [line.split(maxsplit=1) for line in text.splitlines() if line]


class Image:
    """One stage of a Containerfile."""

    def __init__(self, name, base):
        self.root = SCRATCH / name
        self.remove()
        subprocess.run(["cp", "-a", "--reflink=auto", base, self.root], check=True)
        for kind, place in (("proc", "proc"), ("sysfs", "sys")):
            subprocess.run(["mount", "-t", kind, kind, self.root / place], check=True)
        subprocess.run(["mount", "--bind", "/dev", self.root / "dev"], check=True)
        for file in ("resolv.conf", "hosts"):
            shutil.copy(pathlib.Path("/etc", file).resolve(), self.root / "etc" / file)
        self.folder, self.entry = "/", []

    def remove(self):
        for place in ("proc", "sys", "dev"):
            if os.path.ismount(self.root / place):
                subprocess.run(["umount", self.root / place], check=True)
        shutil.rmtree(self.root, ignore_errors=True)

    def copy(self, source, target):
        target = self.root / target.lstrip("/")
        if source.is_dir():
            listed = subprocess.run(["git", "-C", source, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], check=True,
                                    capture_output=True).stdout
            for name in filter(None, os.fsdecode(listed).split("\0")):
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source / name, target / name, follow_symlinks=False)
        else:
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)

    def run(self, *words):
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive", **PROXIES}
        inside = f"mkdir -p {shlex.quote(self.folder)} && cd {shlex.quote(self.folder)} && exec \"$@\""
        return subprocess.run(["chroot", self.root, "/bin/sh", "-c", inside, "sh", *words], env=environment, text=True, capture_output=True,
                              check=False)


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
                current = images[name or "final"] = Image(name or "final", base)
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
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        print("skipped: needs root and debootstrap")
        return SKIPPED
    same_steps(SOURCE / "scripts/stiefel.def")
    SCRATCH.mkdir(parents=True, exist_ok=True)
    images, image = build(SOURCE / "scripts/Containerfile", bare_debian())
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

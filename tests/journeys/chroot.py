"""Bare Debians in chroots, for tests of what a newcomer does. They need root and debootstrap."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess

PASSED_ON = {name: value for name, value in os.environ.items() if name.lower() in ("http_proxy", "https_proxy", "no_proxy") or name.startswith("PIP_")}
SKIPPED = 77


def can_be_had():
    """Whether this machine can make them; says why not."""
    if os.geteuid() == 0 and shutil.which("debootstrap"):
        return True
    print("skipped: needs root and debootstrap")
    return False


def mirror():
    """Where apt gets Debian's packages from."""
    said = subprocess.run(["apt-get", "download", "--print-uris", "base-files"], capture_output=True, text=True, check=True).stdout
    return re.match(r"'(https?://\S+?)/pool/", said)[1]


def bare_debian(scratch, suite="bookworm"):
    """The folder of a minimal Debian, made once in `scratch`; apt and pip reach their packages as they do on this machine."""
    base, made = scratch / suite, scratch / f"{suite}.made"
    if not made.exists():
        shutil.rmtree(base, ignore_errors=True)
        subprocess.run(["debootstrap", "--variant=minbase", "--include=ca-certificates", suite, base, mirror()], check=True,
                       stdout=subprocess.DEVNULL)
        for name in ("apt.conf.d", "auth.conf.d"):
            shutil.copytree(f"/etc/apt/{name}", base / "etc/apt" / name, dirs_exist_ok=True)
        for name in ("/etc/apt/auth.conf", "/etc/apt/apt.conf", "/etc/pip.conf"):
            if os.path.exists(name):
                shutil.copy(name, base / name.lstrip("/"))
        certificates = pathlib.Path("/usr/local/share/ca-certificates")
        if certificates.is_dir():
            shutil.copytree(certificates, base / certificates.relative_to("/"), dirs_exist_ok=True)
            subprocess.run(["chroot", base, "update-ca-certificates"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        made.touch()
    return base


class Image:
    """A copy of a Debian, in which commands run as root or as the user `somebody`."""

    def __init__(self, root, base):
        self.root = root
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

    def run(self, *words, user="root"):
        home = "/root" if user == "root" else f"/home/{user}"
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": home, "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive", **PASSED_ON}
        inside = f"mkdir -p {shlex.quote(self.folder)} && cd {shlex.quote(self.folder)} && exec \"$@\""
        return subprocess.run(["chroot", f"--userspec={user}", self.root, "/bin/sh", "-c", inside, "sh", *words], env=environment, text=True,
                              capture_output=True, check=False)

"""What several tests share."""
import pathlib
import subprocess


def source_files(root):
    """The names of the files that belong to the source tree `root`, sorted: those of git, or, without it, all outside build/."""
    root = pathlib.Path(root)
    listed = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard"], capture_output=True, text=True)
    names = listed.stdout.splitlines() if listed.returncode == 0 else [
        str(path.relative_to(root)) for path in root.rglob("*") if "build" not in path.relative_to(root).parts]
    return sorted(name for name in set(names) if (root / name).is_file())

"""A page in headless Chromium: its document after its scripts have run, what it wrote to the console, and how it looks."""
import base64
import hashlib
import pathlib
import re
import shutil
import subprocess
import tempfile


def find():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def start(words, page, width, height, dark):
    with tempfile.TemporaryDirectory() as profile:
        command = [find(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr", f"--user-data-dir={profile}",
                   f"--window-size={width},{height}", f"--blink-settings=preferredColorScheme={0 if dark else 1}", "--virtual-time-budget=3000",
                   *words, page.resolve().as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return done.stdout, re.findall(r"CONSOLE.*?\] (.*)", done.stderr)


def with_script(html, script):
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return html.replace("script-src ", f"script-src 'sha256-{digest}' ", 1).replace("</body>\n</html>", f"<script>{script}</script></body>\n</html>")


def document(page, width=1200, script=None, dark=False):
    """The document as HTML and the lines of the console. A script is put into a copy of the page, whose policy then allows it."""
    if script is None:
        return start(["--dump-dom"], page, width, 900, dark)
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "copy.html"
        copy.write_text(with_script(page.read_text(), script))
        return start(["--dump-dom"], copy, width, 900, dark)


def screenshot(page, picture, width, height, dark=False):
    start([f"--screenshot={picture}"], page, width, height, dark)

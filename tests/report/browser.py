"""Pages in headless Chromium: what they are after their scripts have run, the console, and how they look."""
import atexit
import base64
import functools
import json
import os
import shutil
import subprocess
import tempfile


def find():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """One Chromium for all pages, asked through two pipes: JSON of its DevTools, with a zero behind each message."""

    def __init__(self):
        self.profile, self.number, self.messages, self.rest = tempfile.TemporaryDirectory(), 0, [], b""
        (asked, self.ask), (self.answers, answered) = os.pipe(), os.pipe()
        command = ["sh", "-c", f'exec "$@" 3<&{asked} 4>&{answered}', "sh",
                   find(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                   f"--user-data-dir={self.profile.name}", "--remote-debugging-pipe"]
        self.process = subprocess.Popen(command, pass_fds=(asked, answered), stderr=subprocess.DEVNULL)
        os.close(asked)
        os.close(answered)
        atexit.register(self.close)

    def close(self):
        self.call("Browser.close")
        self.process.wait()
        self.profile.cleanup()

    def message(self):
        while b"\0" not in self.rest:
            read = os.read(self.answers, 1 << 20)
            assert read, "Chromium has ended"
            self.rest += read
        first, _, self.rest = self.rest.partition(b"\0")
        self.messages.append(json.loads(first))
        return self.messages[-1]

    def call(self, method, session="", **parameters):
        self.number += 1
        question = {"id": self.number, "method": method, "params": parameters}
        question |= {"sessionId": session} if session else {}
        os.write(self.ask, json.dumps(question).encode() + b"\0")
        while (answer := self.message()).get("id") != self.number:
            pass
        assert "result" in answer and "exceptionDetails" not in answer["result"], answer
        return answer["result"]

    def wait_for(self, event):
        while event not in [message.get("method") for message in self.messages]:
            self.message()

    def answer(self, page, method, width=1200, height=900, dark=False, **parameters):
        """What a method of DevTools returns for the page, three seconds after it came; and what came to the console."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        call = functools.partial(self.call, session=session)
        self.messages = []
        for domain in ("Page", "Runtime", "Log"):
            call(domain + ".enable")
        call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        call("Emulation.setEmulatedMedia", features=[scheme])
        call("Page.navigate", url=page.resolve().as_uri())
        self.wait_for("Page.loadEventFired")
        call("Emulation.setVirtualTimePolicy", policy="advance", budget=3000)
        self.wait_for("Emulation.virtualTimeBudgetExpired")
        found = call(method, **parameters)
        self.call("Target.closeTarget", targetId=target)
        written = "Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"
        return found, [message for message in self.messages if message.get("method") in written]


@functools.cache
def chromium():
    return Browser()


def returned(page, script, **options):
    """What the script returns, and what came to the console."""
    function = "(() => {" + script + "})()"
    found, console = chromium().answer(page, "Runtime.evaluate", expression=function, returnByValue=True, **options)
    return found["result"].get("value"), console


def screenshot(page, picture, width, height, dark=False):
    found, _ = chromium().answer(page, "Page.captureScreenshot", width, height, dark)
    picture.write_bytes(base64.b64decode(found["data"]))

# SPDX-License-Identifier: BSD-3-Clause
"""Headless Chromium, told what to do over a pair of pipes (--remote-debugging-pipe): JSON texts that end in NUL."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PATIENCE_S = 60
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions", "--hide-scrollbars",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe"]


class Browser:
    def __init__(self, program):
        self.folder = tempfile.mkdtemp()
        self.buffer, self.number, self.errors = b"", 0, []
        theirs_in, self.to = os.pipe()
        self.of, theirs_out = os.pipe()
        # It wants them as 3 and 4; dup2() of one could close the other.
        far = [os.dup2(fd, 100 + fd) for fd in (theirs_in, theirs_out)]
        command = f'exec "$0" "$@" 3<&{far[0]} 4>&{far[1]}'
        self.process = subprocess.Popen(["bash", "-c", command, program, *FLAGS, f"--user-data-dir={self.folder}", "about:blank"],
                                        pass_fds=far, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for fd in (theirs_in, theirs_out, *far):
            os.close(fd)
        page = next(t for t in self.call("Target.getTargets", session=None)["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", session=None, targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")

    def receive(self):
        end = time.monotonic() + PATIENCE_S
        while b"\0" not in self.buffer:
            if not select.select([self.of], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            data = os.read(self.of, 1 << 16)
            if not data:
                raise EOFError("the browser has ended")
            self.buffer += data
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, session="", **parameters):
        """The result of a method of the DevTools protocol. Errors of the page gather in .errors."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("method") == "Runtime.exceptionThrown":
                details = answer["params"]["exceptionDetails"]
                self.errors.append(details.get("exception", {}).get("description", details["text"]))
            if answer.get("method") == "Log.entryAdded" and answer["params"]["entry"]["source"] == "security":
                self.errors.append(answer["params"]["entry"]["text"])
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']['text']}")
        return result["result"].get("value")

    def until(self, expression, seconds=PATIENCE_S):
        """Waits until it is true; False: it did not become true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.evaluate(expression):
                return True
            time.sleep(0.2)
        return False

    def open(self, url):
        self.call("Page.navigate", url=url)

    def look(self, width, height, dark=False):
        """As a screen of that size in CSS pixels, which prefers dark or light."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def screenshot(self, path):
        """The whole page as PNG. Its length."""
        with open(path, "wb") as file:
            return file.write(base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]))

    def close(self):
        try:
            self.call("Browser.close", session=None)
        except (EOFError, TimeoutError, BrokenPipeError):
            pass
        self.process.wait(PATIENCE_S)
        shutil.rmtree(self.folder, ignore_errors=True)

"""A person at a terminal: runs a script of bash on a pseudo-terminal of its own and answers what its commands ask.

The only argument is JSON: `script`, `passphrase`, `value`, and `seconds`, after which the script is killed. Prints JSON:
`code` and `output`. It answers when a line that ends in a question stands there; a hidden one is told by the missing echo.
"""
import fcntl
import json
import os
import select
import subprocess
import sys
import termios
import time

order = json.loads(sys.argv[1])
master, slave = os.openpty()


def take_terminal():
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)


def reply(line):
    if line.endswith("[y/N] "):
        return "n\r" if "recovery key" in line else "y\r"
    if line.endswith(": ") and not termios.tcgetattr(slave)[3] & termios.ECHO:
        return order["value" if "alue" in line else "passphrase"] + "\r"
    return ""


shell = ["bash", "--norc", "-euo", "pipefail", "-c", order["script"]]
child = subprocess.Popen(shell, stdin=slave, stdout=slave, stderr=slave, preexec_fn=take_terminal)
shown, seen, end = b"", 0, time.monotonic() + order["seconds"]
while True:
    if time.monotonic() > end:
        os.killpg(child.pid, 9)
    ready = select.select([master], [], [], 0.1)[0]
    if ready:
        shown += os.read(master, 65536)
    keys = reply(shown[seen:].rsplit(b"\n", 1)[-1].decode(errors="replace"))
    if keys:
        seen = len(shown)
        os.write(master, keys.encode())
    if not ready and child.poll() is not None:
        break
print(json.dumps({"code": child.returncode, "output": shown.decode(errors="replace")}))

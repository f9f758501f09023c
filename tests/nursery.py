"""Forks `python -m bot` processes from one that has imported everything: a start costs no seconds.
Not here: who asks for them and what they are for (tests/processes). Orders and news are lines of JSON.
"""

import json
import os
import selectors
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any, NoReturn

import time_machine

from bot import __main__ as bot_main
from bot.flow import checkpoints


def say(**news: Any) -> None:
    sys.stdout.write(json.dumps(news) + "\n")
    sys.stdout.flush()


def become_bot(order: dict[str, Any]) -> NoReturn:
    """Turn a fresh fork into what `python -m bot WORDS` is in that environment."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    log = os.open(order["log"], os.O_WRONLY)
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd, to in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(fd, to)
    os.closerange(3, 256)
    os.environ.clear()
    os.environ.update(order["env"])
    os.chdir(Path(order["log"]).parent)
    # Read at import, which was before the fork.
    checkpoints._KILL_AT = os.environ.get("STET_KILL_AT", "")
    if off_seconds := float(os.environ.get("STET_CLOCK_OFF_SECONDS", "0")):
        time_machine.travel(time.time() + off_seconds, tick=True).start()
    code = 1
    try:
        code = bot_main.main(order["words"])
    except BaseException:  # noqa: BLE001 - nobody above us would say it
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        sys.stdout.flush()
        os._exit(code)


def main() -> None:
    """Take orders until the asker is gone; then end what is left."""
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    alive: dict[int, str] = {}
    with selectors.DefaultSelector() as ready:
        ready.register(sys.stdin.fileno(), selectors.EVENT_READ, "orders")
        ready.register(ended, selectors.EVENT_READ, "ended")
        say(ready=True)
        waiting = b""
        while True:
            for key, _ in ready.select():
                if key.data == "ended":
                    os.read(ended, 4096)
                    reap(alive)
                    continue
                read = os.read(sys.stdin.fileno(), 65536)
                if not read:
                    for pid in alive:
                        os.kill(pid, signal.SIGKILL)
                    return
                *orders, waiting = (waiting + read).split(b"\n")
                for order in map(json.loads, orders):
                    pid = os.fork()
                    if pid == 0:
                        become_bot(order)
                    alive[pid] = order["name"]
                    say(name=order["name"], pid=pid)


def reap(alive: dict[int, str]) -> None:
    while alive:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        say(name=alive.pop(pid), pid=pid, code=os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()

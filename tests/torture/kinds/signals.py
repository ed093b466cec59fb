"""A build that receives a signal at any moment: it ends at once, the live set is complete."""

from __future__ import annotations

import signal
import subprocess
import time

from ..case import Case
from ..live import Night

#: seconds in which a build ends after a signal
PATIENCE = 15.0
ENDS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9, signal.SIGHUP: -1}


def run(case: Case) -> None:
    night = Night(case)
    sent = case.rng.choice(list(ENDS))
    # from the first instruction to some time after the end
    moment = case.rng.choice((0.1, 0.4, 1.0)) * case.rng.random()

    def disturb(process: subprocess.Popen[bytes]) -> None:
        time.sleep(moment)
        if process.poll() is None:
            process.send_signal(sent)

    # before Python has installed its handlers a signal ends the process by itself
    statuses = {0, ENDS[sent], -sent}
    case.urlset(*night.command(night.source), statuses=statuses, limit=PATIENCE, disturb=disturb)
    night.check(f"{sent.name} after {moment:.3f} s")

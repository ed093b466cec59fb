"""Runs one command and prints its cost as JSON: {"wall": s, "cpu": s, "peak_rss": bytes, ...}.

    python -I -S benches/measure.py LOG COMMAND...

A process of its own, for Linux counts the memory of the process that forks into the peak of the
child: started from a small one the floor is about 10 MiB. CPU is user + system of the command and
of all the processes it waited for; the peak is that of its largest process. The command's output
goes to LOG.
"""

import json
import os
import resource
import sys
import time


def main() -> None:
    """The command line."""
    log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    actions = [
        (os.POSIX_SPAWN_DUP2, nothing, 0),
        (os.POSIX_SPAWN_DUP2, log, 1),
        (os.POSIX_SPAWN_DUP2, log, 2),
    ]
    start = time.perf_counter()
    child = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ, file_actions=actions)
    _, status, usage = os.wait4(child, 0)
    wall = time.perf_counter() - start
    unit = 1 if sys.platform == "darwin" else 1024
    print(
        json.dumps(
            {
                "wall": wall,
                "cpu": usage.ru_utime + usage.ru_stime,
                "peak_rss": usage.ru_maxrss * unit,
                "floor_rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit,
                "status": os.waitstatus_to_exitcode(status),
            }
        )
    )


if __name__ == "__main__":
    main()

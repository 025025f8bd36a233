"""Finds and starts the programs of Sluice.

`python -m sluice_server` is the server, with its arguments; program("sluice-server") is the path of
one that can be started.
"""

import os
import sys

PROGRAMS = ("sluice-server", "sluice", "sluice-journal", "sluice-import")


def program(name="sluice-server"):
    if name not in PROGRAMS:
        raise ValueError(f"no program {name}: there are {', '.join(PROGRAMS)}")
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", name)


def start(name=None):
    """Replaces this process by the program of the command's name."""
    path = program(name or os.path.basename(sys.argv[0]))
    os.execv(path, [path, *sys.argv[1:]])

"""What starts again in the child of a fork, which has none of the parent's threads and must not use
its connections."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Begins(Protocol):
    """What has connections or threads."""

    def begin(self) -> None:
        """Forgets them, and the threads that wait for them."""


_known: weakref.WeakSet[Begins] = weakref.WeakSet()


def remember(begins: Begins) -> None:
    """Its `begin` is called in each child, before any other thread can be there."""
    _known.add(begins)


def _begin_all() -> None:
    for begins in list(_known):
        begins.begin()


if hasattr(os, "register_at_fork"):  # Windows has no forks.
    os.register_at_fork(after_in_child=_begin_all)

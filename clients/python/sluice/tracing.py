"""`traceparent` in a tag, where OpenTelemetry is installed; otherwise nothing."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any, ContextManager, Mapping, Optional

TAG = "traceparent"


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


_propagate = _module("opentelemetry.propagate")
_trace = _module("opentelemetry.trace")
_context = _module("opentelemetry.context")

available = _propagate is not None


def with_parent(tags: Optional[Mapping[str, str]]) -> Optional[Mapping[str, str]]:
    """The tags, and the present span as `traceparent` unless they name one."""
    if not available or (tags and TAG in tags):
        return tags
    carrier: dict[str, str] = {}
    _propagate.inject(carrier)
    return {**(tags or {}), TAG: carrier[TAG]} if TAG in carrier else tags


@contextlib.contextmanager
def _run_under(parent: str, name: str) -> Any:
    token = _context.attach(_propagate.extract({TAG: parent}))
    try:
        with _trace.get_tracer("sluice").start_as_current_span(name):
            yield
    finally:
        _context.detach(token)


def span_of(tags: Mapping[str, str], name: str) -> ContextManager[Any]:
    """A span for the run of a job whose tags name its parent."""
    if not available or TAG not in tags:
        return contextlib.nullcontext()
    return _run_under(tags[TAG], name)

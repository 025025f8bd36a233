#!/usr/bin/python3
"""The structure that ARCHITECTURE.md promises: who includes whom, and what the tree never contains.

Prints one line for each place that breaks a rule, and "N passed, N failed", a rule counting as one.
"""

import fnmatch
import os
import re
import sys

import style_test

SOURCES = (".h", ".cc")

# The few engine headers that storage may see: its ports, effects, bytes and status. Everything
# else of the engine has to stay replaceable without a look at the disk format.
STORAGE_SEES = ["engine/base/*.h", "engine/ports/journal.h", "engine/ports/event_spill.h",
                "engine/snapshot.h", "engine/effects*.h", "engine/keyspace/effects*.h",
                "engine/unit/unit.h", "storage/*"]

MAY_INCLUDE = {
    "engine": ["engine/*"],
    "storage": STORAGE_SEES,
    "net": ["net/*", "storage/*", "engine/*"],
    "tools": ["tools/*", "net/*", "storage/*", "engine/*"],
}

# The engine has no sockets, no disk, no clock and no randomness of its own: `now_ms` and seeds come
# in as arguments, so that the simulator and replay see the same thing again.
ENGINE_NEVER = {
    r"#include <(boost|rocksdb|spdlog)/": "a library of the outer folders",
    r"#include <(sys/socket|netinet/\w+|arpa/inet|sys/epoll|poll|fcntl|fstream|filesystem)(\.h)?>":
        "sockets or files",
    r"\b(system_clock|steady_clock|high_resolution_clock|clock_gettime|gettimeofday)\b": "a clock",
    r"\bstd::time\(|[^\w.>:]time\((nullptr|NULL|0)\)": "a clock",
    r"\brandom_device\b|[^\w.>:]s?rand\(\)|\bgetrandom\b|/dev/u?random": "a source of randomness",
    # Not for the simulator but for the compiler, which may drop it: see there.
    r"\b__builtin_prefetch\b": "prefetching without prefetch_line()",
}

# "path: what" -> why it is right there.
ENGINE_EXCEPTIONS: dict[str, str] = {
    "engine/base/mutex.h: a clock": "when to give up waiting for a lock; no value comes from it",
    "engine/script/lua_source.cc: a clock": "how long a new source may keep the compiler busy",
    "engine/base/ticks.h: a clock": "durations for statistics; no order or deadline uses them",
    "engine/base/ticks.cc: a clock": "measures how long one of those ticks is",
    "engine/base/prefetch_line.h: prefetching without prefetch_line()": "is it",
}

# Where one machine's layout would have leaked in. Written in pieces, as this file is checked too.
MACHINE_PATHS = re.compile("(?<![\\w.~$}])/(?:" + "|".join(
    ["work" + "/", "home" + "/\\w", "root" + "/", "Users" + "/", "tmp" + "/team"]) + ")")
REGISTRIES = re.compile("|".join(re.escape(".".join(parts)) for parts in [
    ("deb", "debian", "org"), ("pypi", "org"), ("files", "pythonhosted", "org"),
    ("registry", "npmjs", "org"), ("registry", "yarnpkg", "com"), ("crates", "io"),
    ("proxy", "golang", "org"), ("docker", "io"), ("ghcr", "io")]) + "|" + "artif" + "actory")

MAX_TRACKED_BYTES = 1 << 20
BUILD_OUTPUT = re.compile(r"(^|/)(build|node_modules|__pycache__)/|\.(o|a|so|pyc)$")


def includes(text):
    for number, line in enumerate(text.split("\n"), 1):
        found = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if found:
            yield number, found.group(1)


def check_direction(path, text):
    allowed = MAY_INCLUDE.get(path.split("/")[0])
    if allowed is None:
        return
    for number, target in includes(text):
        if not any(fnmatch.fnmatch(target, pattern) for pattern in allowed):
            yield f"{path}:{number}: includes {target}"


def check_paths_of_includes(path, text):
    for number, target in includes(text):
        if not os.path.isfile(os.path.join(style_test.ROOT, target)):
            yield f"{path}:{number}: {target} is not a path from the root of the repository"


def check_engine(path, text):
    if not path.startswith("engine/"):
        return
    code = style_test.CPP_TOKENS.sub(
        lambda match: match.group() if match.group().lstrip().startswith("#") else
        re.sub(r"[^\n]", " ", match.group()), text)
    for number, line in enumerate(code.split("\n"), 1):
        for pattern, what in ENGINE_NEVER.items():
            if re.search(pattern, line) and f"{path}: {what}" not in ENGINE_EXCEPTIONS:
                yield f"{path}:{number}: {what} in the engine"


def check_cycles(sources):
    """Headers include each other in one direction only. Yields one line for each cycle.

    x_inl.h is the second half of x.h, and may say so by including it.
    """
    graph = {path: [target for _, target in includes(text)
                    if target in sources and target != path.replace("_inl.h", ".h")]
             for path, text in sources.items()}
    state = {}

    def visit(path, trail):
        if state.get(path) == "done":
            return
        if path in trail:
            yield "a cycle: " + " -> ".join(trail[trail.index(path):] + [path])
            return
        for target in graph[path]:
            yield from visit(target, trail + [path])
        state[path] = "done"

    for path in graph:
        yield from visit(path, [])


def check_places(path, text):
    for number, line in enumerate(text.split("\n"), 1):
        if MACHINE_PATHS.search(line):
            yield f"{path}:{number}: a path of one machine"
        if REGISTRIES.search(line):
            yield f"{path}:{number}: the name of a package registry"


def check_output(paths):
    for path in paths:
        if BUILD_OUTPUT.search(path):
            yield f"{path}: build output"
        elif os.path.getsize(os.path.join(style_test.ROOT, path)) > MAX_TRACKED_BYTES:
            yield f"{path}: more than {MAX_TRACKED_BYTES >> 20} MB"


def main():
    paths = style_test.files()
    texts = {path: style_test.read(path) for path in paths}
    sources = {path: text for path, text in texts.items() if path.endswith(SOURCES)}

    def over(check, these):
        return [problem for path, text in these.items() for problem in check(path, text)]

    results = {
        "engine includes no net and no storage, storage sees a few engine headers":
            over(check_direction, sources),
        "an include is a path from the root": over(check_paths_of_includes, sources),
        "includes have no cycles": list(check_cycles(sources)),
        "the engine has no socket, file, clock or randomness, and prefetches by one way":
            over(check_engine, sources),
        "no machine's paths and no registry's name": over(check_places, texts),
        "no build output, nothing large": list(check_output(paths)),
    }
    for rule, problems in results.items():
        print(f"{'FAILED' if problems else 'ok':7}{rule}")
        for problem in problems:
            print(f"       {problem}")
    failed = sum(1 for problems in results.values() if problems)
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

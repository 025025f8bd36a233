#!/usr/bin/python3
"""The structure that ARCHITECTURE.md promises: who includes whom, and what the tree never contains.

Prints one line for each place that breaks a rule, and "N passed, N failed", a rule counting as one.
"""

import argparse
import os
import re
import subprocess
import sys

import style_test
from harness import summary

SOURCES = (".h", ".cc")

# From the ground up: a folder includes only what is in it or stands before it. README.md says
# what each one is for.
FLOORS = [
    "engine/base", "engine/structures", "engine/ports", "engine/reply", "engine/table",
    "engine/unit", "engine/access", "engine/queue", "engine/keyspace", "engine/clients",
    "engine/work", "engine/adopted", "engine/rdb", "engine/execution", "engine/script",
    "engine/commands", "storage", "storage/etcd", "net/resp", "net/process", "net/group",
    "net/config", "net/tls", "net/io", "net/http", "net/sentinel", "net/admin", "net/server",
    "tools",
]
# The public header keeps the path by which programs include it.
PLACES = {"net/embedded_server.h": "net/server"}

# All that storage may see of the engine: everything else stays replaceable without a look at the
# disk format.
STORAGE_SEES = ["engine/base", "engine/ports", "engine/unit", "storage"]

# Headers of large libraries that one folder alone includes.
KEPT_IN = {r"#include <(grpc|grpcpp|google/protobuf|etcd\.pb)\b": "storage/etcd/"}

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
    "engine/base/thread.cc: a clock": "processor time: what a source and event streams may use",
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


def floor_of(path):
    """The folder of the list that holds the file; None: it is in none (tests, bench)."""
    if path in PLACES:
        return PLACES[path]
    found = [floor for floor in FLOORS if path.startswith(floor + "/")]
    return max(found, key=len, default=None)


def sees(floor, other):
    if floor.startswith("storage"):
        return other in STORAGE_SEES or other == floor
    return FLOORS.index(other) <= FLOORS.index(floor)


def check_floors(path, text):
    top = path.split("/")[0]
    if top not in ("engine", "storage", "net", "tools"):
        return
    floor = floor_of(path)
    if floor is None:
        yield f"{path}: in none of the folders that have a floor"
        return
    for number, target in includes(text):
        other = floor_of(target)
        if other is None or not sees(floor, other):
            yield f"{path}:{number}: {floor} includes {target}"


def objects_of(build, library):
    """Yields each object of the library, with one of its sources: all are of one folder."""
    root = os.path.join(build, "CMakeFiles", f"sluice_{library}.dir")
    for folder, _, names in os.walk(root):
        for name in names:
            stem, extension = os.path.splitext(os.path.join(folder, name))
            source = os.path.relpath(stem, root)
            if extension == ".o" and name.startswith("unity_"):
                _, united = next(includes(style_test.read(stem)))
                source = os.path.relpath(united, style_test.ROOT)
            # Objects of sources that are gone stay in a folder which CMake has built in before.
            if extension == ".o" and os.path.isfile(os.path.join(style_test.ROOT, source)):
                yield os.path.join(folder, name), source


def read_symbols(build):
    """Yields for each object of the libraries its source, what it defines, what it leaves open."""
    for library in ("engine", "storage", "etcd", "server"):
        for path, source in objects_of(build, library):
            listed = subprocess.run(["nm", "-P", path], check=True, capture_output=True, text=True)
            symbols = [line.split()[:2] for line in listed.stdout.splitlines()]
            # Those of libraries are defined wherever their templates are used.
            own = [(name, kind) for name, kind in symbols if "6sluice" in name]
            yield (source, {name for name, kind in own if kind not in "Uvw"},
                   {name for name, kind in own if kind == "U"})


def check_symbols(build):
    """A forward declaration does not get around the floors: what a floor's objects leave undefined
    is defined in it or below."""
    defined = {}
    undefined = {}
    for source, defines, leaves in read_symbols(build):
        floor = floor_of(source)
        for name in defines:
            known = defined.get(name)
            if known is None or FLOORS.index(floor) < FLOORS.index(known):
                defined[name] = floor
        for name in leaves:
            undefined.setdefault((floor, name), source)
    if not defined:
        yield f"no objects in {build}"
    for (floor, name), source in sorted(undefined.items()):
        if name in defined and not sees(floor, defined[name]):
            yield f"{source}: {name} is defined in {defined[name]}"


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


def check_libraries(path, text):
    for number, line in enumerate(text.split("\n"), 1):
        for pattern, folder in KEPT_IN.items():
            if re.match(pattern, line) and not path.startswith(folder):
                yield f"{path}:{number}: only {folder} includes that library"


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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", help="a folder that CMake has built in: looks at symbols alone")
    arguments = parser.parse_args()
    paths = style_test.files()
    texts = {path: style_test.read(path) for path in paths}
    sources = {path: text for path, text in texts.items() if path.endswith(SOURCES)}

    def over(check, these):
        return [problem for path, text in these.items() for problem in check(path, text)]

    results = {
        "includes run downward, floor by floor": over(check_floors, sources),
        "an include is a path from the root": over(check_paths_of_includes, sources),
        "includes have no cycles": list(check_cycles(sources)),
        "the engine has no socket, file, clock or randomness, and prefetches by one way":
            over(check_engine, sources),
        "gRPC is seen in storage/etcd/ alone": over(check_libraries, sources),
        "no machine's paths and no registry's name": over(check_places, texts),
        "no build output, nothing large": list(check_output(paths)),
    }
    if arguments.build:
        results = {"symbols run downward": list(check_symbols(arguments.build))}
    for rule, problems in results.items():
        print(f"{'FAILED' if problems else 'ok':7}{rule}")
        for problem in problems:
            print(f"       {problem}")
    failed = sum(1 for problems in results.values() if problems)
    print(summary(len(results) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

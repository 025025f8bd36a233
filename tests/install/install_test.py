#!/usr/bin/python3
"""Another project finds an installed Sluice, or takes its folder in; an operator finds the files.

Installs a build to a temporary prefix, builds tests/install/consumer against it and runs that;
installs for /usr, /usr/local and /opt below a temporary root, and looks at the paths; configures
tests/install/subproject, which takes Sluice in by add_subdirectory.
    tests/install/install_test.py --build build/release
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def run(*command, **options):
    print("+", " ".join(command), flush=True)
    return subprocess.run(command, check=True, **options)


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


PROGRAMS = ["sluice-server", "sluice", "sluice-journal", "sluice-import"]
DOCUMENTS = ["README.md", "QUEUE.md", "REDIS.md", "COMMANDS.md", "HTTP.md", "ARCHITECTURE.md",
             "docs/operating.md", "docs/packages.md", "docs/first-job.md",
             "clients/python/README.md", "clients/typescript/README.md",
             "examples/judge/README.md", "examples/fastapi/README.md",
             "examples/express/README.md", "bench/results/README.md"]
# On every Debian, as apt needs them.
ALWAYS_THERE = {"libc6", "libgcc-s1", "libstdc++6"}


def require(holds, what):
    if not holds:
        raise SystemExit(f"FAILED: {what}")


def read(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as file:
        return file.read()


def check_files(prefix):
    """What an operator gets besides the libraries."""
    expected = [*(f"bin/{program}" for program in PROGRAMS),
                "share/bash-completion/completions/sluice", "share/zsh/site-functions/_sluice",
                "share/fish/vendor_completions.d/sluice.fish",
                *(f"share/man/man1/{program}.1" for program in PROGRAMS),
                "etc/sluice/sluice.conf", "share/doc/sluice/LICENSE",
                "share/sluice/prometheus-alerts.yml", "share/sluice/grafana-dashboard.json",
                "lib/systemd/system/sluice.service"]
    expected += ["share/doc/sluice/" + name for name in DOCUMENTS]
    missing = [path for path in expected if not os.path.isfile(os.path.join(prefix, path))]
    require(not missing, f"not installed: {', '.join(missing)}")
    for program in PROGRAMS:
        page = read(prefix, "share/man/man1", program + ".1")
        require(page.startswith(".TH ") and ".SH NAME\n" in page and len(page) > 500,
                f"the page of {program}: {page[:200]}")
    require("\n.SS cancel\n" in read(prefix, "share/man/man1/sluice.1"), "no commands in sluice.1")
    folder = os.path.join(prefix, "share/doc/sluice")
    for name in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#\s]+)", read(folder, name)):
            linked = os.path.join(folder, os.path.dirname(name), target)
            require("://" in target or os.path.exists(linked),
                    f"{name} is installed, and {target}, to which it has a link, is not")


def check_paths(build, root):
    """The configuration is where the unit says, for each kind of prefix."""
    for prefix, etc in [("/usr", "/etc"), ("/usr/local", "/usr/local/etc"),
                        ("/opt/sluice", "/etc/opt/sluice")]:
        run("cmake", "--install", build, "--prefix", prefix, stdout=subprocess.DEVNULL,
            env=dict(os.environ, DESTDIR=root))
        unit = read(root + prefix, "lib/systemd/system/sluice.service")
        command = re.search(r"^ExecStart=(\S+) (\S+) ", unit, re.MULTILINE).groups()
        require(command == (f"{prefix}/bin/sluice-server", f"{etc}/sluice/sluice.conf"),
                f"{prefix}: the unit starts {command}")
        documentation = re.search(r"^Documentation=file://(\S+)/$", unit, re.MULTILINE).group(1)
        require(documentation == f"{prefix}/share/doc/sluice", documentation)
        for path in (*command, documentation):
            require(os.path.exists(root + path), f"{prefix}: no {path}")
        shutil.rmtree(root)


def check_upgrade(build, prefix):
    """A configuration that somebody has edited stays, and the new one is where it says."""
    path = os.path.join(prefix, "etc/sluice/sluice.conf")
    fresh = read(path)
    with open(path, "w", encoding="utf-8") as file:
        file.write("port 7777\n")
    said = output("cmake", "--install", build, "--prefix", prefix)
    require(read(path) == "port 7777\n", "an edited sluice.conf is overwritten")
    new = re.search(r"Kept: (\S+) \(this version's: (\S+)\)", said)
    require(new and new.group(1) == path, f"nothing said about the kept file: {said}")
    require(read(new.group(2)) == fresh, f"{new.group(2)} is not the new one")


def check_packages(prefix):
    """docs/operating.md names Debian's packages that an installed Sluice runs with."""
    needed = set()
    for program in PROGRAMS:
        path = os.path.join(prefix, "bin", program)
        direct = set(re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-d", path)))
        for name, place in re.findall(r"(\S+) => (\S+)", output("ldd", path)):
            if name in direct:
                # The package may name it without /usr.
                path_in_package = "*" + os.path.realpath(place).removeprefix("/usr")
                needed.add(output("dpkg-query", "--search", path_in_package).split(":")[0])
    named = re.search(r"apt-get install (.*) # what the programs run with",
                      read(ROOT, "docs/operating.md"))
    require(named, "docs/operating.md names no packages")
    require(set(named.group(1).split()) == needed - ALWAYS_THERE,
            f"docs/operating.md names {named.group(1)}, and the programs need {sorted(needed)}")


def check_subproject(build):
    """By add_subdirectory come libraries that go into a shared one, and no tests or benches."""
    run("cmake", "-S", os.path.join(ROOT, "tests/install/subproject"), "-B", build, "-G", "Ninja",
        f"-DSLUICE_DIR={ROOT}", stdout=subprocess.DEVNULL)
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = json.load(file)
    library = [entry["command"] for entry in commands
               if re.search(r" -o \S*/sluice_(engine|storage|server)\.dir/", entry["command"])]
    require(library, "the libraries are not built")
    others = [entry["file"] for entry in commands
              if re.search(r" -o \S*/(unit_tests|bench_\w+)\.dir/", entry["command"])]
    require(not others, f"built by add_subdirectory: {others[:3]}")
    require(all("-fPIC" in command for command in library),
            "CMAKE_POSITION_INDEPENDENT_CODE does not reach the libraries")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, help="a complete build directory")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sluice-install-") as scratch:
        prefix = os.path.join(scratch, "prefix")
        build = os.path.join(scratch, "build")
        check_subproject(os.path.join(scratch, "subproject"))
        check_paths(options.build, os.path.join(scratch, "root"))
        run("cmake", "--install", options.build, "--prefix", prefix, stdout=subprocess.DEVNULL)
        check_files(prefix)
        check_upgrade(options.build, prefix)
        check_packages(prefix)
        run("cmake", "-S", os.path.join(ROOT, "tests/install/consumer"), "-B", build, "-G", "Ninja",
            f"-DCMAKE_PREFIX_PATH={prefix}", f"-DEMBEDDING_DIR={ROOT}/tests/embedding")
        run("cmake", "--build", build, "--parallel", str(os.cpu_count()))
        for name in sorted(os.listdir(build)):
            path = os.path.join(build, name)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                run(path, cwd=scratch, timeout=120)
    print("an installed Sluice can be used")


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
"""What tools/package makes of a build: its contents, and the programs started from each package.

    tests/install/package_test.py --server build/release/bin/sluice-server [--only part-of-a-name]

The .deb is installed in a bare Debian by tools/package --try; here it is only read.
"""

import functools
import importlib.util
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

from harness import Skipped, need_program, require, require_equal, run, scratch, wait_until
from harness.resp import Connection
from harness.servers import ROOT, die_with_parent

PROGRAMS = ["sluice-server", "sluice", "sluice-journal", "sluice-import"]
START_S = 5
PROGRAMS_BYTES = 40_000_000
REQUIRED = ("requires Linux on x86-64 with glibc 2.36 or newer, as Debian 12 has; here is Linux "
            "x86_64 with ")
# The system's, on every machine that is new enough.
SYSTEM = re.compile(r"/(ld-linux-x86-64|lib(c|m|pthread|dl|rt|resolv|gcc_s|stdc\+\+))\.so")
made = tempfile.TemporaryDirectory(prefix="sluice-packages-")


def output(*command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, timeout=600, check=False, **options)
    require_equal(done.returncode, 0, f"{' '.join(map(str, command))}: {done.stdout}")
    return done.stdout


@functools.lru_cache(None)
def packages(program):
    """Makes them once: {the name without version and platform: path}."""
    for name in ("dpkg-shlibdeps", "file", "patchelf"):
        need_program(name)
    build = pathlib.Path(program).parents[1]
    if not (build / "page/index.html").exists():
        raise Skipped("NOT RUN: a server without the live page is not packed")
    out = output(ROOT / "tools/package", "--build", build, "--out", made.name)
    print(out, end="", flush=True)
    kinds = {"deb": r"sluice_.*_amd64\.deb", "debug": r"sluice-dbgsym_.*_amd64\.deb",
             "tarball": r"sluice-[\d.]+-linux-x86_64\.tar\.gz",
             "symbols": r"sluice-.*-symbols\.tar\.gz", "npm": r"sluice-server-[\d.]+\.tgz",
             "platform": r"sluice-server-linux-x64-[\d.]+\.tgz",
             "wheel": r"sluice_server-[\d.]+-py3-none-manylinux_2_36_x86_64\.whl",
             "Python client": r"sluice-[\d.]+-py3-none-any\.whl",
             "TypeScript client": r"sluice-queue-[\d.]+\.tgz"}
    names = os.listdir(made.name)
    require_equal(len(names), len(kinds), names)
    found = {kind: [name for name in names if re.fullmatch(pattern, name)]
             for kind, pattern in kinds.items()}
    require(all(len(paths) == 1 for paths in found.values()), found)
    return {kind: os.path.join(made.name, paths[0]) for kind, paths in found.items()}


def unpack(archive, folder):
    with tarfile.open(archive) as tar:
        require(all(entry.uid == entry.gid == 0 and not entry.mode & 0o022 for entry in tar),
                f"{archive}: files that are not root's alone")
        tar.extractall(folder)
    return pathlib.Path(folder, os.listdir(folder)[0])


def build_id(path):
    return re.search(r"Build ID: (\w+)", output("readelf", "-n", path))[1]


def check_start(command, libraries, environment=None, most_s=START_S):
    """The command serves a job from an empty directory within `most_s`, and its libraries, but for
    the system's, are below the folder `libraries`."""
    with scratch() as folder:
        ready, log = pathlib.Path(folder, "ready"), pathlib.Path(folder, "log")
        empty = pathlib.Path(folder, "empty")
        empty.mkdir()
        arguments = ["--port", "auto", "--http-port", "0", "--ready-file", ready]
        began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        with open(log, "wb") as said:
            process = subprocess.Popen([*command, *arguments], cwd=empty, stdout=said, stderr=said,
                                       stdin=subprocess.DEVNULL, start_new_session=True,
                                       env=environment, preexec_fn=die_with_parent)
        try:
            wait_until(lambda: process.poll() is not None or ready.exists() and
                       ready.read_text().endswith("\n"), 60 + 2 * most_s, "the ports' file")
            require(process.poll() is None, log.read_text())
            port = int(re.search(r"^port (\d+)$", ready.read_text(), re.MULTILINE)[1])
            with Connection("127.0.0.1", port) as connection:
                added = connection.call("Q.ADD", "exec", "first", "print(1)")
                took_s = time.monotonic() - began
                require(not added.is_error, added)
                popped = connection.call("Q.POP", "1", "exec")
                require(b"print(1)" in popped.raw, popped)
                own = int(re.search(rb"process_id:(\d+)",
                                    connection.call("INFO", "server").value)[1])
            mapped = set(re.findall(r" (/\S+\.so\S*)$", pathlib.Path(f"/proc/{own}/maps")
                                    .read_text(), re.MULTILINE))
            others = [path for path in mapped if not SYSTEM.search(path) and
                      not path.startswith(os.path.realpath(libraries) + "/")]
            require(len(mapped) > 10 and not others, f"{others} of {mapped}")
            os.kill(own, signal.SIGTERM)
            require_equal(process.wait(timeout=20), 0, "exit code")
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            busy_s = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
            print(f"       {took_s:.2f} s from the command to the first job, {busy_s:.2f} s of the "
                  "processor", flush=True)
            # Time of the processor, since other processes may have it meanwhile.
            require(busy_s < most_s, f"starting took {busy_s:.1f} s of the processor")
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def test_the_debian_package(options):
    """The .deb requires Debian's libraries, and its unit, configuration and pages are in place."""
    paths = packages(options.program)
    fields = output("dpkg-deb", "--field", paths["deb"])
    for field in ("Package: sluice", "Architecture: amd64"):
        require(f"{field}\n" in fields, fields)
    depends = set(re.findall(r"[\w.+-]+(?= \(|,|$)", re.search("^Depends: (.*)$", fields,
                                                               re.MULTILINE)[1]))
    named = re.search(r"apt-get install (.*) # what the programs run with",
                      (ROOT / "docs/operating.md").read_text())[1]
    # A virtual package names the version of fmt too.
    require({*named.split(), "libc6", "adduser"} <= {*depends, "libspdlog1.10"} and
            any(name.startswith("libspdlog1.10") for name in depends), depends)
    with scratch() as folder:
        root = pathlib.Path(folder, "root")
        output("dpkg-deb", "--raw-extract", paths["deb"], root)
        require_equal((root / "DEBIAN/conffiles").read_text(), "/etc/sluice/sluice.conf\n")
        for name in ("postinst", "prerm", "postrm"):
            require(os.access(root / "DEBIAN" / name, os.X_OK), name)
            output("sh", "-n", root / "DEBIAN" / name)
        for page in PROGRAMS:
            output("gzip", "--test", root / f"usr/share/man/man1/{page}.1.gz")
            require("RPATH" not in output("readelf", "-d", root / "usr/bin" / page), page)
        unit = root / "usr/lib/systemd/system/sluice.service"
        require("\nUser=sluice\n" in unit.read_text() and "Dynamic" not in unit.read_text(), unit)
        for path in ("etc/sluice/sluice.conf", "usr/share/doc/sluice/copyright",
                     "usr/share/doc/sluice/docs/operating.md"):
            require((root / path).is_file(), path)
        foreign = [str(path) for path in root.rglob("*") if path.suffix in (".a", ".h", ".cc")]
        require_equal(foreign, [])
        if shutil.which("systemd-analyze"):
            unit.write_text(unit.read_text().replace("=/usr/bin/", f"={root}/usr/bin/"))
            said = output("systemd-analyze", "--man=no", "verify", unit)
            require("sluice" not in said, said)
    listed = output("dpkg-deb", "--contents", paths["deb"])
    strange = [line for line in listed.splitlines()
               if " root/root " not in line or not re.match(r"l|.{5}-.{2}-", line)]
    require_equal(strange, [])


def test_the_symbols(options):
    """Programs are stripped, 40 MB together; their debug information is apart, by the same ids."""
    paths = packages(options.program)
    with scratch() as folder:
        root = pathlib.Path(folder, "root")
        output("dpkg-deb", "--extract", paths["deb"], root)
        output("dpkg-deb", "--extract", paths["debug"], root)
        tree = unpack(paths["tarball"], os.path.join(folder, "tarball"))
        symbols = unpack(paths["symbols"], os.path.join(folder, "symbols"))
        require_equal(symbols.name, tree.name)
        for name in PROGRAMS:
            both = [tree / "lib/sluice" / name, root / "usr/bin" / name]
            require_equal(build_id(both[0]), build_id(both[1]))
            require(not any(".debug_line" in output("readelf", "-SW", path) for path in both), name)
            place = f"lib/debug/.build-id/{build_id(both[0])[:2]}/{build_id(both[0])[2:]}.debug"
            for path in (symbols / place, root / "usr" / place):
                require(".debug_line" in output("readelf", "-SW", path), path)
        for files in ([tree / "lib/sluice" / name for name in PROGRAMS],
                      [root / "usr/bin" / name for name in PROGRAMS]):
            require(sum(path.stat().st_size for path in files) < PROGRAMS_BYTES, files)


def test_the_tarball(options):
    """Unpacked anywhere it runs, with its own libraries, and has a licence for each of them."""
    with scratch() as folder:
        tree = unpack(packages(options.program)["tarball"], os.path.join(folder, "tarball"))
        libraries = [path.name for path in (tree / "lib/sluice").glob("*.so*")]
        require({"librocksdb.so.7.8", "libssl.so.3", "libcrypto.so.3"} <= set(libraries), libraries)
        # It would load fifty more for a journal in etcd that most do not have.
        require(not any("libgrpc" in name or "absl" in name for name in libraries), libraries)
        for name in PROGRAMS:
            require("(RPATH) Library rpath: [$ORIGIN]" in
                    re.sub(" +", " ", output("readelf", "-d", tree / "lib/sluice" / name)), name)
            require(output(tree / "bin" / name, "--help"), name)
        licences = {path.stem for path in (tree / "share/doc/sluice/licences").iterdir()}
        for library in libraries:
            package = output("dpkg-query", "--search", f"*/{library}").split(":")[0]
            require(package in licences, f"no licence of {library}, from {package}")
        require({"Apache-2.0", "uplot", "nlohmann-json3-dev", "libgrpc-dev"} <= licences, licences)
        require((tree / "etc/sluice/sluice.conf").is_file() and
                (tree / "share/man/man1/sluice.1").is_file(), "configuration, pages")
        check_start([tree / "bin/sluice-server"], tree / "lib/sluice")
        # Through a link, as from /usr/local/bin.
        link = pathlib.Path(folder, "sluice-server")
        link.symlink_to(tree / "bin/sluice-server")
        check_start([link], tree / "lib/sluice")


def test_the_npm_packages(options):
    """Both .tgz in one command, without a registry: npx starts the server.

    JavaScript finds it, and what it may run on is said."""
    npm, npx, node = need_program("npm"), need_program("npx"), need_program("node")
    paths = packages(options.program)
    with scratch() as folder:
        project = pathlib.Path(folder, "project")
        project.mkdir()
        # A registry that nobody serves: whatever asks it fails.
        environment = dict(os.environ, HOME=folder, npm_config_cache=os.path.join(folder, "cache"),
                           npm_config_registry="http://127.0.0.1:9/", npm_config_fetch_retries="0",
                           npm_config_update_notifier="false")
        output(npm, "install", "--no-audit", "--no-fund", paths["npm"], paths["platform"],
               cwd=project, env=environment)
        platform = project / "node_modules/@sluice/server-linux-x64"
        about = json.loads((platform / "package.json").read_text())
        require_equal([about[name] for name in ("os", "cpu", "libc")],
                      [["linux"], ["x64"], ["glibc"]])
        found = output(node, "--print", "require('@sluice/server').program('sluice-server')",
                       cwd=project).strip()
        check_start([found], platform / "lib/sluice")
        for name in PROGRAMS:
            require(output(npx, "--no", name, "--", "--help", cwd=project, env=environment), name)
        # npm unpacks the packages twice, which takes the most of it: packaging/trial.py measures
        # that alone on the machine. A start without npm is bounded above.
        check_start([npx, "--offline", "--yes", f"--package={paths['npm']}",
                     f"--package={paths['platform']}", "--", "sluice-server"],
                    os.path.join(folder, "cache/_npx"), environment, most_s=12 * START_S)


def test_the_wheel(options):
    """pip installs it without an index; the module and the commands start the programs."""
    if not importlib.util.find_spec("ensurepip"):
        raise Skipped("NOT RUN: no python3-venv; tools/setup test installs it")
    wheel = packages(options.program)["wheel"]
    with zipfile.ZipFile(wheel) as archive:
        require_equal(archive.testzip(), None)
    with scratch() as folder:
        environment = pathlib.Path(folder, "venv")
        output("/usr/bin/python3", "-m", "venv", environment)
        python = environment / "bin/python"
        output(python, "-m", "pip", "install", "--no-index", "--disable-pip-version-check", wheel)
        found = output(python, "-c", "import sluice_server; print(sluice_server.program())").strip()
        libraries = os.path.join(os.path.dirname(found), "../lib/sluice")
        check_start([python, "-m", "sluice_server"], libraries)
        check_start([environment / "bin/sluice-server"], libraries)
        for name in PROGRAMS:
            require(output(environment / "bin" / name, "--help"), name)


def test_where_it_cannot_run(_options):
    """An older glibc, another C library and missing programs are told in one line each."""
    loader = "/lib64/ld-linux-x86-64.so.2"
    text = (ROOT / "packaging/launch.sh").read_text()
    require_equal(text.count(loader), 1)
    said = "stable release version"
    cases = [(f"echo 'ld.so (Ubuntu GLIBC 2.35-0ubuntu3.8) {said} 2.35.'", "glibc 2.35"),
             (f"echo 'ld.so (Debian GLIBC 2.36-9) {said} 2.36.'", None),
             (f"echo 'ld.so (GNU libc) {said} 2.40.'", None),
             ("echo '--version: error while loading shared libraries' >&2; exit 127", "another"),
             ("echo 'musl libc (x86_64)'; echo Version 1.2.4; exit 1", "another"),
             (None, "another")]
    with scratch() as folder:
        fake, program = pathlib.Path(folder, "loader"), pathlib.Path(folder, "sluice")
        program.write_text(text.replace(loader, str(fake)))
        program.chmod(0o755)
        for line, found in cases:
            fake.unlink(missing_ok=True)
            if line is not None:
                fake.write_text(f"#!/bin/sh\n{line}\n")
                fake.chmod(0o755)
            done = subprocess.run([program, "status"], capture_output=True, text=True, check=False)
            require_equal((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1),
                          done.stderr)
            expected = (f"sluice: {REQUIRED}{found}" if found else
                        "sluice: its program is not installed: npm install ./sluice-server-linux")
            require(done.stderr.startswith(expected), f"{line}: {done.stderr}")


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))

#!/usr/bin/python3
"""tools/setup, tools/run and tools/test on machines without packages: messages, prompts, leftovers.

    tests/install/setup_test.py [--only part-of-a-name]

The scripts run from a folder of their own, with programs that write down how they were called in
the place of apt-get, dpkg-query, cmake and npm. tools/bare does it on a real bare machine.
"""

import os
import pathlib
import pty
import shutil
import signal
import socket
import subprocess
import sys
import time

from harness import need_program, require, require_equal, run, scratch, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What the scripts take of every Debian.
BASE = ["sh", "bash", "dirname", "mkdir", "sed", "timeout", "tail", "cat", "env", "date", "nproc",
        "mktemp", "rm", "mv", "chmod", "ln", "grep", "cut", "ls", "sleep", "head", "tr", "awk"]
NPM_LIMIT_S = 30


class Machine:
    """A folder with the scripts, and a PATH that has Debian's base and what the test puts there."""

    def __init__(self, folder, user=1000):
        self.folder = pathlib.Path(folder)
        self.programs, self.temporary = self.folder / "programs", self.folder / "temporary"
        self.calls = self.folder / "calls"
        for path in (self.programs, self.temporary, self.folder / "tools", self.folder / "page",
                     self.folder / "tests" / "npm", self.folder / "clients" / "typescript"):
            path.mkdir(parents=True)
        for name in ("setup", "run", "test"):
            shutil.copy(ROOT / "tools" / name, self.folder / "tools" / name)
        # The machine's own services are not to be stopped: etcd's script ends every etcd.
        setup = self.folder / "tools" / "setup"
        text = setup.read_text()
        for place in ("/etc/init.d/", "/run/systemd/system"):
            require(place in text, f"{place} in tools/setup")
            text = text.replace(place, f"{self.folder}{place}")
        setup.write_text(text)
        for name in ("page", "tests/npm", "clients/typescript"):
            for file in ("package.json", "package-lock.json"):
                shutil.copy(ROOT / name / file, self.folder / name / file)
        for name in BASE:
            (self.programs / name).symlink_to(shutil.which(name))
        self.program("id", f"echo {user}")
        for name in ("apt-get", "dpkg-query", "cmake"):
            self.program(name)

    def program(self, name, *lines):
        """A program that writes down how it was called, and then does these lines of sh."""
        path = self.programs / name
        path.write_text("\n".join(["#!/bin/sh", f'echo "{name} $*" >>{self.calls}', *lines, ""]))
        path.chmod(0o755)

    def called(self, name):
        calls = self.calls.read_text().splitlines() if self.calls.exists() else []
        return [call for call in calls if call.startswith(name + " ")]

    def start(self, script, *arguments, **options):
        environment = {"PATH": str(self.programs), "TMPDIR": str(self.temporary),
                       "HOME": str(self.folder), **options.pop("environment", {})}
        return subprocess.Popen([self.folder / "tools" / script, *arguments], env=environment,
                                stdin=subprocess.DEVNULL, text=True, start_new_session=True,
                                **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options})

    def run(self, script, *arguments, **options):
        """(exit code, standard output, standard error)"""
        process = self.start(script, *arguments, **options)
        out, err = process.communicate(timeout=60)
        require_equal(os.listdir(self.temporary), [], f"{script} left in the temporary folder")
        return process.returncode, out, err


def test_help_does_nothing_else(_options):
    """--help prints what each script does, and installs, configures and builds nothing."""
    with scratch() as folder:
        machine = Machine(folder)
        for script, words in [("run", ["--help"]), ("run", ["-h"]), ("test", ["--help"]),
                              ("run", ["--demo", "--help"]), ("run", ["--port", "7000", "-h"]),
                              ("run", ["--cluster-demonstration", "--help"]),
                              ("test", ["-h"]), ("test", ["style", "--help"]),
                              ("setup", ["--help"])]:
            code, out, err = machine.run(script, *words)
            require_equal((code, err), (0, ""), f"{script} {words}")
            require(len(out.splitlines()) > 4 and f"tools/{script}" in out, out)
        require_equal([call for name in ("apt-get", "dpkg-query", "cmake")
                       for call in machine.called(name)], [])


def test_wrong_arguments_of_run(_options):
    """tools/run refuses what nobody takes before it installs, configures or builds anything."""
    with scratch() as folder:
        machine = Machine(folder)
        shutil.copytree(ROOT / "net" / "config", machine.folder / "net" / "config")
        for name in ("server_main.cc", "cluster_demo"):
            shutil.copy(ROOT / "tools" / name, machine.folder / "tools" / name)
        for words, wrong in [
                (["--bogus"], "--bogus"), (["bogus"], "bogus"), (["--port", "7000", "-x"], None),
                (["--port", "7000", "--bogus", "1"], "--bogus"), (["--demo", "--bogus"], "--bogus"),
                (["--requirepass", "--bogus"], None), (["--save", "--bogus"], "--bogus"),
                (["--demo", "--kills", "2"], "--kills"), (["--cluster-demo", "--kills", "2"], None),
                (["--cluster-demo", "--port", "1"], "--port"),
                (["--save", "", "--PORT", "1"], None),
                (["--port=7000"], "--port=7000"), (["--"], "--"), (["--.*"], "--.*"),
                (["--port\t7000"], None), (["--cluster-demo", "--kills=2"], None),
                (["--ready-file", "f", "--slaveof", "h", "1", "--reinit"], None)]:
            code, out, err = machine.run("run", *words)
            if wrong is None:  # it continues, to the packages that are missing
                require(code == 1 and "apt-get" in err, f"{words}: {code} {out}{err}")
            else:
                require_equal((code, out), (2, ""), f"{words}: {err}")
                require(f"'{wrong}': unknown argument" in err, err)
        require_equal([call for name in ("apt-get", "cmake") for call in machine.called(name)], [])


def test_the_command_for_root_is_whole(_options):
    """Who is not root gets one command that works on a bare machine, with node and without sudo."""
    with scratch() as folder:
        machine = Machine(folder)
        for words, expected in [([], {"g++", "ccache", "nodejs", "npm"}),
                                (["test"], {"ccache", "nodejs", "npm", "git", "chromium"})]:
            code, out, err = machine.run("setup", *words)
            require_equal((code, out), (1, ""), err)
            command = err.splitlines()[-1].split()
            require_equal(command[:6], ["apt-get", "update", "&&", "apt-get", "install", "--yes"])
            require(expected <= set(command) and "sudo" not in err, err)
        # node from elsewhere, as nvm or a company's packages bring it, is left in peace.
        machine.program("node")
        machine.program("npm")
        code, _, err = machine.run("setup")
        require(code == 1 and "nodejs" not in err, err)


def test_root_gets_what_is_missing(_options):
    """As root everything is installed, node among it, and npm is asked once for each folder."""
    with scratch() as folder:
        machine = Machine(folder, user=0)
        npm = machine.folder / "npm"
        machine.program("npm")
        (machine.programs / "npm").rename(npm)
        machine.program("apt-get", f"[ $1 = update ] || ln -sf {npm} {machine.programs}/npm")
        code, out, err = machine.run("setup", "test")
        require_equal((code, err), (0, ""), out)
        update, install = machine.called("apt-get")
        require_equal(update, "apt-get update")
        require({"nodejs", "npm", "chromium"} <= set(install.split()), install)
        require_equal([call.split()[1:4] for call in machine.called("npm")],
                      [["ci", "--prefix", f"{folder}/page"],
                       ["ci", "--prefix", f"{folder}/tests/npm"],
                       ["ci", "--prefix", f"{folder}/clients/typescript"]])
        require(out.endswith("tools/setup: done\n"), out)


def test_services_are_stopped(_options):
    """Services that Debian starts as they are installed are stopped, and no others."""
    with scratch() as folder:
        machine = Machine(folder, user=0)
        machine.program("npm")
        services = machine.folder / "etc" / "init.d"
        services.mkdir(parents=True)
        for name in ("redis-server", "prometheus", "etcd", "cron"):
            machine.program(name)
            (machine.programs / name).rename(services / name)
        code, out, err = machine.run("setup", "cluster")
        require_equal((code, err), (0, ""), out)
        require_equal([machine.called(name) for name in ("etcd", "redis-server")],
                      [["etcd stop"], []])
        machine.run("setup", "test")
        require_equal([len(machine.called(name)) for name in
                       ("etcd", "redis-server", "prometheus", "cron")], [2, 1, 1, 0])


def test_an_interrupted_set_up_leaves_nothing(_options):
    """An end while apt-get works: no file stays in the folder of temporary files."""
    with scratch() as folder:
        machine = Machine(folder, user=0)
        machine.program("apt-get", "sleep 60")
        process = machine.start("setup")
        wait_until(lambda: machine.called("apt-get"), what="the call of apt-get")
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=20)
        require_equal(os.listdir(machine.temporary), [], "left behind")


def test_without_a_registry(_options):
    """A registry that does not answer costs seconds and one line, and the set-up continues."""
    npm = need_program("npm")
    with scratch() as folder, socket.create_server(("127.0.0.1", 0)) as silent:
        machine = Machine(folder)
        for program in (npm, need_program("node")):
            (machine.programs / os.path.basename(program)).symlink_to(program)
        # Everything of Debian's is there.
        machine.program("dpkg-query", 'for name; do echo "installed $name"; done')
        registry = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        began = time.monotonic()
        code, out, err = machine.run("setup", environment={"npm_config_registry": registry})
        require(time.monotonic() - began < NPM_LIMIT_S, f"{time.monotonic() - began:.0f} s")
        require_equal((code, out), (0, "tools/setup: npm ci --prefix page\n"), err)
        require(err.count("\n") == 1 and "the server has no live page" in err, err)


def prepare_test(machine, *lines):
    """tools/test whose style phase is two scripts, the first with these lines, and whose syntax
    phase is a build."""
    machine.program("dpkg-query")
    (machine.folder / "tools" / "setup").write_text("#!/bin/sh\n")
    (machine.folder / "tests" / "style_test.py").write_text("\n".join(lines))
    (machine.folder / "tests" / "structure_test.py").write_text("")


def test_skipped_is_said_as_skipped(_options):
    """The closing line has what was skipped, by its own name, and nothing of it under passed."""
    with scratch() as folder:
        machine = Machine(folder)
        prepare_test(machine, "print('skip   it (no such program)')",
                     "print('7 passed, 0 failed, 3 skipped')")
        code, out, err = machine.run("test", "style", "syntax")
        require_equal((code, err), (0, ""), out)
        # One each for structure, configuration, build and the temporary folder.
        require_equal(out.splitlines()[-1], "11 passed, 0 failed, 3 skipped")
        require("| skip   it (no such program)" in out, out)
        prepare_test(machine, "print('7 passed, 0 failed')")
        require_equal(machine.run("test", "style", "syntax")[1].splitlines()[-1],
                      "11 passed, 0 failed")


def test_what_tests_leave_is_found(_options):
    """A test that leaves a file in the folder of temporary files fails the run, and it goes."""
    with scratch() as folder:
        machine = Machine(folder)
        prepare_test(machine, "import tempfile", "tempfile.mkdtemp(prefix='pymp-')")
        code, out, _ = machine.run("test", "style", "syntax")
        require_equal((code, out.splitlines()[-1]), (1, "4 passed, 1 failed"), out)
        require("pymp-" in out, out)


def test_progress_on_a_terminal(_options):
    """On a terminal a build shows its progress."""
    with scratch() as folder:
        machine = Machine(folder)
        prepare_test(machine)
        machine.program("cmake", "echo '[3/9] Building'", "[ $1 != --build ] || sleep 4")
        ours, theirs = pty.openpty()
        process = machine.start("test", "style", "syntax", stdout=theirs, stderr=theirs)
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 4096):
                shown += piece
        except OSError:
            pass  # the other end is closed
        os.close(ours)
        require_equal(process.wait(timeout=20), 0, shown)
        require(b"[3/9]" in shown, shown)


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))

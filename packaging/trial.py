#!/usr/bin/python3
"""Tries the packages in a Debian 12 that has neither a compiler nor a -dev package.

    packaging/trial.py DIRECTORY [--keep]      (tools/package --try)

mmdebstrap makes the machine, a folder below TMPDIR. In it, without a network but its own loopback:
the tarball starts with nothing but the minbase; the .deb is installed, the command of its unit runs
as its user, redis-cli gets a first job done; an upgrade keeps an edited configuration and the jobs,
and so do removal and purge; a purge without jobs leaves nothing. The npm packages and the wheel
start in an empty directory. The first job of docs/first-job.md is done in both languages: from an
empty directory, in a minute, and with the server of the .deb.
Requires root, mmdebstrap, the mirrors of this machine's apt configuration, and the node_modules of
clients/typescript, which have ioredis.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import typing

ROOT = pathlib.Path(__file__).resolve().parents[1]
START_S = 5
FIRST_JOB_S = 60
# Debian's npm installs these for node-gyp, which is not used.
NOT_WANTED = "libnode-dev libssl-dev libuv1-dev"


def say(what):
    print(f"try: {what}", flush=True)


def fail(what):
    sys.exit(f"try: FAILED: {what}")


def require(holds, what):
    if not holds:
        fail(what)


class Machine:
    """A folder with a Debian, in a network namespace of its own for each command of `run`."""

    def __init__(self, folder):
        self.root = folder / "root"
        self.folder = folder

    def make(self):
        listed = subprocess.run(
            ["apt-get", "indextargets", "--format", "deb $(REPO_URI) $(RELEASE) $(COMPONENT)",
             "Created-By: Packages", "Origin: Debian"], capture_output=True, text=True, check=True)
        (self.folder / "sources").write_text(listed.stdout)
        subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", "--format=directory",
                        "bookworm", self.root, self.folder / "sources"], check=True)
        subprocess.run(["mount", "--rbind", "--make-rslave", "/dev", self.root / "dev"],
                       check=True)
        for name in ("resolv.conf", "hosts"):
            shutil.copy(f"/etc/{name}", self.root / "etc" / name)
        policy = self.root / "usr/sbin/policy-rc.d"
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)

    def end(self):
        subprocess.run(["umount", "--recursive", "--lazy", self.root / "dev"], check=False)

    def command(self, line, user="root", network=False):
        """The command that runs a line of sh inside; with `network`, in that of this machine."""
        home = "/root" if user == "root" else "/"
        names = [name for name in os.environ if name.lower().endswith("_proxy")]
        variables = [f"{name}={os.environ[name]}" for name in names] if network else []
        return ["env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "LANG=C.UTF-8", f"HOME={home}", "DEBIAN_FRONTEND=noninteractive", *variables,
                "unshare", *([] if network else ["--net"]), "--pid", "--fork", "--kill-child",
                f"--mount-proc={self.root}/proc", "sh", "-c",
                ("" if network else "ip link set lo up; ") + 'exec chroot --userspec="$1" "$2" '
                'sh -c "$3"', "sh", user, str(self.root), line]

    def run(self, line, user="root", network=False, code=0):
        done = subprocess.run(self.command(line, user, network), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        require(done.returncode == code, f"{line}: exit code {done.returncode}: {done.stdout}")
        return done.stdout

    def install(self, words):
        return self.run("apt-get -q install --yes --no-install-recommends " + words, network=True)


# The first job, as a user of redis-cli does it, and the order to end.
FIRST_JOB = r"""
until redis-cli PING 2>/dev/null | grep -q PONG; do
  kill -0 $server 2>/dev/null || exit 1
  sleep 0.2
done
echo "up after $(($(date +%s%3N) - began)) ms"
times
redis-cli Q.ADD exec first 'print(1)' | head -n 4
job=$(redis-cli Q.POP 1 exec WORKER w1)
echo "$job" | grep print
echo "acknowledged: $(redis-cli Q.ACK exec first "$(echo "$job" | sed -n '/^lease$/{ n; p; }')")"
redis-cli Q.PURGE exec WHERE ALL >/dev/null
echo "start $(redis-cli INCR starts) of this directory"
kill -TERM "$(redis-cli INFO server | sed -n 's/^process_id:\([0-9]*\).*/\1/p')"
wait $server
ended=$?
times
exit $ended
"""
FIRST_JOB_BY_SLUICE = r"""
until sluice status >/dev/null 2>&1; do
  kill -0 $server 2>/dev/null || exit 1
  sleep 0.2
done
echo "up after $(($(date +%s%3N) - began)) ms"
times
sluice add exec 'print(1)' --id first >/dev/null
sluice pop exec --worker w1
echo "acknowledged: $(sluice ack exec first 1 >/dev/null && echo OK)"
kill -TERM $server
wait $server
ended=$?
times
exit $ended
"""
# The worker and the submit of docs/first-job.md, by the installed client.
FIRST_JOB_BY_CLIENT = r"""
$run worker.$suffix >/tmp/worker.log 2>&1 &
worker=$!
$run submit.$suffix >/tmp/printed || exit
echo "done after $(($(date +%s%3N) - began)) ms"
kill -TERM $worker
wait $worker
ended=$?
times
exit $ended
"""
EMPTY = "rm -rf /empty ~/.npm && mkdir /empty && cd /empty\n"
BEGIN = "began=$(date +%s%3N)\n"


def check_job(said, what):
    """What FIRST_JOB printed. The processor's time is without that of the commands that asked
    whether the server is up: the longer it takes, the more they are."""
    up = re.search(r"^up after (\d+) ms$", said, re.MULTILINE)
    require(up and "print(1)" in said and "acknowledged: OK" in said, f"{what}: {said}")
    took_s = int(up[1]) / 1000
    asking_s, all_s = processor_s(said)
    say(f"{what}: serves after {took_s:.2f} s, and its first job is done "
        f"({in_time(what, took_s, all_s - asking_s, START_S)})")


def processor_s(said):
    """For each `times` of sh the processor's time of its children that have ended."""
    times = re.findall(r"^(\d+)m([\d.]+)s (\d+)m([\d.]+)s$", said, re.MULTILINE)
    return [60 * (int(each[0]) + int(each[2])) + float(each[1]) + float(each[3])
            for each in times[1::2]]  # between them is that of the shell


def in_time(what, took_s, busy_s, most_s):
    """The figures. On a busy machine the processor's time counts."""
    load = os.getloadavg()[0]
    figures = f"{busy_s:.2f} s of the processor, load {load:.1f}"
    require(took_s < most_s or busy_s < most_s and load > os.cpu_count(),
            f"{what}: {took_s:.1f} s, {figures}")
    return figures


def no_compiler(machine):
    """Neither a compiler nor a -dev package is there."""
    listed = machine.run("dpkg-query -W -f '${Package} ${db:Status-Status}\n'").splitlines()
    names = [line.split()[0] for line in listed if line.endswith(" installed")]
    found = [name for name in names if re.search(r"-dev$|^(gcc|g\+\+|clang|cpp|make)(-[\d.]+)?$",
                                                 name)]
    require(not found, f"the machine has {found}")
    machine.run("! command -v cc gcc g++ clang make")
    say(f"a Debian of {len(names)} packages, none of them a compiler or a -dev package")


def unit_command(machine):
    """(user, ExecStart) of the installed unit, with the directory that systemd would name."""
    unit = (machine.root / "usr/lib/systemd/system/sluice.service").read_text()
    user = re.search(r"^User=(\w+)$", unit, re.MULTILINE)[1]
    command = re.search(r"^ExecStart=(.*)$", unit, re.MULTILINE)[1]
    return user, command.replace("${STATE_DIRECTORY}", "/var/lib/sluice")


def try_unit(machine, starts):
    """ExecStart as its user, which says that it is ready; the data of earlier starts is there."""
    user, command = unit_command(machine)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        path = machine.root / "run/notify"
        path.unlink(missing_ok=True)
        supervisor.bind(str(path))
        path.chmod(0o666)
        line = (f"{BEGIN}NOTIFY_SOCKET=/run/notify {command} >/tmp/unit.log 2>&1 &\n"
                f"server=$!\n{FIRST_JOB}")
        said = machine.run(line, user=user)
        require(f"start {starts} of this directory" in said, said)
        supervisor.settimeout(5)
        heard = b""
        while b"READY=1" not in heard:
            heard = supervisor.recv(4096)
    check_job(said, f"{command} as {user}")
    owner = machine.run("stat -c '%U %G %a' /var/lib/sluice")
    require(owner == "sluice sluice 700\n", owner)


def newer(deb, machine):
    """The package as a later version, whose configuration has changed too."""
    folder = machine.folder / "newer"
    subprocess.run(["dpkg-deb", "--raw-extract", deb, folder], check=True)
    control = folder / "DEBIAN/control"
    control.write_text(re.sub(r"^Version: .*$", "Version: 999.0", control.read_text(),
                              flags=re.MULTILINE))
    with open(folder / "etc/sluice/sluice.conf", "a", encoding="utf-8") as file:
        file.write("\n# A line of the new version.\n")
    (folder / "DEBIAN/md5sums").unlink(missing_ok=True)
    path = machine.root / "newer.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", folder, path], check=True,
                   stdout=subprocess.DEVNULL)


def require_action(machine, action):
    """Installing the newer version does this to the service, as policy-rc.d prevents it."""
    said = machine.run("mkdir -p /run/systemd/system && dpkg --install /newer.deb; "
                       "done=$?; rmdir /run/systemd/system; exit $done")
    require(f"not running '{action} sluice.service'" in said, said)


def try_deb(machine, deb):
    shutil.copy(deb, machine.root / "sluice.deb")
    machine.install("/sluice.deb")
    require(re.match(r"sluice:x:\d+:\d+:", machine.run("getent passwd sluice")), "no user")
    say("installed: " + machine.run("dpkg-query -W -f '${Package} ${Version}, "
                                    "${Installed-Size} kB, requires ${Depends}' sluice"))
    require("ii " in machine.run("dpkg -l sluice") and
            not machine.run("ldd /usr/bin/sluice-server | grep 'not found' || true"), "libraries")
    said = machine.run("systemd-analyze --man=no verify sluice.service")
    require("sluice" not in said, said)
    require("multi-user.target.wants" in machine.run(
        "find /etc/systemd -name sluice.service"), "the service is not enabled")
    say("systemd-analyze verify: nothing to say; the service is enabled")
    try_unit(machine, 1)
    machine.run("echo 'maxclients 77' >>/etc/sluice/sluice.conf")
    newer(deb, machine)
    machine.run("dpkg --force-confold --install /newer.deb")
    require("maxclients 77" in machine.run("tail -n 1 /etc/sluice/sluice.conf") and
            "new version" in machine.run("tail -n 1 /etc/sluice/sluice.conf.dpkg-dist"),
            "the configuration after the upgrade")
    machine.run("test -e /var/lib/sluice/CURRENT || ls /var/lib/sluice/*")
    say("upgrade: the edited sluice.conf stays, the new one is sluice.conf.dpkg-dist")
    try_unit(machine, 2)
    machine.run("dpkg --remove sluice")
    machine.run("test -e /etc/sluice/sluice.conf && test ! -e /usr/bin/sluice-server")
    require_action(machine, "start")
    require_action(machine, "try-restart")
    say("installed again after its removal: it is started")
    machine.run("dpkg --remove sluice")
    said = machine.run("dpkg --purge sluice")
    require("/var/lib/sluice is kept" in said, said)
    machine.run("test ! -e /etc/sluice && ls /var/lib/sluice/* && getent passwd sluice")
    say("purge: the configuration goes, the jobs and their user stay")
    machine.run("rm -r /var/lib/sluice")
    machine.run("dpkg --install /sluice.deb && dpkg --purge sluice")
    others = " ".join(f"-not -path '/{path}/*'" for path in ("proc", "dev", "opt", "packages"))
    left = machine.run(f"find / -xdev -name '*sluice*' -not -name '*.deb' {others}\n"
                       "getent passwd sluice || true")
    require(left == "", f"left after the purge: {left}")
    say("purge without jobs: nothing is left")


def try_tarball(machine, out):
    """In the minbase alone, where the programs have only the libraries that they bring."""
    (machine.root / "packages").mkdir()
    for file in out.iterdir():
        shutil.copy(file, machine.root / "packages")
    name = next(path.name for path in out.glob("*.tar.gz") if "symbols" not in path.name)
    machine.run(f"tar -C /opt -xzf /packages/{name}")
    line = (f"{EMPTY}PATH=/opt/{name.removesuffix('.tar.gz')}/bin:$PATH\n{BEGIN}"
            f"sluice-server >/tmp/log 2>&1 &\nserver=$!\n{FIRST_JOB_BY_SLUICE}")
    check_job(machine.run(line), "tarball: bin/sluice-server")


def try_others(machine, out):
    """Both .tgz in one command of npx, and the wheel, each in an empty directory."""
    npm = "npm_config_offline=true npm_config_update_notifier=false"
    tgz = [f"--package=/packages/{next(out.glob(pattern)).name}"
           for pattern in ("sluice-server-[0-9]*.tgz", "sluice-server-linux-x64-*.tgz")]
    wheel = next(out.glob("sluice_server-*.whl")).name
    cases = [
        ("npx, both .tgz", "true", f"env {npm} npx --yes {' '.join(tgz)} -- sluice-server"),
        ("pip", f"python3 -m venv /opt/venv && /opt/venv/bin/pip -q install --no-index "
         f"/packages/{wheel}", "/opt/venv/bin/python -m sluice_server")]
    for what, before, command in cases:
        machine.run(before)
        line = f"{EMPTY}{BEGIN}{command} >/tmp/log 2>&1 &\nserver=$!\n{FIRST_JOB}"
        check_job(machine.run(line), f"{what}: {command}")


def of_page(kind, name):
    """A program of docs/first-job.md, or what it prints."""
    page = (ROOT / "docs/first-job.md").read_text(encoding="utf-8")
    return re.search(rf"<!-- {kind}: {re.escape(name)} -->\n```\w+\n(.*?)```", page, re.DOTALL)[1]


def pack_ioredis(machine):
    """ioredis and what it needs, as packages that npm installs without a registry: their paths."""
    client = ROOT / "clients/typescript"
    locked = json.loads((client / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    names = [name for name, about in locked.items() if name and not about.get("dev")]
    folder = machine.root / "ioredis"
    folder.mkdir()
    subprocess.run(["npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", folder,
                    *(f"./{name}" for name in names)], cwd=client, check=True,
                   stdout=subprocess.DEVNULL)
    return [f"/ioredis/{path.name}" for path in sorted(folder.iterdir())]


class Client(typing.NamedTuple):
    """How the first job of docs/first-job.md is done in a language."""
    language: str
    source: str  # the suffix of its programs on the page
    suffix: str  # and as they are run
    run: str
    begin: str  # lines of sh: from an empty directory to a server that starts


def clients(machine, out):
    """Without a registry redis-py is Debian's, and ioredis comes as packages. Debian's node does
    not run TypeScript: its esbuild takes the types away, as tsx of the registry does."""
    def package(pattern):
        return f"/packages/{next(out.glob(pattern)).name}"
    wheels = [package("sluice_server-*.whl"), package("sluice-*.whl")]
    tgz = [package(f"sluice-{name}-[0-9]*.tgz") for name in ("server", "server-linux-x64", "queue")]
    return [
        Client("Python", "py", "py", "/first/py/venv/bin/python",
               "python3 -m venv --system-site-packages venv && . venv/bin/activate\n"
               f"pip -q install --no-index {' '.join(wheels)} || exit\n"
               "python -m sluice_server --dir ./data >server.log 2>&1 &\n"),
        Client("TypeScript", "mts", "mjs", "node",
               f"npm install --offline {' '.join(tgz + pack_ioredis(machine))} >npm.log || exit\n"
               "npx sluice-server --dir ./data >server.log 2>&1 &\n"
               "esbuild --log-level=warning --format=esm --out-extension:.js=.mjs --outdir=. "
               "*.mts || exit\n")]


def first_job(machine, client, what, line, user="root"):
    """The line of sh, then worker and submit: it prints what docs/first-job.md says, in time."""
    machine.run("rm -f /tmp/printed /tmp/worker.log")
    what = f"{client.language}, {what}"
    said = machine.run(f"{line}run={client.run} suffix={client.suffix}\n{FIRST_JOB_BY_CLIENT}",
                       user=user)
    printed = (machine.root / "tmp/printed").read_text()
    require(printed == of_page("output", f"submit.{client.source}"), f"{what}: {printed}{said}")
    took_s = int(re.search(r"^done after (\d+) ms$", said, re.MULTILINE)[1]) / 1000
    figures = in_time(what, took_s, processor_s(said)[0], FIRST_JOB_S)
    say(f"{what}: the first job is done after {took_s:.1f} s ({figures})")


def try_clients(machine, out):
    """docs/first-job.md in both languages, from an empty directory; then beside the service."""
    tried = clients(machine, out)
    for client in tried:
        folder = machine.root / "programs" / client.source
        folder.mkdir(parents=True)
        for name in (f"worker.{client.source}", f"submit.{client.source}"):
            (folder / name).write_text(of_page("file", name), encoding="utf-8")
        directory = f"/first/{client.suffix}"
        first_job(machine, client, "from an empty directory",
                  f"mkdir -p {directory} && cd {directory}\n{BEGIN}"
                  f"cp /programs/{client.source}/* .\n{client.begin}")
    machine.run("dpkg --install /sluice.deb")
    user, command = unit_command(machine)
    for client in tried:
        first_job(machine, client, f"{command} as {user}",
                  f"cd /first/{client.suffix}\n{BEGIN}{command} >/tmp/unit.log 2>&1 &\n", user)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", type=pathlib.Path)
    parser.add_argument("--keep", action="store_true", help="keeps the machine")
    options = parser.parse_args()
    require(os.geteuid() == 0, "creating a machine in a folder requires root")
    require(shutil.which("mmdebstrap"), "no mmdebstrap: apt-get install mmdebstrap")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sluice-try.", dir=os.environ.get("TMPDIR",
                                                                                 "/var/tmp")))
    machine = Machine(folder)
    began = time.monotonic()
    try:
        say("installing a Debian minbase")
        machine.make()
        try_tarball(machine, options.packages)
        machine.run("apt-get -q update", network=True)
        machine.install("redis-tools systemd")
        no_compiler(machine)
        try_deb(machine, next(options.packages.glob("sluice_*.deb")))
        machine.install("npm python3-venv python3-redis esbuild")
        machine.run(f"dpkg --purge --force-depends {NOT_WANTED}")
        no_compiler(machine)
        try_others(machine, options.packages)
        try_clients(machine, options.packages)
    finally:
        machine.end()
        if options.keep:
            say(f"the machine is in {machine.root}")
        else:
            subprocess.run(["rm", "-rf", "--one-file-system", folder], check=False)
    say(f"all green, in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""How sluice reaches its server, and what it says when it cannot."""

import os
import socket
import sys

from harness import require, require_equal, run, scratch
from harness.cli import DURABLE, NO_CONNECTION, SERVER_ERROR, serve
from harness.http_client import ADMIN_TOKEN
from harness.sentinels import Sentinel
from harness.servers import LOOPBACK, steady_port

ANOTHER_HOST = "127.0.0.2"


def test_connections(options):
    """Host, port, socket, user, password and database; what cannot be reached is exit code 3."""
    with scratch() as directory:
        path = os.path.join(directory, "socket")
        _, sluice = serve(options, {"unixsocket": path, "requirepass": "secret", "user":
                                    "ann on >word +@all ~*"})
        sluice.fails(SERVER_ERROR, "NOAUTH", "status")
        sluice.fails(SERVER_ERROR, "WRONGPASS", "status", SLUICE_AUTH="wrong")
        sluice.must("add", "exec", "x", "--id", "a", SLUICE_AUTH="secret", REDISCLI_AUTH="wrong")
        sluice.must("status", REDISCLI_AUTH="secret")
        (job,) = sluice.json("jobs", "exec", "--user", "ann", "--pass", "word")
        require_equal(job["id"], "a", "--user")
        require_equal(sluice.json("status", "-n", 3, "--pass", "secret"), [], "-n")
        sluice.fails(SERVER_ERROR, "out of range", "status", "-n", 99, "--pass", "secret")
        sluice.port = 1
        (job,) = sluice.json("jobs", "exec", "-s", path, "--pass", "secret")
        require_equal(job["id"], "a", "-s")
        sluice.fails(NO_CONNECTION, "cannot connect to 127.0.0.1:1", "status")
        sluice.fails(NO_CONNECTION, "cannot connect to", "status", "-s", path + "none")
    with socket.create_server((LOOPBACK, 0)) as other:
        sluice.port = other.getsockname()[1]
        process = sluice.spawn("status")
        accepted = other.accept()[0]
        accepted.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        err = process.communicate(timeout=30)[1]
        require_equal(process.returncode, NO_CONNECTION, "not Redis")
        require(b"not a Redis protocol reply" in err, err)
        accepted.close()


def test_a_backup_by_sentinel(options):
    """A backup is of the server that Sentinel names, whatever has its HTTP port on this host."""
    server, sluice = serve(options, {
        **DURABLE, "bind": f"{LOOPBACK} {ANOTHER_HOST}", "http-bind": ANOTHER_HOST,
        "http-port": steady_port(), "http-token": f"admin >{ADMIN_TOKEN}"})
    with server.connect() as connection, Sentinel("mymaster", server.port, ANOTHER_HOST) as asked, \
            scratch() as directory:
        connection.call("SAVE")
        known = f"{LOOPBACK}:{asked.port}"
        sluice.words = lambda *words: [sluice.path, "--sentinel", known, *words]
        path = os.path.join(directory, "backup")
        sluice.must("backup", path, SLUICE_HTTP_TOKEN=ADMIN_TOKEN)
        require_equal(os.listdir(directory), ["backup"], "files")


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))

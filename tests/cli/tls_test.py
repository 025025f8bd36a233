#!/usr/bin/python3
"""The program sluice over TLS: redis-cli's options, certificates, long-running commands."""

import contextlib
import json
import os
import shutil
import socket
import sys
import threading

from harness import require, require_equal, run, scratch, wait_until
from harness.certificates import Certificates, openssl
from harness.cli import (DONE, DURABLE, NO_CONNECTION, USAGE_ERROR, Follower, Sluice,
                         Terminal)
from harness.servers import LOOPBACK, steady_port

REFUSED = "TLS: certificate verify failed: "


@contextlib.contextmanager
def tls_server(options, directives=None, **more):
    """(server, program for its TLS port with all that it needs, certificates)"""
    with scratch() as folder:
        certificates = Certificates(folder)
        port = steady_port()
        server = options.server({"tls-port": port, **certificates.directives(**more),
                                 **(directives or {})})
        server.start()
        yield server, Sluice(options, server, port, given(certificates)), certificates
        server.close()


def given(certificates, client="client", authority="ca"):
    """The options of a client; `client` None: without a certificate of its own."""
    words = ["--tls", "--cacert", certificates.certificate(authority)]
    if client is not None:
        words += ["--cert", certificates.certificate(client), "--key", certificates.key(client)]
    return words


def test_commands(options):
    """Commands work over TLS; large requests and replies too; a selector's --key is another."""
    with tls_server(options, {"requirepass": "secret"}) as (_, sluice, _certificates):
        sluice.before += ["--pass", "secret", "-n", "3"]
        big = os.urandom(500_000).hex()
        require_equal(sluice.must("add", "exec", "--id", "a", "--key", "lock",
                                  stdin=big.encode()), "a added: pending, 0 before it\n", "add")
        require_equal(sluice.json("job", "exec", "a")["payload"], big, "the payload")
        sluice.must("add", "exec", "x", "--id", "b", "--key", "other")
        require_equal([job["id"] for job in sluice.json("jobs", "exec", "--key", "lock")], ["a"],
                      "--key of a selector")
        for number in range(60):
            sluice.must("add", "many", "x", "--id", number)
        require_equal(sluice.json("cancel", "many", "--all"), {"count": 60}, "pages")
        require("exec" in sluice.must("status"), "status")


def test_options_stand_anywhere(options):
    """Options of TLS stand before the command or behind it; --key is the command's own there."""
    with tls_server(options) as (_, sluice, certificates):
        words, sluice.before = sluice.before, []
        require_equal(sluice.json("status", *words), [], "behind a command")
        sluice.fails(USAGE_ERROR, "--key goes before a command", "jobs", "exec", *words)
        for name, *value in (("--sni", "x"), ("--cacert", "x"), ("--cacertdir", "x"),
                             ("--insecure",), ("--cert", "x"), ("--key", "x"),
                             ("--tls-ciphers", "x"), ("--tls-ciphersuites", "x")):
            sluice.fails(USAGE_ERROR, name + " requires --tls", "status", name, *value)
        sluice.fails(USAGE_ERROR, "not -s", "status", "--tls", "-s", "socket")
        sluice.fails(USAGE_ERROR, "go together", "status", "--tls", "--cert",
                     certificates.certificate("client"))
        sluice.fails(USAGE_ERROR, "Failed to load CA certificates: none", "status", "--tls",
                     "--cacert", "none")
        sluice.fails(USAGE_ERROR, "Failed to load certificate: none", "status", "--tls", "--cert",
                     "none", "--key", certificates.key("client"))
        sluice.fails(USAGE_ERROR, "Failed to load private key", "status", "--tls", "--cert",
                     certificates.certificate("client"), "--key", certificates.key("stranger"))
        sluice.fails(USAGE_ERROR, "Failed to configure ciphers: none", "status", "--tls",
                     "--tls-ciphers", "none")
        sluice.fails(USAGE_ERROR, "Failed to configure ciphersuites: none", "status", "--tls",
                     "--tls-ciphersuites", "none")


def test_the_server_is_verified(options):
    """A server of another authority or name is refused, unless --sni or --insecure say more."""
    with tls_server(options, tls_auth_clients="no") as (server, sluice, certificates):
        require_equal(sluice.json("status"), [], "by its address")
        sluice.before = given(certificates, client=None)
        require_equal(sluice.json("status", "-h", "localhost"), [], "by its name")
        require_equal(sluice.json("status", "--sni", "localhost"), [], "--sni")
        sluice.fails(NO_CONNECTION, REFUSED + "hostname mismatch", "status", "--sni", "other.test")
        require_equal(sluice.json("status", "--sni", "other.test", "--insecure"), [], "--insecure")
        sluice.before = given(certificates, None, "other")
        sluice.fails(NO_CONNECTION, REFUSED, "status")
        # Nothing of the system's store has signed it, and a directory counts as a file does.
        sluice.before = ["--tls"]
        sluice.fails(NO_CONNECTION, REFUSED, "status")
        authorities = certificates.path("authorities")
        os.mkdir(authorities)
        shutil.copy(certificates.certificate("ca"), authorities)
        openssl("rehash", authorities)
        require_equal(sluice.json("status", "--cacertdir", authorities), [], "--cacertdir")
        require_equal(sluice.json("status", SSL_CERT_DIR=authorities), [], "the system's store")
        with server.connect() as plain:
            plain.call("CONFIG", "SET", "tls-cert-file", certificates.certificate("expired"),
                       "tls-key-file", certificates.key("expired"))
        sluice.fails(NO_CONNECTION, REFUSED + "certificate has expired", "status", "--cacertdir",
                     authorities)


def test_the_client_is_verified(options):
    """A server that asks for certificates refuses clients without one, or with a stranger's."""
    with tls_server(options) as (_, sluice, certificates):
        require_equal(sluice.json("status"), [], "the right certificate")
        for client in (None, "stranger", "expired"):
            sluice.before = given(certificates, client)
            # The client's side of the handshake may have ended before the server refuses.
            sluice.fails(NO_CONNECTION, " to 127.0.0.1", "status")


def test_ciphers(options):
    """Ciphers are those that --tls-ciphers and --tls-ciphersuites name."""
    suite = "TLS_CHACHA20_POLY1305_SHA256"
    cipher = "ECDHE-ECDSA-AES128-GCM-SHA256"
    with tls_server(options, tls_ciphersuites=suite) as (server, sluice, _certificates):
        require_equal(sluice.json("status", "--tls-ciphersuites", suite), [], suite)
        sluice.fails(NO_CONNECTION, "TLS: ", "status", "--tls-ciphersuites",
                     "TLS_AES_128_GCM_SHA256")
        with server.connect() as plain:
            plain.call("CONFIG", "SET", "tls-protocols", "TLSv1.2", "tls-ciphers", cipher)
        require_equal(sluice.json("status", "--tls-ciphers", cipher), [], cipher)
        sluice.fails(NO_CONNECTION, "TLS: ", "status", "--tls-ciphers",
                     "ECDHE-ECDSA-AES256-GCM-SHA384")


def test_other_servers(options):
    """A server without TLS, one that ends the handshake, and a silent one: no connection."""
    with tls_server(options) as (server, sluice, _):
        sluice.port = server.port
        sluice.fails(NO_CONNECTION, "cannot connect to 127.0.0.1", "status")
    for ends in (True, False):
        with socket.create_server((LOOPBACK, 0)) as other:
            sluice = Sluice(options, None, other.getsockname()[1], ["--tls"])
            process = sluice.spawn("status")
            accepted = other.accept()[0]
            accepted.recv(65536)
            if ends:
                accepted.close()
            err = process.communicate(timeout=30)[1].decode()
            require_equal(process.returncode, NO_CONNECTION, err)
            require(("closed" if ends else "no answer in time") in err, err)
            accepted.close()


def test_what_goes_on(options):
    """top, events --follow and simulate work over TLS, through a restart of the server too."""
    with tls_server(options, DURABLE) as (server, sluice, _):
        sluice.must("add", "exec", "x", "--id", "before")
        follower = Follower(sluice, "exec", "--json")
        terminal = Terminal(sluice.words("top", "--interval", 0.1))
        terminal.read_until(r"exec +1")
        wait_until(lambda: follower.lines, what="the first event")
        server.kill()
        terminal.read_until(r"cannot connect to")
        server.start()
        sluice.must("add", "exec", "x", "--id", "after")
        terminal.read_until(r"exec +2")
        os.write(terminal.mine, b"q")
        require_equal(terminal.end()[0], DONE, "exit code of top")
        wait_until(lambda: len(follower.lines) == 2, what="all events")
        err = follower.end()
        require("retrying" in err and "reconnected" in err, err)
        require_equal([json.loads(line)["seq"] for line in follower.lines], [1, 2], "numbers")
        code, out, err = sluice.run("simulate", "sim", "--rate", 200, "--producers", 3, "--workers",
                                    8, "--run-ms", "5:10", "--seconds", 1, "--seed", 1, "--json")
        require_equal((code, err), (DONE, ""), "simulate")
        summary = json.loads(out.splitlines()[-1])["summary"]
        require(summary["added"] > 50 and summary["completed"] > 20, str(summary))


def test_a_wait_and_a_pause(options):
    """A blocking command waits over TLS for as long as it is to."""
    with tls_server(options) as (_, sluice, _certificates):
        adding = threading.Timer(0.5, sluice.must, ["add", "exec", "x", "--id", "late"])
        adding.start()
        (job,) = sluice.json("pop", "exec", "--block", 10_000)
        adding.join()
        require_equal(job["id"], "late", "the job")


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))

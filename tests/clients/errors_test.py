#!/usr/bin/python3
"""The table of errors of both clients (clients/errors.json) and what is generated from it."""

import json
import re
import subprocess
import sys

from harness import require, require_equal, run
from harness.servers import ROOT

CLIENTS = ROOT / "clients"
sys.path.insert(0, str(CLIENTS / "python"))

from sluice import errors  # noqa: E402  pylint: disable=wrong-import-position

# What a hint of each type becomes, beside the text that the server sends.
EXAMPLES = {"string": ("a%20b", "a b"), "integer": ("7", 7), "milliseconds": ("1500", 1.5)}


def table():
    return json.loads((CLIENTS / "errors.json").read_text(encoding="utf-8"))


def documented():
    """{code: [hint]} of the table in QUEUE.md."""
    text = (ROOT / "QUEUE.md").read_text(encoding="utf-8")
    part = text[text.index("\n## Errors\n"):text.index("\n## Reply types\n")]
    rows = re.findall(r"^\| `([A-Z]+)([^`]*)` \|", part, re.MULTILINE)
    return {code: re.findall(r"(\w+)=", hints) for code, hints in rows}


def test_generated_files_are_current(_options):
    """The exceptions of both clients are what clients/generate writes."""
    done = subprocess.run([str(CLIENTS / "generate"), "--check"], capture_output=True, text=True,
                          check=False)
    require(done.returncode == 0, done.stdout + done.stderr)


def test_every_documented_error_is_there(_options):
    """Every error of QUEUE.md has a class, with a field for each of its hints."""
    known = {error["code"]: [field["hint"] for field in error["fields"]]
             for error in table()["server"]}
    require(len(documented()) > 10, "no table of errors in QUEUE.md")
    for code, hints in documented().items():
        require_equal(known.get(code), hints, code)


def test_hints_are_fields(_options):
    """Each class has its hints as fields: decoded, numbers as numbers, milliseconds as seconds."""
    for error in table()["server"]:
        hints = [f"{field['hint']}={EXAMPLES[field['type']][0]}" for field in error["fields"]]
        got = errors.error_of(" ".join([error["code"], *hints]))
        require_equal(type(got).__name__, error["class"])
        require_equal(got.code, error["code"])
        require_equal(got.temporary, error["temporary"])
        for field in error["fields"]:
            require_equal(getattr(got, field["name"]), EXAMPLES[field["type"]][1], field["name"])
        errors.error_of(error["code"])  # A server that sends no hints breaks nothing.


def test_unknown_codes(_options):
    """An error that is not in the table is a ServerError with its code."""
    got = errors.error_of("NEWCODE a=b and text")
    require_equal((type(got), got.code), (errors.ServerError, "NEWCODE"))
    require_equal(errors.error_of("NOJOB id=%C3%A4%C3").id, "ä\N{REPLACEMENT CHARACTER}")


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))

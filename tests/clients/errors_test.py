#!/usr/bin/python3
"""The table of errors of both clients (clients/errors.json) and what is generated from it."""

import json
import re
import subprocess
import sys

from harness import require, require_equal, run
from harness.servers import ROOT
from harness.typescript_client import PACKAGE, built

CLIENTS = ROOT / "clients"
sys.path.insert(0, str(CLIENTS / "python"))

from sluice import errors  # noqa: E402  pylint: disable=wrong-import-position

# What the server sends for a hint of each type, and what that becomes, in Python and in TypeScript.
EXAMPLES = {"string": ("a%20b", "a b", "a b"), "integer": ("7", 7, 7),
            "milliseconds": ("1500", 1.5, 1500)}
NOTHING = {"string": "", "integer": 0, "milliseconds": 0}


def table():
    return json.loads((CLIENTS / "errors.json").read_text(encoding="utf-8"))


def replies():
    """(error, what the server sends with each hint of it) of the table."""
    for error in table()["server"]:
        hints = [f"{field['hint']}={EXAMPLES[field['type']][0]}" for field in error["fields"]]
        yield error, " ".join([error["code"], *hints])


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
    for error, text in replies():
        got = errors.error_of(text)
        require_equal(type(got).__name__, error["class"])
        require_equal(got.code, error["code"])
        require_equal(got.temporary, error["temporary"])
        for field in error["fields"]:
            require_equal(getattr(got, field["name"]), EXAMPLES[field["type"]][1], field["name"])
        bare = errors.error_of(error["code"])
        require_equal({field["name"]: getattr(bare, field["name"]) for field in error["fields"]},
                      {field["name"]: NOTHING[field["type"]] for field in error["fields"]}, error)


# Prints for each text what its error is, and what fields it has beside those of every error.
SHOWN = """
import * as sluice from '%s'
import { errorOf, SluiceError } from '%s'
const { texts, classes } = JSON.parse(process.argv[1])
const shown = texts.map((text) => {
  const error = errorOf(text)
  const { code, temporary, ...fields } = error
  const same = error instanceof sluice.ServerError && error.constructor === sluice[error.name]
  return { name: error.name, message: error.message, code, temporary, fields, same }
})
const missing = classes.filter((name) => !(sluice[name]?.prototype instanceof SluiceError))
console.log(JSON.stringify({ shown, missing }))
"""


def shown_by_node(texts, classes=()):
    """(what SHOWN says of each text, those of the classes that the package has not)."""
    node = built()
    places = (PACKAGE / "dist" / "index.js", PACKAGE / "dist" / "errors.js")
    done = subprocess.run(
        [node, "--input-type=module", "-e", SHOWN % places,
         json.dumps({"texts": texts, "classes": list(classes)})],
        capture_output=True, text=True, timeout=60, check=False)
    require_equal(done.returncode, 0, done.stderr)
    answer = json.loads(done.stdout)
    return answer["shown"], answer["missing"]


def camel(name):
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


def test_hints_are_fields_in_typescript(_options):
    """The same for the classes of TypeScript, where milliseconds stay milliseconds; and every class
    of the table is there."""
    rows = list(replies())
    texts = [text for _, text in rows] + [error["code"] for error, _ in rows]
    classes = [error["class"] for errors_ in table().values() for error in errors_]
    shown, missing = shown_by_node(texts, classes)
    require_equal(missing, [], "classes that are missing")
    bare = shown[len(rows):]
    for (error, text), got, without in zip(rows, shown, bare):
        expected = {"name": error["class"], "message": text, "code": error["code"],
                    "temporary": error["temporary"], "same": True}
        values = {camel(field["name"]): EXAMPLES[field["type"]][2] for field in error["fields"]}
        require_equal(got, {**expected, "fields": values})
        values = {camel(field["name"]): NOTHING[field["type"]] for field in error["fields"]}
        require_equal(without, {**expected, "message": error["code"], "fields": values})


def test_unknown_codes(_options):
    """An error that is not in the table is a ServerError with its code."""
    got = errors.error_of("NEWCODE a=b and text")
    require_equal((type(got), got.code), (errors.ServerError, "NEWCODE"))
    cut = "NOJOB id=%C3%A4%C3"
    require_equal(errors.error_of(cut).id, "ä\N{REPLACEMENT CHARACTER}")
    [got, same], _ = shown_by_node(["NEWCODE a=b and text", cut])
    require_equal((got["name"], got["code"], got["fields"]), ("ServerError", "NEWCODE", {}))
    require_equal(same["fields"], {"id": "ä\N{REPLACEMENT CHARACTER}"})


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))

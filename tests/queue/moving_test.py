#!/usr/bin/python3
"""Runs the code of docs/moving: each page's blocks become a module, and a scenario of
tests/queue/moving asserts what the page says happens.

A block is marked by `<!-- run: python -->` or `<!-- run: typescript -->`, with a word behind the
language if a page has several of it (`python backlog`): then that is a module of its own. Python is
run by the system's, with python3-redis and clients/python. TypeScript is bundled by esbuild, which
drops the types without checking them, with the ioredis of tests/npm and clients/typescript, and run
by node. Where these are not installed (tools/setup test does it) that part is skipped, and says so.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import harness
from harness import NPM, libraries, python_client, require, require_equal, typescript_client

TESTS = pathlib.Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
PAGES = ROOT / "docs" / "moving"
SCENARIOS = TESTS / "queue" / "moving"
LANGUAGES = {"python": "py", "typescript": "ts"}
# The clients of redis-sentinel.md stay as they are: tests/group/clients_test.py runs them.
NAMES = sorted(path.stem for path in PAGES.glob("*.md") if path.stem != "redis-sentinel")
LONGEST_S = 60


def page(name):
    return (PAGES / f"{name}.md").read_text(encoding="utf-8")


def blocks(name):
    """(language, word or "", code) of each marked block of a page."""
    found = re.findall(r"<!-- run: (\w+) ?(\w*) -->\n```(\w+)\n(.*?)```", page(name), re.DOTALL)
    for language, _, fence, _ in found:
        require_equal(fence, language, f"fence of a block of {name}")
    return [(language, word, code) for language, word, _, code in found]


def write_modules(name, directory):
    """service.py, service.ts, and `<word>.py`; what is marked twice would hide the first."""
    for language, word, code in blocks(name):
        path = pathlib.Path(directory, f"{word or 'service'}.{LANGUAGES[language]}")
        require(not path.exists(), f"{name} has two blocks '{language} {word}'")
        path.write_text(code, encoding="utf-8")


def run_python(options, name):
    with options.server() as server, tempfile.TemporaryDirectory() as directory:
        write_modules(name, directory)
        scenario = SCENARIOS / f"{name.replace('-', '_')}.py"
        libraries.play([sys.executable, scenario], server, directory, LONGEST_S,
                       PYTHONPATH=f"{directory}:{python_client.PACKAGE}")


def run_typescript(options, name):
    node = harness.need_npm("esbuild")
    typescript_client.built()
    client = typescript_client.PACKAGE / "dist" / "index.js"
    esbuild = NPM / "node_modules" / "esbuild" / "bin" / "esbuild"
    with options.server() as server, tempfile.TemporaryDirectory() as directory:
        write_modules(name, directory)
        for file in (f"{name.replace('-', '_')}.ts", "check.ts"):
            shutil.copy(SCENARIOS / file, directory)
        entry = pathlib.Path(directory, f"{name.replace('-', '_')}.ts")
        bundled = subprocess.run(
            [node, esbuild, entry, "--bundle", "--platform=node", "--format=cjs",
             "--log-level=warning", "--target=node18", f"--alias:@sluice/queue={client}",
             f"--outfile={directory}/out.js"],
            cwd=directory, capture_output=True, text=True, timeout=LONGEST_S, check=False,
            env=dict(os.environ, NODE_PATH=str(NPM / "node_modules")))
        require_equal(bundled.returncode, 0, bundled.stdout + bundled.stderr)
        libraries.play([node, f"{directory}/out.js"], server, directory, LONGEST_S)


def test_every_page_has_both_languages(_options):
    """Each page has its code in Python and TypeScript, and every block of code is run."""
    require(NAMES, "no pages")
    for name in NAMES:
        marked = blocks(name)
        require({"python", "typescript"} <= {language for language, _, _ in marked}, name)
        fences = re.findall(r"^```(\w+)$", page(name), re.MULTILINE)
        code = [fence for fence in fences if fence in LANGUAGES]
        require_equal(len(code), len(marked), f"marked blocks of {name}")


def test_links_of_the_pages(_options):
    """Links of the pages lead to files and headings."""
    for name in NAMES:
        for target in re.findall(r"\]\(([^)\s]+)\)", page(name)):
            path, _, anchor = target.partition("#")
            file = (PAGES / path).resolve()
            require(file.exists(), f"{name}: a link to {target}")
            titles = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
                       for title in titles}
            require(not anchor or anchor in anchors, f"{name}: a link to {target}")


def test_the_lock_file_names_public_addresses_only(_options):
    """tests/npm pins exact versions, and nothing in it belongs to one workplace."""
    lock = json.loads((NPM / "package-lock.json").read_text(encoding="utf-8"))
    pinned = json.loads((NPM / "package.json").read_text(encoding="utf-8"))["dependencies"]
    for package, version in pinned.items():
        # A second version of a package has a name of its own: "npm:package@version".
        require_equal(lock["packages"][f"node_modules/{package}"]["version"],
                      version.rsplit("@", 1)[-1], package)
    for package, entry in lock["packages"].items():
        require("resolved" not in entry, f"{package} names the address that it came from")


def add_tests(name):
    for language, run_language in (("Python", run_python), ("TypeScript", run_typescript)):
        def test(options, run_language=run_language):
            run_language(options, name)

        test.__doc__ = f"docs/moving/{name}.md, {language}"
        test.__name__ = f"test_{name.replace('-', '_')}_{language.lower()}"
        globals()[test.__name__] = test


for each in NAMES:
    add_tests(each)


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))

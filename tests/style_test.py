#!/usr/bin/python3
"""The house style, as far as a program can check it.

Prints one line for each place that breaks a rule, and "N passed, N failed", a rule counting as one.
`tests/style_test.py --fix` formats the C++ sources first.
"""

import ast
import os
import re
import shutil
import subprocess
import sys

from english import check_english
from harness import summary

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 60
MAX_TEST_FUNCTION_LINES = 70  # in tests and bench
MAX_COLUMNS = 100
MAX_README_WORDS = 700
CPP = (".h", ".cc")
CODE = CPP + (".py", ".cmake", ".sh", ".lua", ".js", ".ts")
CLANG_FORMAT = "clang-format-14"  # Debian 12's; another version formats a few things differently.

# path -> why this file may be longer.
LONG_FILES: dict[str, str] = {}

# "path:function" -> why this function may be longer.
LONG_FUNCTIONS: dict[str, str] = {}


def files():
    """Every file that is tracked, or new and not ignored."""
    if not shutil.which("git"):
        sys.exit("git lists the files: install it (tools/setup test)")
    # The clone may be another user's.
    command = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others",
               "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit("git lists the files, so this takes a clone: " + done.stderr.decode().strip())
    listed = done.stdout
    paths = sorted(set(os.fsdecode(path) for path in listed.split(b"\0") if path))
    return [path for path in paths if os.path.isfile(os.path.join(ROOT, path))]


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def is_script(path):
    """Programs without an extension (tools/test) are code as well."""
    if os.path.splitext(path)[1]:
        return False
    with open(os.path.join(ROOT, path), "rb") as file:
        return file.read(2) == b"#!"


def check_lines(path, text):
    """Lines: their length, tabs, blanks at the end."""
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > MAX_COLUMNS and "http" not in line:
            yield f"{path}:{number}: {len(line)} columns, at most {MAX_COLUMNS}"
        if "\t" in line:
            yield f"{path}:{number}: a tab"
        if line != line.rstrip():
            yield f"{path}:{number}: blanks at the end of the line"
    if text and not text.endswith("\n"):
        yield f"{path}: no line end at the end of the file"


def check_prose(path, text):
    """Prose of a document is wrapped like code. Tables, headings and code are not, nor is a line in
    which there is nothing to divide: a link, a span of code."""
    in_code = False
    for number, line in enumerate(text.split("\n"), 1):
        if re.match(r"\s*(```|~~~)", line):
            in_code = not in_code
        if in_code or len(line) <= MAX_COLUMNS or re.match(r"\s*[|#<]", line):
            continue
        words = re.sub(r"`[^`]*`", lambda span: span.group().replace(" ", "_"), line).split()
        if max(map(len, words)) < MAX_COLUMNS - 10:
            yield f"{path}:{number}: {len(line)} columns of prose, at most {MAX_COLUMNS}"


def check_readme(text):
    """README.md is short: prose beside code and one table."""
    prose = re.sub(r"^```.*?^```|^\|.*?$|<!--.*?-->|(?<=\])\([^)]*\)", "", text,
                   flags=re.DOTALL | re.MULTILINE)
    words = len(prose.split())
    if words > MAX_README_WORDS:
        yield f"README.md: {words} words besides code and tables, at most {MAX_README_WORDS}"
    tables = len(re.findall(r"^\|[-|]+\|$", text, re.MULTILINE))
    if tables > 1:
        yield f"README.md: {tables} tables, at most 1"


def check_file_length(path, text):
    lines = text.count("\n")
    if lines > MAX_FILE_LINES and path not in LONG_FILES:
        yield f"{path}: {lines} lines, at most {MAX_FILE_LINES}"


def check_header(path, text):
    """A header says what the thing is before it says anything else."""
    if not path.endswith(".h"):
        return
    if not text.startswith("//"):
        yield f"{path}:1: a header begins with a comment"
    if "#pragma once" not in text:
        yield f"{path}: no #pragma once"


CPP_TOKENS = re.compile(
    r'R"(?P<tag>[^()\\ ]{0,16})\((?:.|\n)*?\)(?P=tag)"'  # raw strings
    r'|//[^\n]*|/\*(?:.|\n)*?\*/'  # comments
    r'|"(?:[^"\\\n]|\\.)*"|(?<![0-9a-fA-F])\'(?:[^\'\\\n]|\\.)*\''  # strings and characters
    r"|^[ ]*#(?:[^\n\\]|\\.|\\\n)*",  # preprocessor lines
    re.MULTILINE)


def without_text(source):
    """The source with comments, strings and directives blanked, its line breaks kept."""
    return CPP_TOKENS.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), source)


NOT_FUNCTIONS = re.compile(r"^\s*(namespace|class|struct|union|enum|extern|using)\b|=\s*$")
NAME_BEFORE_PARENTHESIS = re.compile(r"([~\w:]+|operator\s*\S{1,3})\s*\(")


def cpp_functions(source):
    """Yields (name, first line, last line) of each outermost function body.

    A body that is one statement is left out: long ones are tables, which have no flow to follow.
    """
    text = without_text(source)
    depth_of_function = None
    depth = 0
    head_start = body_start = 0
    name, first_line = "", 0
    line = 1
    for position, character in enumerate(text):
        if character == "\n":
            line += 1
        elif character == ";" and depth_of_function is None:
            head_start = position + 1
        elif character == "{":
            head = text[head_start:position]
            if depth_of_function is None and "(" in head and not NOT_FUNCTIONS.search(
                    re.sub(r"^\s*template\s*<[^{]*?>\s*(?=\w)", "", head)):
                found = NAME_BEFORE_PARENTHESIS.search(head)
                name = found.group(1) if found else "?"
                leading = len(head) - len(head.lstrip())
                first_line = text.count("\n", 0, head_start + leading) + 1
                depth_of_function, body_start = depth, position
            depth += 1
            if depth_of_function is None:
                head_start = position + 1
        elif character == "}":
            depth -= 1
            if depth_of_function == depth:
                if text.count(";", body_start, position) > 1:
                    yield name, first_line, line
                depth_of_function = None
            if depth_of_function is None:
                head_start = position + 1


def python_functions(path, source):
    for node in ast.walk(ast.parse(source, path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno


def check_functions(path, text):
    if path.endswith(CPP):
        functions = cpp_functions(text)
    elif path.endswith(".py"):
        functions = python_functions(path, text)
    else:
        return
    limit = MAX_TEST_FUNCTION_LINES if path.startswith(("tests/", "bench/")) else MAX_FUNCTION_LINES
    for name, first, last in functions:
        lines = last - first + 1
        if lines > limit and f"{path}:{name}" not in LONG_FUNCTIONS:
            yield f"{path}:{first}: {name} has {lines} lines, at most {limit}"


def check_exceptions(paths):
    """An exception that nothing needs any more is removed."""
    for path in LONG_FILES:
        if path not in paths or read(path).count("\n") <= MAX_FILE_LINES:
            yield f"LONG_FILES: {path} is no exception any more"
    for entry in LONG_FUNCTIONS:
        path, _, name = entry.partition(":")
        if path in paths:
            text = read(path)
            found = cpp_functions(text) if path.endswith(CPP) else python_functions(path, text)
            if any(n == name and last - first >= MAX_FUNCTION_LINES for n, first, last in found):
                continue
        yield f"LONG_FUNCTIONS: {entry} is no exception any more"


def over_limits():
    """What tools/house finds: classes are all that is not checked here."""
    done = subprocess.run([os.path.join(ROOT, "tools", "house")], capture_output=True, text=True,
                          check=False)
    return done.stdout.splitlines() + done.stderr.splitlines() if done.returncode else []


def format_all(paths, fix):
    """clang-format over all C++ files; says so where `tools/setup test` has not installed it."""
    if not shutil.which(CLANG_FORMAT):
        print(f"{CLANG_FORMAT} is not installed: the formatting is not checked")
        return []

    sources = [path for path in paths if path.endswith(CPP)]
    mode = ["-i"] if fix else ["--dry-run", "--Werror", "--ferror-limit=1"]
    # One process for each core: starting one for each file takes longer than the formatting.
    count = os.cpu_count() or 1
    runs = [subprocess.Popen([CLANG_FORMAT, "--style=file", *mode, *sources[start::count]],
                             cwd=ROOT, stderr=subprocess.PIPE, text=True, errors="replace")
            for start in range(count)]
    printed = "".join(run.communicate()[1] for run in runs)
    if any(run.returncode != 0 for run in runs) and ": error:" not in printed:
        return [printed.strip() or f"{CLANG_FORMAT} failed"]
    return [line for line in printed.splitlines() if ": error:" in line]


def main():
    paths = files()
    code = [path for path in paths if path.endswith(CODE) or is_script(path)]
    unformatted = format_all(code, fix="--fix" in sys.argv)
    texts = {path: read(path) for path in code}
    rules = {
        "lines fit, without tabs and blanks at their end": check_lines,
        f"a file has at most {MAX_FILE_LINES} lines": check_file_length,
        "a header begins with what it is": check_header,
        f"a function has at most {MAX_FUNCTION_LINES} lines, of a test {MAX_TEST_FUNCTION_LINES}":
            check_functions,
    }
    results = {rule: [problem for path, text in texts.items() for problem in check(path, text)]
               for rule, check in rules.items()}
    results["sizes are within the limits of tools/house"] = over_limits()
    results["prose of documents is wrapped"] = [
        problem for path in paths if path.endswith(".md")
        for problem in check_prose(path, read(path))]
    results[f"README.md has one table and at most {MAX_README_WORDS} words besides it"] = list(
        check_readme(read("README.md")))
    results["English is plain (tests/english.py)"] = list(check_english(
        {path: read(path) for path in paths}))
    results["C++ is formatted as .clang-format says (--fix does it)"] = unformatted
    results["each exception is still needed"] = list(check_exceptions(paths))
    for rule, problems in results.items():
        print(f"{'FAILED' if problems else 'ok':7}{rule}")
        for problem in problems:
            print(f"       {problem}")
    failed = sum(1 for problems in results.values() if problems)
    print(summary(len(results) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Expressions that must not come back: what a literal translation has in place of plain technical
English. tests/style_test.py runs this.

A line is checked as a whole: comments, messages and help texts alike. Names of test cases are left
out, so that lists of them can be compared between versions.
"""

import re

# expression -> what to write instead.
EXPRESSIONS = {
    r"none any more": "revoked, expired, no longer valid",
    r"^\s*(?:(?://|#|\*) ?)?Of [a-z]": "a sentence with a subject and a verb",
    r"\bis none\b": "is missing, is invalid, does not exist",
    r"[Ww]hoever": "name the subject: the client, the caller, a thread",
    r"goes on\b": "continues, resumes, keeps running",
    r"^\s*(?://|#|\*) Who [a-z]+s\b": "name the subject: a client that, the thread that",
    r"\b[Ll]ets? go of\b": "releases, frees",
    r"\bis looked at\b": "is checked, is read, is examined",
    r"\b[Ww]here there (?:is|are) no": "if there is no, without",
    r"\bspeaks? (?:no|TLS)\b": "uses, supports",
    r"\bat most so (?:many|often)\b": "at most N, the maximum of",
    r"\bfor so long\b": "for this time, up to this long",
    r"\bmay stand\b": "is allowed, is valid",
    r"\bbegins anew\b": "restarts, starts again",
    r"\bnot any more\b": "no longer",
    r"\bin vain\b": "without effect, unsuccessfully",
}

# Not prose of ours: generated files, data, and mutants, which quote other folders' code.
LEFT_OUT = re.compile(r"tests/(mutants|crash/golden|npm)/|tests/english\.py$|"
                      r"\.(svg|json|jsonl|gz|png|rdb|lock)$")

# (path, part of the line) -> why it stays.
EXCEPTIONS = {
}

TEST_CASE = re.compile(r"\b(TEST|SCENARIO)_?(CASE)?\w*\([^{]*\{")


def without_test_names(text):
    """The text with names of doctest's cases blanked, its line breaks kept."""
    return TEST_CASE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def check_english(texts):
    """`texts`: {path: text}. Yields a line for each expression, and for each stale exception."""
    unused = set(EXCEPTIONS)
    for path, text in texts.items():
        if LEFT_OUT.search(path):
            continue
        if path.endswith(".cc"):
            text = without_test_names(text)
        for number, line in enumerate(text.split("\n"), 1):
            for expression, instead in EXPRESSIONS.items():
                found = re.search(expression, line)
                if not found:
                    continue
                excepted = [key for key in EXCEPTIONS if key[0] == path and key[1] in line]
                unused.difference_update(excepted)
                if not excepted:
                    yield f'{path}:{number}: "{found.group().strip()}"; better: {instead}'
    for path, part in sorted(unused):
        yield f"EXCEPTIONS: {path}: {part} is not needed"

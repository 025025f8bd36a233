"""The text form of a transcript: commands with modifiers, one a line. README.md explains it.

`parse_file` turns a file into a list of `Step`s and knows nothing of servers.
"""

import re

from harness.transcripts.compare import Rules

ESCAPES = {ord("n"): b"\n", ord("r"): b"\r", ord("t"): b"\t", ord("b"): b"\b", ord("a"): b"\a"}
REPEAT = re.compile(rb"\{\{(\d+)\*(.*?)\}\}", re.DOTALL)
REPEAT_WORD = re.compile(rb"\{\{(\d+)\*([^{}\s]+) \}\}")
CONTROL = {"conn", "proto", "only", "sleep", "read", "close", "eof", "raw", "idle", "server",
           "fresh", "reconnect", "events"}
SUBSCRIBING = {b"SUBSCRIBE", b"PSUBSCRIBE", b"SSUBSCRIBE"}


class TranscriptError(Exception):
    """A transcript does not parse; the text names file and line."""


class Step:
    """One line. `kind` is "command" or the name of a control line; `value` is its argument."""

    def __init__(self, line_number, text, kind, value=None):
        self.line_number = line_number
        self.text = text
        self.kind = kind
        self.value = value
        self.arguments = []
        self.rules = Rules()
        self.replies = 1
        self.is_async = False
        self.is_scan = False
        self.variable = None


def expand(data):
    """`{{1000*ab}}` is "ab" a thousand times; `{{1000*ab }}` is a thousand words."""
    return REPEAT.sub(lambda match: match.group(2) * int(match.group(1)), data)


def unescape(data):
    out = bytearray()
    index = 0
    while index < len(data):
        byte = data[index]
        if byte != 0x5C or index + 1 == len(data):
            out.append(byte)
            index += 1
            continue
        following = data[index + 1]
        if following == ord("x") and re.fullmatch(rb"[0-9a-fA-F]{2}", data[index + 2:index + 4]):
            out.append(int(data[index + 2:index + 4], 16))
            index += 4
        else:
            out += ESCAPES.get(following, bytes([following]))
            index += 2
    return bytes(out)


TOKEN = re.compile(rb'\s*(?:"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'|([^\s"\']\S*))(?=\s|$)',
                   re.DOTALL)


def split_arguments(data):
    """Splits as redis-cli does: "double quotes" with escapes, 'single quotes' with only \\'."""
    arguments = []
    position = 0
    data = REPEAT_WORD.sub(lambda match: (match.group(2) + b" ") * int(match.group(1)), data)
    while data[position:].strip():
        match = TOKEN.match(data, position)
        if not match:
            raise ValueError("unbalanced quotes")
        double, single, plain = match.groups()
        if double is not None:
            word = unescape(double)
        elif single is not None:
            word = single.replace(b"\\'", b"'")
        else:
            word = plain
        arguments.append(expand(word))
        position = match.end()
    return arguments


def take_word(data):
    match = re.match(rb"\s*(\S+)\s*", data)
    if not match:
        raise ValueError("a word is missing")
    return match.group(1), data[match.end():]


def apply_modifier(step, name, rest):
    """Applies one `@name` to the step; returns what is left of the line, None if unknown."""
    rules = step.rules
    flags = {"ignore": "ignore", "type": "type_only", "shape": "shape", "unordered": "unordered",
             "deepunordered": "deep_unordered", "pairs": "pairs", "words": "words"}
    if name in flags:
        setattr(rules, flags[name], True)
        return rest
    if name == "async":
        step.is_async = True
        return rest
    if name == "scan":
        step.is_scan = True
        return rest
    if name not in ("approx", "mask", "except", "fields", "replies", "let"):
        return None
    word, rest = take_word(rest)
    if name == "approx":
        rules.approx = float(word)
    elif name == "mask":
        rules.masks.append(word)
    elif name == "except":
        rules.excepted |= set(word.split(b","))
    elif name == "fields":
        rules.fields = set(word.split(b","))
    elif name == "replies":
        step.replies = int(word)
    elif name == "let":
        step.variable = word
    return rest


def parse_control(step, name, rest):
    text = rest.strip()
    if name == "raw":
        step.value = expand(unescape(text))
    elif name in ("sleep", "approx"):
        step.value = float(text)
    elif name in ("conn", "proto", "only", "read", "close"):
        step.value = int(text) if text else None
    elif name == "server":
        step.value = text.decode()
    return step


def parse_line(line_number, line):
    step = Step(line_number, line.decode(errors="replace"), "command")
    rest = line.strip()
    explicit_replies = False
    while rest.startswith(b"@"):
        word, after = take_word(rest)
        name = word[1:].decode()
        if name in CONTROL and step.kind == "command":
            # `@read` and `@raw` may follow modifiers; the others stand alone.
            step.kind = name
            return parse_control(step, name, after)
        rest = apply_modifier(step, name, after)
        if rest is None:
            raise ValueError(f"unknown modifier @{name}")
        explicit_replies |= name == "replies"
    step.arguments = split_arguments(rest)
    if not step.arguments:
        raise ValueError("a command is missing")
    if step.arguments[0].upper() in SUBSCRIBING and not explicit_replies:
        step.replies = max(1, len(step.arguments) - 1)
    return step


def expand_loops(lines):
    """`@for K a b` ... `@end`: the lines between, once for each word, with `<K>` replaced."""
    out = []
    index = 0
    while index < len(lines):
        number, line = lines[index]
        index += 1
        if not line.startswith(b"@for "):
            out.append((number, line))
            continue
        # The words stay as written: they become part of lines that are yet to be parsed.
        words = [next(part for part in match.groups() if part is not None)
                 for match in TOKEN.finditer(line)]
        depth, start = 1, index
        while depth:
            if index == len(lines):
                raise ValueError("@for without @end")
            text = lines[index][1].strip()
            depth += text.startswith(b"@for ") - (text == b"@end")
            index += 1
        body = lines[start:index - 1]
        for word in words[2:]:
            marked = b"<" + words[1] + b">"
            out += expand_loops([(at, text.replace(marked, word)) for at, text in body])
    return out


def join_lines(data):
    """(number, line) of each line that says something; a final backslash joins the next one."""
    lines = []
    held = b""
    for number, line in enumerate(data.split(b"\n"), 1):
        if not held:
            start = number
            if not line.strip() or line.lstrip().startswith(b"#"):
                continue
        if line.endswith(b"\\"):
            held += line[:-1] + b"\n"
            continue
        lines.append((start, held + line))
        held = b""
    if held:
        raise ValueError("the last line is incomplete")
    return lines


def parse(data, name="<text>"):
    """Steps of a transcript's bytes."""
    number = 0
    steps = []
    try:
        for number, line in expand_loops(join_lines(data)):
            steps.append(parse_line(number, line))
    except ValueError as error:
        raise TranscriptError(f"{name}:{number}: {error}") from None
    return steps


def parse_file(path):
    with open(path, "rb") as file:
        return parse(file.read(), str(path))

"""Decides whether two replies are the same, under the relaxation that a command asks for.

Without a relaxation, the bytes must be equal. `Rules` are parsed once from a line's modifiers;
`equal` is a pure function of the rules and the two replies. An error reply is never relaxed, but
by masks.
"""

import re

from harness.resp import PAIRED


class Rules:
    """What may differ. Several relaxations of one command are applied together."""

    def __init__(self):
        self.ignore = False
        self.type_only = False
        self.shape = False
        self.unordered = False
        self.deep_unordered = False
        self.pairs = False
        self.words = False
        self.approx = None
        self.masks = []
        self.excepted = set()
        self.fields = None
        # For an EXEC: the rules of the queued commands, in order.
        self.children = None

    @property
    def exact(self):
        return self.approx is None and not (
            self.ignore or self.type_only or self.shape or self.unordered or self.deep_unordered or
            self.pairs or self.words or self.masks or self.excepted or self.fields or self.children)


def equal(rules, left, right):
    """True if the replies `left` and `right` are the same under `rules`."""
    if rules.ignore or left.raw == right.raw:
        return True
    if rules.exact:
        return False
    return equal_trees(rules, left.tree, right.tree)


def equal_trees(rules, left, right):
    if left == right or rules.ignore:
        return True
    if left[0] in "-!" or right[0] in "-!":
        return left[0] == right[0] and masked(rules, left[1]) == masked(rules, right[1])
    if rules.type_only:
        return left[0] == right[0] and (left[1] is None) == (right[1] is None)
    if rules.shape:
        return shape(left) == shape(right)
    if rules.children is not None:
        return equal_children(rules, left, right)
    if rules.fields:
        return chosen_fields(rules, left) == chosen_fields(rules, right)
    if rules.excepted:
        left, right = without_excepted(rules, left), without_excepted(rules, right)
    left, right = normalised(rules, left), normalised(rules, right)
    return near(left, right, rules.approx) if rules.approx is not None else left == right


def equal_children(rules, left, right):
    if left[0] != right[0] or left[1] is None or right[1] is None:
        return False
    if len(left[1]) != len(right[1]) or len(left[1]) != len(rules.children):
        return False
    return all(map(equal_trees, rules.children, left[1], right[1]))


def masked(rules, text):
    for pattern in rules.masks:
        text = re.sub(pattern, b"*", text)
    return text


def normalised(rules, tree, depth=0):
    """The tree with texts masked and, where the rules say so, in one fixed order."""
    kind, payload = tree
    if payload is None:
        return tree
    if isinstance(payload, bytes):
        payload = masked(rules, payload)
        # The bracket of an ACL selector belongs to no word.
        words = payload.replace(b"(", b"( ").replace(b")", b" )").split(b" ")
        return (kind, b" ".join(sorted(words))) if rules.words else (kind, payload)
    children = [normalised(rules, child, depth + 1) for child in payload]
    if rules.pairs and depth == 0 and (kind in PAIRED or is_flat(children)):
        pairs = sorted(zip(children[::2], children[1::2]), key=repr)
        children = [child for pair in pairs for child in pair]
    elif rules.deep_unordered or depth == 0 and (rules.unordered or rules.pairs):
        if kind in PAIRED:
            pairs = sorted(zip(children[::2], children[1::2]), key=repr)
            children = [child for pair in pairs for child in pair]
        else:
            children = sorted(children, key=repr)
    return (kind, children)


def is_flat(children):
    """RESP2 sends pairs flat, RESP3 often as arrays of two: only the first kind is paired up."""
    return len(children) % 2 == 0 and all(isinstance(child[1], bytes) for child in children)


def shape(tree):
    """The kinds of a reply and the lengths of its aggregates."""
    kind, payload = tree
    if payload is None:
        return (kind, None)
    if isinstance(payload, bytes):
        return (kind, "")
    return (kind, [shape(child) for child in payload])


def near(left, right, slack):
    if left[0] != right[0] or (left[1] is None) != (right[1] is None):
        return False
    if left[1] is None:
        return True
    if isinstance(left[1], bytes):
        if left[1] == right[1]:
            return True
        try:
            return abs(float(left[1]) - float(right[1])) <= slack
        except ValueError:
            return False
    return len(left[1]) == len(right[1]) and all(
        near(one, other, slack) for one, other in zip(left[1], right[1]))


def without_excepted(rules, tree):
    """The values of the excepted keys become a placeholder, in maps and in flat arrays alike."""
    kind, payload = tree
    if not isinstance(payload, list):
        return tree
    out = []
    hidden = False
    for index, child in enumerate(payload):
        if hidden:
            out.append(("*", b"hidden"))
            hidden = False
            continue
        out.append(without_excepted(rules, child))
        hidden = index % 2 == 0 and isinstance(child[1], bytes) and child[1] in rules.excepted
    return (kind, out)


def chosen_fields(rules, tree):
    """Of `name:value` or `name=value` texts (INFO, CLIENT LIST): the chosen fields of each line."""
    text = tree[1]
    if not isinstance(text, bytes):
        return tree
    found = []
    for word in re.split(rb"[\s]+", text):
        match = re.match(rb"([^:=]+)[:=](.*)", word, re.DOTALL)
        if match and match.group(1) in rules.fields:
            found.append((match.group(1), masked(rules, match.group(2))))
    return (tree[0], found)

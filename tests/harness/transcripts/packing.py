"""Seeded round trips through `cmsgpack`, `struct` and `cjson`, of good and of damaged input."""

import struct

from harness.transcripts.pools import Command

# Shows a value with nothing left open: the bits of numbers, the keys in order.
SHOW = """local function show(v)
local kind = type(v)
if kind == 'number' then return v ~= v and 'nan' or 'n' .. struct.pack('>d', v) end
if kind == 'string' then return 's' .. #v .. ':' .. v end
if kind ~= 'table' then return v == cjson.null and 'null' or tostring(v) end
local parts = {}
for key, value in pairs(v) do parts[#parts + 1] = show(key) .. '=' .. show(value) end
table.sort(parts)
return '{' .. table.concat(parts, ',') .. '}'
end
local function attempt(f, ...)
local results, shown = {pcall(f, ...)}, {}
for i = 1, 8 do shown[i] = show(results[i]) end
return shown
end
"""

NUMBERS = ["0", "1", "-1", "31", "32", "-32", "-33", "127", "128", "-128", "-129", "255", "256",
           "32767", "-32768", "-32769", "65535", "65536", "2147483647", "-2147483648",
           "-2147483649", "4294967295", "4294967296", "9007199254740993", "2^63", "-2^63", "2^64",
           "1e300", "0.1", "1.5", "-0.5", "3.25e10", "1e-45", "1/0", "-1/0", "16777217", "1.7"]
TEXT_SIZES = [0, 1, 5, 31, 32, 33, 255, 256, 65535, 65536]


def literal(random, depth=0):
    """A Lua value. A table has one key at most that is no index, because the order is not told."""
    what = random.random()
    if what < 0.4:
        return random.choice(NUMBERS)
    if what < 0.6:
        return f"string.rep('{random.choice(['a', '', chr(92) + '0', 'xy'])}', " \
               f"{random.choice(TEXT_SIZES[:6] if depth else TEXT_SIZES)})"
    if what < 0.7 or depth > 4:
        return random.choice(["true", "false", "nil", "cjson.null", "function() end", "{}"])
    if what < 0.9:
        count = random.choice([0, 1, 2, 3, 15, 16, 17] if depth < 2 else [0, 1, 2])
        return "{" + ", ".join(literal(random, depth + 1) for _ in range(count)) + "}"
    key = random.choice(["a = ", "['k 1'] = ", "[2] = ", "[0] = ", "[-1] = ", "[1.5] = ",
                         "[true] = ", "[1] = ", "[2^31] = "])
    return "{" + key + literal(random, depth + 1) + "}"


def packed(random, depth=0):
    """MessagePack bytes, mostly well formed."""
    if depth > 5 or random.random() < 0.5:
        return random.choice([b"\x00", b"\x7f", b"\xe0", b"\xff", b"\xc0", b"\xc2", b"\xc3",
                              b"\xcc\xff", b"\xcd\x01\x02", b"\xce\xff\x00\x00\x01",
                              b"\xcf" + b"\xff" * 8, b"\xcf" + b"\x01" * 8, b"\xd0\x80",
                              b"\xd1\x80\x00", b"\xd2\x80\x00\x00\x00", b"\xd3" + b"\x80" * 8,
                              b"\xca\x3f\x80\x00\x00", b"\xca\x7f\xc0\x00\x01", b"\xa0",
                              b"\xcb" + struct.pack(">d", random.uniform(-1e9, 1e9)), b"\xa3abc",
                              b"\xd9\x02ab", b"\xda\x00\x01a", b"\xdb\x00\x00\x00\x02\x00\xff",
                              b"\xc1", b"\xc4\x01a", b"\xd4\x01\x02", b"\xc7\x00\x00"][
                                  :random.choice([23, 23, 23, 28])])
    count = random.choice([0, 1, 2, 3])
    inner = [packed(random, depth + 1) for _ in range(2 * count)]
    if random.random() < 0.5:
        head = random.choice([bytes([0x90 | count]), b"\xdc" + struct.pack(">H", count),
                              b"\xdd" + struct.pack(">I", count)])
        return head + b"".join(inner[:count])
    head = random.choice([bytes([0x80 | count]), b"\xde" + struct.pack(">H", count),
                          b"\xdf" + struct.pack(">I", count)])
    return head + b"".join(inner)


def damaged(random, data):
    """The bytes as they are, cut, or with one of them changed."""
    what = random.random()
    if data and what < 0.15:
        return data[:random.randrange(len(data))]
    if data and what < 0.3:
        at = random.randrange(len(data))
        return data[:at] + bytes([random.randrange(256)]) + data[at + 1:]
    return data


def msgpack_unit(random):
    if random.random() < 0.4:
        values = ", ".join(literal(random) for _ in range(random.choice([1, 1, 2, 3])))
        return Command(["EVAL", f"return cmsgpack.pack({values})", 0])
    data = damaged(random, b"".join(packed(random) for _ in range(random.choice([0, 1, 1, 2, 4]))))
    numbers = ["0", "1", "2", "5", "-1", str(len(data)), str(len(data) + 1), "1.7", "x", "2^63"]
    call = random.choice([["unpack"], ["unpack_one"], ["unpack_one", random.choice(numbers)],
                          ["unpack_limit", random.choice(numbers), random.choice(numbers)]])
    arguments = ["ARGV[1]"] + ["'x'" if number == "x" else number for number in call[1:]]
    script = f"return attempt(cmsgpack.{call[0]}, {', '.join(arguments)})"
    return Command(["EVAL", SHOW + script, 0, data])


FORMAT_PARTS = list("bBhHlLTfdsxi") + list("bBhHlLTfdsxi") + [
    "I", "i1", "i2", "i3", "i5", "I7", "i8", "i9", "I16", "i17", "i32", "i0", "c", "c0", "c1",
    "c3", "Bc0", "dc0", "<", ">", "!", "!1", "!2", "!4", "!8", "!16", " "]
BAD_PARTS = ["i33", "!3", "!0", "q", "?", "c99999999999", "!99999999999", "5", "\x01", "z", "-"]


def struct_unit(random):
    parts = [random.choice(FORMAT_PARTS) for _ in range(random.choice([0, 1, 2, 3, 6]))]
    if random.random() < 0.1:
        parts.insert(random.randint(0, len(parts)), random.choice(BAD_PARTS))
    text = "".join(parts)
    what = random.random()
    if what < 0.15:
        return Command(["EVAL", SHOW + "return attempt(struct.size, ARGV[1])", 0, text])
    if what < 0.55:
        values = [random.choice(NUMBERS + ["-7.9"]) for _ in range(len(parts) + 1)]
        for index, part in enumerate(parts):
            if part[0] in "sc" or random.random() < 0.03:
                values[index] = random.choice(["'abc'", "''", "'abcdef'", "string.rep('z', 300)",
                                               "'7'", "nil", "{}"])
        script = f"return attempt(struct.pack, ARGV[1], {', '.join(values)})"
        return Command(["EVAL", SHOW + script, 0, text])
    data = bytes(random.choice([0, 0, 1, 2, 3, 65, 127, 128, 255])
                 for _ in range(random.choice([0, 1, 4, 9, 16, 40, 80])))
    at = random.choice(["", "", "", ", 1", ", 2", ", 0", ", -1", f", {len(data) + 1}",
                        f", {len(data) + 2}", ", 2^63", ", 2^62", ", {}"])
    return Command(["EVAL", SHOW + f"return attempt(struct.unpack, ARGV[1], ARGV[2]{at})", 0, text,
                    data])


JSON_OPTIONS = [
    "cjson.encode_sparse_array(%s)", "cjson.encode_max_depth(%s)", "cjson.decode_max_depth(%s)",
    "cjson.encode_number_precision(%s)", "cjson.encode_keep_buffer(%s)",
    "cjson.encode_invalid_numbers(%s)", "cjson.decode_invalid_numbers(%s)"]
JSON_SETTINGS = ["", "true", "false", "'null'", "'on'", "'off'", "1", "3", "14", "15", "0", "-1",
                 "true, 2, 3", "false, 0, 0", "true, 1, 1", "1, 2", "'x'", "{}", "1000"]
JSON_TEXTS = ["[[1]]", "[[[[1]]]]", "[NaN]", "[1e999]", "[-Infinity]", '{"a":[0.1,1e15,123456789]}',
              "[0.30000000000000004]", '["\\u00e9\\ud83d\\ude00"]', "[null,true]", '{"a":{"b":{}}}',
              "[1,2", "0x10", "[0x1F]", '{"1":2}', "[]", "{}", '"x"', "nan", "[-0.0]"]
JSON_VALUES = ["{[1]=1, [9]=2}", "{[3]=1}", "{[1]=1, [2]=2, [30]=3}", "1/3", "1/0", "0/0 ~= 1",
               "{{{{1}}}}", "{}", "123456789.123", "'\\0\\127\"'", "{1, nil, 3}",
               "{a = cjson.null}"]


def json_unit(random):
    """Options last until the interpreter is made anew, by SCRIPT FLUSH."""
    if random.random() < 0.05:
        return Command(["SCRIPT", "FLUSH"])
    if random.random() < 0.35:
        option = random.choice(JSON_OPTIONS) % random.choice(JSON_SETTINGS)
        if random.random() < 0.3:
            option = option.replace("cjson.", "cjson.new().", 1)
        # No tail call: LuaJIT then knows no more whose argument is bad.
        script = f"return attempt(function() local a, b, c = {option} return a, b, c end)"
        return Command(["EVAL", SHOW + script, 0])
    if random.random() < 0.5:
        value = random.choice(JSON_VALUES)
        # Tables with several keys that are not indices have no order: compare the size only.
        wrap = "#cjson.encode(%s)" if value.startswith("{[") else "cjson.encode(%s)"
        script = f"return attempt(function() return {wrap % value} end)"
        return Command(["EVAL", SHOW + script, 0])
    return Command(["EVAL", SHOW + "return attempt(cjson.decode, ARGV[1])", 0,
                    random.choice(JSON_TEXTS)])


def packing_round(random, count, _protocol):
    units = [msgpack_unit, msgpack_unit, struct_unit, struct_unit, json_unit]
    commands = [Command(["SCRIPT", "FLUSH"])]
    while len(commands) < count:
        commands.append(random.choice(units)(random))
    return commands

"""What the models of the crash tests are made of: expected errors, entries, streams, scores, and
the bytes of RESTORE."""

CRC64_POLYNOMIAL = 0x95AC9329AC4BC9B5  # of RDB, bits reversed
RDB_VERSION = 10


class Error:
    """An expected error reply: its first words."""

    def __init__(self, text):
        self.text = text

    def __eq__(self, other):
        return isinstance(other, Error) and (other.text.startswith(self.text) or
                                             self.text.startswith(other.text))

    def __repr__(self):
        return f"Error({self.text!r})"


class Entry:
    """A key's value and, where it expires, the earliest and latest possible time for it."""

    def __init__(self, value, expires=None):
        self.value = value
        self.expires = expires

    def __repr__(self):
        return f"{str(self.value)[:200]} expires {self.expires}"


def number(value):
    """A score as Redis prints it; ours are multiples of 1/4."""
    return b"%d" % value if value == int(value) else repr(float(value)).encode()


def serial_of(entry_id):
    return int(entry_id.partition(b"-")[0])


class Stream:
    """Entries by id, and by name of each group the last id it has read and what is pending."""

    def __init__(self, entries=(), last=b"0-0", groups=()):
        self.entries = dict(entries)
        self.last = last
        self.groups = dict(groups)

    def __eq__(self, other):
        return isinstance(other, Stream) and vars(self) == vars(other)

    def __repr__(self):
        return f"stream {vars(self)}"

    def trim(self, length):
        doomed = list(self.entries)[:max(0, len(self.entries) - length)]
        for entry_id in doomed:
            del self.entries[entry_id]
        return len(doomed)


# -- RESTORE ------------------------------------------------------------------------------------

def _crc64_table():
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (CRC64_POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return table


CRC64_TABLE = _crc64_table()


def crc64(data):
    crc = 0
    for byte in data:
        crc = CRC64_TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc


def _length(size):
    if size < 64:
        return bytes([size])
    if size < 1 << 14:
        return bytes([0x40 | size >> 8, size & 0xFF])
    return b"\x80" + size.to_bytes(4, "big")


class Payload(bytes):
    """What RESTORE takes for a string, a list or a set. `value` is what comes of it."""

    def __new__(cls, value):
        items = [value] if isinstance(value, bytes) else value
        body = b"".join(_length(len(item)) + item for item in items)
        if isinstance(value, list):
            body = b"\x01" + _length(len(value)) + body
        elif isinstance(value, set):
            body = b"\x02" + _length(len(value)) + body
        else:
            body = b"\x00" + body
        body += RDB_VERSION.to_bytes(2, "little")
        made = super().__new__(cls, body + crc64(body).to_bytes(8, "little"))
        made.value = value
        return made

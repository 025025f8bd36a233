"""What can be read of a key, as a value to compare: the raw replies of its type's commands."""


def look(connection, key):
    """Everything that can be read of a key."""
    kind = connection.call("TYPE", key).raw
    replies = [kind, connection.call("OBJECT", "ENCODING", key).raw]
    if b"string" in kind:
        return [*replies, connection.call("GET", key).raw]
    if b"stream" in kind:
        return [*replies, connection.call("XRANGE", key, "-", "+").raw,
                connection.call("XINFO", "STREAM", key).raw, *look_groups(connection, key)]
    if b"list" in kind:
        return [*replies, connection.call("LRANGE", key, 0, -1).raw]
    if b"set" in kind and b"zset" not in kind:
        return [*replies, connection.call("SORT", key, "ALPHA", "STORE", "sorted").raw,
                connection.call("LRANGE", "sorted", 0, -1).raw]
    if b"hash" in kind:
        pairs = connection.call("HGETALL", key).tree[1]
        names = [name[1] for name in pairs[::2]]
        return [*replies, sorted(zip(names, [value[1] for value in pairs[1::2]]))]
    return [*replies, connection.call("ZRANGE", key, 0, -1, "WITHSCORES").raw]


def look_groups(connection, key):
    """The groups of a stream, without times, which differ where one command ran on two servers."""
    groups = connection.call("XINFO", "GROUPS", key)
    replies = [groups.raw]
    for group in groups.tree[1]:
        name = group[1][1][1]
        pending = connection.call("XPENDING", key, name, "-", "+", 1000).tree[1]
        replies.append([(entry[1][0], entry[1][1], entry[1][3]) for entry in pending])
        consumers = connection.call("XINFO", "CONSUMERS", key, name).tree[1]
        replies.append([(consumer[1][1], consumer[1][3]) for consumer in consumers])
    return replies

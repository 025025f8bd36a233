"""Seeded rounds about users: random rules and selectors, what they allow (ACL DRYRUN, scripts, the
commands themselves), and what INFO errorstats and ACL LOG say of it afterwards."""

from harness.transcripts.pools import Command

RULES = ["+get", "-get", "+set", "-set", "+mget", "+copy", "-copy", "+publish", "+@read", "-@read",
         "+@write", "-@write", "+@all", "-@all", "+@string", "-@pubsub", "+select|0", "+config|get",
         "+config", "-config|set", "~a*", "~b*", "%R~c*", "%W~d*", "%RW~e*", "~*", "resetkeys",
         "allkeys", "&x*", "&y*", "&*", "resetchannels", "allchannels", "clearselectors", "reset"]
SELECTORS = ["(~b* +@all)", "(%R~c* %W~d* +copy +get)", "(&y* +publish)", "(allkeys +@read)",
             "(~a* +set +eval)", "()", "(~e* &x* +@all -del)"]
BAD_RULES = ["+nosuch", "(~a", "+get)", "(on)", "~a b", "+get|x|y", "%Z~a", "#12", "nosuch",
             "(+nosuch)", "-select|0", "+config|nosuch"]
KEYS = ["a1", "b1", "c1", "c2", "d1", "d2", "e1", "f1", ""]
CHANNELS = ["x1", "y1", "z1", "x*"]
CODES = ["ERR", "MINE", "A:B", "WRONGTYPE", "x" * 30, "y" * 31]


def some_command(random):
    key, other = random.choice(KEYS), random.choice(KEYS)
    channel = random.choice(CHANNELS)
    return random.choice([
        ["GET", key], ["SET", key, "v"], ["SET", key, "v", "GET"], ["MGET", key, other],
        ["COPY", key, other], ["DEL", key, other], ["RENAME", key, other], ["EXISTS", key],
        ["PUBLISH", channel, "m"], ["SPUBLISH", channel, "m"], ["CONFIG", "GET", "databases"],
        ["CONFIG", "NOSUCH", "x"], ["SELECT", "0"], ["SELECT", "1"], ["PING"], ["NOSUCH"], ["GET"],
        ["EVAL", "return 1", "1", key], ["ZUNIONSTORE", key, "2", other, key],
        ["OBJECT", "ENCODING", key], ["SORT", key, "BY", "w*"], ["TOUCH", key, other],
        ["LMPOP", "2", key, other, "LEFT"], ["XREAD", "STREAMS", key, "0"],
        ["MSET", key, "1", other, "2"], ["BITOP", "NOT", key, other]])


def set_user(random):
    rules = random.sample(RULES, random.randint(0, 5))
    rules += random.sample(SELECTORS, random.randint(0, 2))
    if random.random() < 0.15:
        rules.append(random.choice(BAD_RULES))
    random.shuffle(rules)
    # As several words as well: the server joins them.
    words = [word for rule in rules for word in
             (rule.split(" ") if random.random() < 0.5 else [rule])]
    return ["ACL", "SETUSER", "u", "on", "nopass", *words]


def as_user(random):
    """What the user sends, alone, in a transaction or in a script."""
    words = some_command(random)
    kind = random.random()
    if kind < 0.6:
        return [Command(words, connection=2)]
    if kind < 0.8:
        return [Command(["MULTI"], connection=2), Command(words, connection=2, in_multi=True),
                Command(["EXEC"], connection=2)]
    script = random.choice(["return redis.pcall(unpack(ARGV))", "return redis.call(unpack(ARGV))",
                            "return redis.acl_check_cmd(unpack(ARGV))",
                            "redis.pcall(unpack(ARGV)) return redis.error_reply(KEYS[1])"])
    return [Command(["EVAL", script, "1", "a1", *words], connection=random.choice([1, 2]))]


def rights_round(random, count, _protocol):
    commands = [Command(["CONFIG", "RESETSTAT"]), Command(["ACL", "LOG", "RESET"]),
                Command(["ACL", "DELUSER", "u"]), Command(["ACL", "SETUSER", "u", "on", "nopass"]),
                Command(["AUTH", "u", "x"], connection=2)]
    while len(commands) < count:
        kind = random.random()
        if kind < 0.1:
            commands.append(Command(set_user(random)))
        elif kind < 0.5:
            commands.append(Command(["ACL", "DRYRUN", "u", *some_command(random)]))
        elif kind < 0.55:
            code = random.choice(CODES)
            commands.append(Command(["EVAL", "return {err=ARGV[1]}", "0", f"{code} text"]))
        else:
            commands += as_user(random)
    commands.append(Command(["INFO", "errorstats"]))
    commands.append(Command(["ACL", "LOG", "128"], mode="log"))
    commands.append(Command(["ACL", "DELUSER", "u"]))
    return commands

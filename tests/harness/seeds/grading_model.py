"""The grading queue's state as plain Python, and its operations as units that change it.

An operation is a generator of units; each unit is one atomic request (a command or a MULTI). A unit
sends itself to the server, checks its reply against the model, and only then changes the model.
After a crash the server must hold the model before or after the one unit that was under way.
"""

import copy
import json

RESERVATIONS = "Reservations"


class Model:
    """What the server holds, but for locks."""

    def __init__(self):
        self.reservations = {}   # member: score
        self.lists = {}          # SubmitterInfo.<collation>: [job key]
        self.nonces = {}         # Nonces.<collation>: {nonce}
        self.jobs = {}           # job key: JSON
        self.immediate = set()   # job keys with an immediate reservation
        self.orphan = None       # (collation, nonce) between the two halves of an operation

    def copy(self):
        return copy.deepcopy(self)

    def state(self):
        return {"reservations": self.reservations,
                "lists": {name: keys for name, keys in self.lists.items() if keys},
                "nonces": {name: nonces for name, nonces in self.nonces.items() if nonces},
                "jobs": self.jobs}

    def first(self):
        return min(self.reservations.items(), key=lambda item: (item[1], item[0]))[0]

    def check_invariants(self):
        """The five of the document, for a queue at rest."""
        queued = [key for keys in self.lists.values() for key in keys]
        assert len(queued) == len(set(queued)), "a job key is in two lists, or twice in one"
        assert set(queued) | self.immediate == set(self.jobs), "jobs and their keys differ"
        assert not set(queued) & self.immediate
        for name, nonces in self.nonces.items():
            collation = name.removeprefix("Nonces.")
            members = {m for m in self.reservations if m.startswith(collation + ".")}
            assert members == {f"{collation}.{nonce}" for nonce in nonces}
            assert len(nonces) == len(self.lists.get("SubmitterInfo." + collation, []))


def read_state(client):
    """The server's whole state but for locks."""
    state = {"reservations": dict(client.zrange(RESERVATIONS, 0, -1, withscores=True)),
             "lists": {name: client.lrange(name, 0, -1) for name in client.keys("SubmitterInfo.*")},
             "nonces": {name: client.smembers(name) for name in client.keys("Nonces.*")},
             "jobs": {name: client.get(name) for name in client.keys("job-*")}}
    known = 1 if state["reservations"] else 0
    known += sum(len(part) for name, part in state.items() if name != "reservations")
    assert client.dbsize() - len(client.keys("lock*")) == known, client.keys("*")
    return state


class Unit:
    """One atomic request. `change(model)` is what it does; `expected` its reply before it is sent,
    or None where only `change` can judge it from the reply (SPOP)."""

    def __init__(self, commands, expected, change, choices=None):
        self.commands = commands
        self.expected = expected
        self.change = change
        self.choices = choices   # every reply that a random command may give

    def run(self, client, model):
        if len(self.commands) == 1:
            replies = [client.execute_command(*self.commands[0])]
        else:
            transaction = client.pipeline(transaction=True)
            for command in self.commands:
                transaction.execute_command(*command)
            replies = transaction.execute()
        if self.choices is not None:
            assert replies[0] in self.choices, (self.commands, replies, self.choices)
            self.change(model, replies[0])
        else:
            assert replies == self.expected, (self.commands, replies, self.expected)
            self.change(model)
        return replies

    def outcomes(self, model):
        """The models after it, when its reply was lost."""
        after = []
        for choice in self.choices if self.choices is not None else [None]:
            changed = model.copy()
            self.change(changed, *([] if choice is None else [choice]))
            after.append(changed)
        return after


def names(collation):
    return "SubmitterInfo." + collation, "Nonces." + collation


def job_json(key, version):
    return json.dumps({"key": key, "version": version, "script": "grade --all\r\n\0" * 5})


# -- The operations -------------------------------------------------------------------------------


def add(client, model, key, collation, release_time, version, push):
    """Create or update; `push` is RPUSH as in the document's code or LPUSH as in its text."""
    value = job_json(key, version)
    assert client.exists(key) == (key in model.jobs)
    if key in model.jobs:
        yield Unit([("SET", key, value)], [True], lambda m: m.jobs.update({key: value}))
        return
    list_name, nonces_name = names(collation)
    nonce = release_time
    while client.sismember(nonces_name, str(nonce)):
        assert str(nonce) in model.nonces.get(nonces_name, ())
        nonce += 1
    assert str(nonce) not in model.nonces.get(nonces_name, ())

    def change(m):
        keys = m.lists.setdefault(list_name, [])
        keys.insert(0 if push == "LPUSH" else len(keys), key)
        m.reservations[f"{collation}.{nonce}"] = float(release_time)
        m.nonces.setdefault(nonces_name, set()).add(str(nonce))
        m.jobs[key] = value

    yield Unit([(push, list_name, key),
                ("ZADD", RESERVATIONS, release_time, f"{collation}.{nonce}"),
                ("SADD", nonces_name, nonce), ("SET", key, value)],
               [len(model.lists.get(list_name, [])) + 1, 1, 1, True], change)


def make_immediate(client, model, key, collation, now, version):
    """A new immediate job, or an upgrade of one that waits in its collation's list."""
    value = job_json(key, version)
    list_name, nonces_name = names(collation)
    position = client.lpos(list_name, key)
    keys = model.lists.get(list_name, [])
    assert position == (keys.index(key) if key in keys else None)
    commands, expected = [], []
    nonce = None
    if position is not None:
        def take(m, popped):
            m.nonces[nonces_name].discard(popped)
            m.orphan = (collation, popped)
        replies = yield Unit([("SPOP", nonces_name)], None, take,
                             choices=sorted(model.nonces[nonces_name]))
        nonce = replies[0]
        commands = [("LREM", list_name, 0, key), ("ZREM", RESERVATIONS, f"{collation}.{nonce}")]
        expected = [1, 1]
    member = f"immediate.{key}"

    def change(m):
        if nonce is not None:
            m.lists[list_name].remove(key)
            del m.reservations[f"{collation}.{nonce}"]
            m.orphan = None
        m.reservations[member] = float(now)
        m.immediate.add(key)
        m.jobs[key] = value

    commands += [("ZADD", RESERVATIONS, now, member), ("SET", key, value)]
    expected += [0 if member in model.reservations else 1, True]
    yield Unit(commands, expected, change)


def delay(client, model, key, collation, nonce):
    """To the back: behind the last reservation, and to the end of the list."""
    list_name, _ = names(collation)
    [(last, score)] = client.zrange(RESERVATIONS, -1, -1, withscores=True)
    assert (score, last) == max((s, m) for m, s in model.reservations.items())
    new_score = score + 10

    def change(m):
        m.reservations[f"{collation}.{nonce}"] = new_score
        m.lists[list_name].remove(key)
        m.lists[list_name].append(key)

    yield Unit([("ZADD", RESERVATIONS, new_score, f"{collation}.{nonce}"),
                ("LREM", list_name, 1, key), ("RPUSH", list_name, key)],
               [0, 1, len(model.lists[list_name])], change)


def delete(_client, _model, key, collation, nonce):
    list_name, nonces_name = names(collation)

    def change(m):
        m.lists[list_name].remove(key)
        del m.reservations[f"{collation}.{nonce}"]
        m.nonces[nonces_name].discard(nonce)
        del m.jobs[key]

    yield Unit([("LREM", list_name, 1, key), ("ZREM", RESERVATIONS, f"{collation}.{nonce}"),
                ("SREM", nonces_name, nonce), ("DEL", key)], [1, 1, 1, 1], change)


def rename(_client, model, key, collation, new_key):
    """A job gets another key in place (LSET)."""
    list_name, _ = names(collation)
    index = model.lists[list_name].index(key)
    value = model.jobs[key]

    def change(m):
        m.lists[list_name][index] = new_key
        m.jobs[new_key] = m.jobs.pop(key)

    yield Unit([("LSET", list_name, index, new_key), ("SET", new_key, value), ("DEL", key)],
               [True, True, 1], change)


def next_job(_client, model, delivered):
    """The worker: ZPOPMIN, then SREM and LPOP in MULTI, then GETDEL."""
    if not model.reservations:
        yield Unit([("ZPOPMIN", RESERVATIONS)], [[]], lambda m: None)
        return
    member = model.first()
    score = model.reservations[member]

    def pop(m):
        del m.reservations[member]
        m.orphan = (member, "popped")

    yield Unit([("ZPOPMIN", RESERVATIONS)], [[member, str(int(score))]], pop)
    kind, rest = member.split(".", 1)
    if kind == "immediate":
        key = rest
    else:
        identity, nonce = rest.rsplit(".", 1)
        list_name, nonces_name = names(f"{kind}.{identity}")
        key = model.lists[list_name][0]

        def pop_key(m):
            m.nonces[nonces_name].discard(nonce)
            m.lists[list_name].pop(0)

        yield Unit([("SREM", nonces_name, nonce), ("LPOP", list_name)], [1, key], pop_key)

    def take(m):
        m.immediate.discard(key)
        delivered.append((key, m.jobs.pop(key)))
        m.orphan = None

    yield Unit([("GETDEL", key)], [model.jobs[key]], take)


def reenqueue(_client, _model, key, value, created):
    member = f"immediate.{key}"

    def change(m):
        m.reservations[member] = float(created)
        m.immediate.add(key)
        m.jobs[key] = value

    yield Unit([("ZADD", RESERVATIONS, created, member), ("SET", key, value)], [1, True], change)

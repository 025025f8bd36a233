"""What docs/moving/execution-coordinator.md says happens."""

from check import URL, connect, equal
from service import ExecutionCoordinator, as_map


def event(name, user, priority=2):
    return {"execution_id": name, "user_id": user, "priority": priority, "script": "x"}


def the_handlers():
    published = []
    service = ExecutionCoordinator(URL, lambda kind, fields: published.append((kind, fields)))
    service.configure(per_user=3)
    for name, user, priority in (("a", "u1", 2), ("b", "u1", 0), ("c", "u2", 4), ("d", "u1", 1)):
        service.handle_execution_requested(event(name, user, priority))
    equal([(kind, fields["id"], fields["position"]) for kind, fields in published],
          [("ExecutionAccepted", "a", 0), ("ExecutionAccepted", "b", 0),
           ("ExecutionAccepted", "c", 2), ("ExecutionAccepted", "d", 1)])
    service.handle_execution_requested(event("e", "u1"))
    equal((published[-1][0], published[-1][1]["error"].split(" ")[0]), ("QueueFull", "GROUPFULL"))
    service.handle_execution_requested(event("a", "u1"))
    equal(published[-1], ("ExecutionAccepted", {"id": "a", "position": 2}))
    equal(service.set_priority("c", 0), True)
    equal(service.status(), {"queued": 4, "active": 0, "by_priority": {
        "CRITICAL": 2, "HIGH": 1, "NORMAL": 1, "LOW": 0, "BACKGROUND": 0}})
    service.handle_execution_cancelled("d")
    runs = []
    for _ in range(3):
        service.schedule_next()
        kind, fields = published[-1]
        equal((kind, fields["event"]["execution_id"]), ("CreatePodCommand", fields["id"]))
        runs.append((fields["id"], fields["lease"]))
    equal([name for name, _ in runs], ["b", "c", "a"])
    equal([service.keep(*run) for run in runs], [True, True, True])
    service.handle_execution_cancelled("a")
    equal(service.keep(*runs[2]), False)
    equal(service.handle_execution_completed(*runs[2]), False)
    equal(service.handle_execution_completed(*runs[0]), True)
    equal(service.handle_execution_failed(*runs[1], "out of memory"), True)
    equal(service.status()["active"], 0)
    count = len(published)
    service.schedule_next(block_ms=1)
    equal(len(published), count)


def what_was_not_published_is_published_again(client):
    broken = [True]
    published = []

    def publish(kind, fields):
        if kind == "CreatePodCommand":
            if broken[0]:
                raise OSError("no broker")
            published.append((fields["id"], fields["lease"]))

    service = ExecutionCoordinator(URL, publish, queue="again")
    for name in ("a", "b"):
        service.handle_execution_requested(event(name, "u1"))
    for _ in range(2):
        try:
            service.schedule_next()
        except OSError:
            pass
    equal(service.status()["active"], 1)
    broken[0] = False
    service.schedule_next()
    service.schedule_next()
    equal([name for name, _ in published], ["a", "b"])
    # And by another coordinator, if this one dies before it publishes.
    client.execute_command("Q.CONFIG", "dies", "SET", "lease_ms", 100)
    broken[0] = True
    dying = ExecutionCoordinator(URL, publish, queue="dies")
    dying.handle_execution_requested(event("x", "u1"))
    try:
        dying.schedule_next()
    except OSError:
        broken[0] = False
    client.execute_command("Q.CONFIG", "dies", "SET", "lease_ms", 30000)  # of what it gets
    other = ExecutionCoordinator(URL, publish, worker="coordinator-2", queue="dies")
    other.schedule_next()
    equal((published[-1][0], other.keep(*published[-1])), ("x", True))


def stale_ones_are_told(client):
    service = ExecutionCoordinator(URL, lambda *_: None, queue="stale")
    client.execute_command("Q.CONFIG", "stale", "SET", "ttl_ms", 50)
    service.handle_execution_requested(event("old", "u1"))
    first = next(service.expired())
    equal(first.id, "old")
    service.handle_execution_requested(event("older", "u1"))
    equal(next(service.expired(first.seq)).id, "older")


def maps_of_both_protocols_are_read():
    equal(as_map([b"id", b"a", b"lease", 1]), as_map({b"id": b"a", b"lease": 1}))


CLIENT = connect()
maps_of_both_protocols_are_read()
the_handlers()
what_was_not_published_is_published_again(CLIENT)
stale_ones_are_told(CLIENT)
print("all of it holds")

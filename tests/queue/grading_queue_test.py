#!/usr/bin/python3
"""The grading queue played through the native commands: newest first for each student, release
times, immediate jobs and upgrades, moves to front and back, workers that give their job back."""

import itertools
import sys

import harness
from harness import require, require_equal
from harness.native_queue import DISK, Native, expect_error

QUEUE = "grade"


def started(options, directives=None):
    server = options.server(directives)
    server.start()
    native = Native(server)
    native.config(QUEUE, "SET", "order", "lifo:1")
    return server, native


def submit(native, key, group, payload=b"job", delay_ms=0):
    """createOrUpdateGradingJob: `delay_ms` is its priority, 0 for the first in 15 minutes."""
    return native.add(QUEUE, key, payload, "GROUP", group, "BOOST", -delay_ms, "IFDUP", "UPDATE")


def submit_immediate(native, key, group, payload=b"job"):
    """createOrUpdateImmediateJob."""
    return native.add(QUEUE, key, payload, "GROUP", group, "PRI", 0, "IFDUP", "UPDATE")


def test_the_newest_submission_first_without_gaining_on_others(options):
    """A student's latest submission takes the student's earliest place; others keep theirs."""
    _, native = started(options)
    for key, group in [("a1", "user.1"), ("b1", "user.2"), ("a2", "user.1"), ("c1", "team.3"),
                       ("b2", "user.2"), ("a3", "user.1")]:
        submit(native, key, group)
    # Places: 1 2 1 3 2 1.
    positions = {key: native.get(QUEUE, key)["position"] for key in ("a1", "a2", "a3", "b1", "b2")}
    require_equal(positions, {"a3": 0, "a2": 2, "a1": 5, "b2": 1, "b1": 4}, "positions")
    require_equal(native.drain(QUEUE), ["a3", "b2", "a2", "c1", "b1", "a1"], "order")


def test_a_submission_between_pops_takes_the_next_place(options):
    """Each pop takes what is newest then: reservations are not bound to jobs."""
    _, native = started(options)
    for key, group in [("a1", "user.1"), ("b1", "user.2"), ("a2", "user.1")]:
        submit(native, key, group)
    require_equal(native.pop(QUEUE)["id"], b"a2", "first")
    submit(native, "a3", "user.1")
    require_equal(native.drain(QUEUE), ["b1", "a3", "a1"], "the rest")


def test_release_times_order_but_do_not_hold_up(options):
    """The release time only orders: with nothing else to do a later job is graded now."""
    _, native = started(options)
    submit(native, "busy1", "user.1", delay_ms=0)
    submit(native, "busy2", "user.2", delay_ms=120_000)
    submit(native, "busy3", "user.3", delay_ms=60_000)
    submit(native, "calm", "user.4")
    require_equal(native.drain(QUEUE), ["busy1", "calm", "busy3", "busy2"], "order")


def test_one_job_a_key_with_the_latest_payload(options):
    """Create or update: a regrade changes the job in place, with its rank, and adds nothing."""
    _, native = started(options)
    submit(native, "k1", "user.1", b"old tests")
    submit(native, "k2", "user.2")
    answer = submit(native, "k1", "user.1", b"new tests")
    require_equal((answer["result"], answer["position"]), (b"updated", 0), "answer")
    require_equal(native.stats(QUEUE)["pending"], 2, "jobs")
    job = native.pop(QUEUE)
    require_equal((job["id"], job["payload"]), (b"k1", b"new tests"), "graded")


def test_a_regrade_while_it_is_graded_waits_for_its_turn(options):
    """An update of a job that is being graded is graded afterwards, once, with the last payload."""
    _, native = started(options)
    submit(native, "k1", "user.1", b"1")
    running = native.pop(QUEUE)
    require_equal(submit(native, "k1", "user.1", b"2")["result"], b"queued", "during the run")
    require_equal(submit(native, "k1", "user.1", b"3")["result"], b"queued", "once more")
    require_equal(native.pop(QUEUE), None, "not beside itself")
    native.ack(QUEUE, running)
    again = native.pop(QUEUE)
    require_equal((again["id"], again["payload"], again["attempt"]), (b"k1", b"3", 1), "then")
    native.ack(QUEUE, again)
    require_equal(native.drain(QUEUE), [], "nothing more")


def test_immediate_jobs_go_first_in_their_order(options):
    """Immediate jobs bypass the students' stacks; among themselves first come, first graded."""
    _, native = started(options)
    submit(native, "a1", "user.1")
    submit(native, "b1", "user.2")
    submit_immediate(native, "regrade1", "user.3")
    submit_immediate(native, "regrade2", "user.3")
    submit(native, "a2", "user.1")
    require_equal(native.drain(QUEUE), ["regrade1", "regrade2", "a2", "b1", "a1"], "order")


def test_an_upgrade_replaces_the_reservation(options):
    """A waiting job that is asked for at once becomes immediate; others keep their places."""
    _, native = started(options)
    for key, group in [("a1", "user.1"), ("b1", "user.2"), ("a2", "user.1")]:
        submit(native, key, group)
    answer = submit_immediate(native, "a1", "user.1", b"new")
    require_equal((answer["result"], answer["position"]), (b"updated", 0), "answer")
    require_equal(native.stats(QUEUE)["pending"], 3, "jobs")
    job = native.pop(QUEUE)
    require_equal((job["id"], job["payload"]), (b"a1", b"new"), "first")
    native.ack(QUEUE, job)
    require_equal(sorted(native.drain(QUEUE)), ["a2", "b1"], "the rest")


def test_release_to_the_front(options):
    """Release job 1, release job 2: job 2 before job 1 before all others."""
    _, native = started(options)
    for number in range(1, 6):
        submit(native, f"j{number}", f"user.{number}")
    submit_immediate(native, "now", "user.9")
    for key in ("j3", "j5"):
        require_equal(native.move(QUEUE, key, "PRI", 0, "FRONT"), 0, f"position of {key}")
    require_equal(native.drain(QUEUE), ["j5", "j3", "now", "j1", "j2", "j4"], "order")


def test_delay_to_the_back_twice(options):
    """Delay job 1, delay job 2: job 2 behind job 1 behind all others; a later one behind both."""
    _, native = started(options)
    for number in range(1, 5):
        submit(native, f"j{number}", f"user.{number}", delay_ms=number * 60_000)
    require_equal(native.move(QUEUE, "j1", "BACK"), 3, "position of j1")
    require_equal(native.move(QUEUE, "j2", "BACK"), 3, "position of j2")
    require_equal(native.move(QUEUE, "j2", "BACK"), 3, "position of j2, again")
    require_equal(native.drain(QUEUE), ["j3", "j4", "j1", "j2"], "order")


def test_a_delayed_submission_leaves_the_stack(options):
    """A job moved to the back is graded last although it is its student's newest."""
    _, native = started(options)
    for key, group in [("a1", "user.1"), ("b1", "user.2"), ("a2", "user.1")]:
        submit(native, key, group)
    native.move(QUEUE, "a2", "BACK")
    order = native.drain(QUEUE)
    require_equal(order[-1], "a2", f"last of {order}")
    require_equal(sorted(order), ["a1", "a2", "b1"], "all are graded")


def test_delete_and_resubmit(options):
    """A deleted job leaves nothing behind, and the same key can be submitted again at once."""
    _, native = started(options)
    for key, group in [("a1", "user.1"), ("b1", "user.2"), ("a2", "user.1"), ("c1", "user.3")]:
        submit(native, key, group)
    require_equal(native.cancel(QUEUE, "a2"), b"cancelled", "delete")
    require_equal(native.stats(QUEUE)["pending"], 3, "jobs")
    require_equal(native.cancel(QUEUE, "a2"), b"gone", "delete it again")
    answer = submit(native, "a2", "user.1", b"second try")
    require_equal(answer["result"], b"added", "resubmitted")
    order = native.drain(QUEUE)
    # The student has two places, and the resubmission is the newest.
    require_equal(sorted(order), ["a1", "a2", "b1", "c1"], "all are graded, once")
    require(order.index("a2") < order.index("a1"), f"newest first in {order}")


def test_a_worker_gives_its_job_back(options):
    """A worker that shuts down gives its job back: it is the next one, as if never taken."""
    _, native = started(options)
    for key, group in [("a1", "user.1"), ("b1", "user.2"), ("a2", "user.1")]:
        submit(native, key, group)
    job = native.pop(QUEUE)
    submit(native, "a3", "user.1")
    require_equal(native.nack(QUEUE, job, "SILENT")["state"], b"pending", "given back")
    again = native.pop(QUEUE)
    require_equal((again["id"], again["attempt"]), (b"a2", 1), "next")
    expect_error("STALELEASE", native.ack, QUEUE, job)
    native.ack(QUEUE, again)
    require_equal(native.drain(QUEUE), ["b1", "a3", "a1"], "the rest")


def test_names_with_dots_and_any_bytes(options):
    """Keys and collations are bytes: dots, blanks, zeros and UTF-8 do not confuse anything."""
    _, native = started(options)
    names = [b"team.7.1699999", b"a.b..c.", b"x\x00y", b"line\r\nbreak", "schlüssel".encode(),
             b"=/+", b"immediate.k"]
    native.config(QUEUE, "GROUP", "team.*", "SET", "max_active", 1)
    for name, group in zip(names, itertools.cycle([b"team.7", b"team.7.1", b"user.7"])):
        require_equal(submit(native, name, group, name)["id"], name, "id")
    require_equal(native.get(QUEUE, b"x\x00y", "WITH", "payload")["payload"], b"x\x00y", "payload")
    require_equal(native.cancel(QUEUE, b"a.b..c."), b"cancelled", "by its name")
    popped = native.pop_many(QUEUE, "COUNT", 10)
    # One each of the two teams, and both of the user.
    require_equal(len(popped), 4, "admitted under the caps of the groups")
    for job in popped:
        require_equal(job["payload"], job["id"], "payload")
        native.ack(QUEUE, job)
    require_equal(len(native.drain(QUEUE)), 2, "the rest")


def test_stacks_and_places_survive_a_restart(options):
    """What the stacks hold, what was moved and what was updated is there after a kill."""
    server, native = started(options, DISK)
    for key, group in [("a1", "user.1"), ("b1", "user.2"), ("a2", "user.1"), ("b2", "user.2"),
                       ("c1", "user.3")]:
        submit(native, key, group)
    native.move(QUEUE, "c1", "PRI", 0, "FRONT")
    native.move(QUEUE, "b1", "BACK")
    taken = native.pop(QUEUE)
    require_equal(taken["id"], b"c1", "first")
    before = [native.get(QUEUE, key)["position"] for key in ("a1", "a2", "b1", "b2")]
    native.close()
    server.kill()
    server.start()
    native = Native(server)
    after = [native.get(QUEUE, key)["position"] for key in ("a1", "a2", "b1", "b2")]
    require_equal(after, before, "positions")
    native.nack(QUEUE, taken, "SILENT")
    order = native.drain(QUEUE)
    require_equal((order[0], order[-1]), ("c1", "b1"), f"ends of {order}")


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))

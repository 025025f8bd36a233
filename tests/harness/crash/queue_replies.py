"""The forms of pops and adds, and what their replies must show."""

from harness.crash.queue_story import TERMINAL, pairs

BRIEF_FIELDS = ("queue", "id", "lease", "attempt", "payload", "lease_ms")
ASKED_FIELDS = ("tags", "progress", "error", "group", "need_results")


def pop_form(rng):
    """Options of a pop: BRIEF or not, and some fields."""
    words = ["BRIEF"] if rng.random() < 0.4 else []
    for field in rng.sample(ASKED_FIELDS, rng.choice((0, 0, 1, 2))):
        words += ["WITH", field]
    return words


def _is_result(value):
    return value.startswith(b"r") and value[1:].isdigit()


def _shown(words, job):
    """The fields of a job in the reply to a pop with these words."""
    asked = {words[at + 1] for at, word in enumerate(words) if word == "WITH"}
    if "BRIEF" in words:
        assert len(job) == len(BRIEF_FIELDS) + bool(asked)
        shown = dict(zip(BRIEF_FIELDS, job))
        more = pairs(job[-1]) if asked else {}
        assert set(more) == asked | ({"truncated"} if "need_results" in asked else set())
        return {**shown, **more}
    shown = pairs(job)
    assert asked <= set(shown)
    return shown


def popped_jobs(queue, words, reply):
    """{id: lease} of the reply to a pop with these words; what else it shows must fit."""
    jobs = {}
    for job in reply or ():
        shown = _shown(words, job)
        job_id = shown["id"]
        assert shown["queue"].decode() == queue and shown["attempt"] >= 1
        if "group" in shown:
            assert shown["group"] == job_id.split(b":")[1]
        if "need_results" in shown:
            results = shown["need_results"][1::2]
            assert all(value is None or _is_result(value) for value in results)
            assert not shown["truncated"]
        jobs[job_id] = shown["lease"]
    return jobs


def ended_state(job_id, job):
    """In which state Q.ADD ... WAIT has shown the job as ended; None: it has not."""
    if job is None:   # the queue had another name for a moment
        return None
    shown = pairs(job)
    state = shown["state"].decode()
    assert shown["id"] == job_id
    assert _is_result(shown["result"]) if state == "completed" else shown["result"] is None
    return state if state in TERMINAL else None

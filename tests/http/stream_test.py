#!/usr/bin/python3
"""The stream of one job: its state, place, progress, log and end, and how it is resumed; and
POST …/jobs with wait_ms, which waits for the end."""

import json
import random
import sys
import threading
import time

from harness import require, require_equal, run
from harness.http_client import TIMEOUT_S, Client, Stream, quoted, require_problem, serve
from harness.native_queue import DISK

QUEUE = "/api/v1/queues/q"
JOBS = QUEUE + "/jobs"
# They rested for seven times as long as they had waited, here 20 s.
SCRIPT_REST_S = 10


def add(client, name, **others):
    return client.expect(201, "POST", JOBS, {"id": name, "payload": "p", **others}).json


def pop(client, **others):
    job, = client.expect(200, "POST", QUEUE + ":pop", {"worker": "w", **others}).json["jobs"]
    return job


def touch(client, job, **members):
    client.expect(200, "POST", f"{JOBS}/{quoted(job['id'])}:touch",
                  {"lease": job["lease"], **members})


def ack(client, job, result=""):
    client.expect(200, "POST", f"{JOBS}/{quoted(job['id'])}:ack",
                  {"lease": job["lease"], "result": result})


class Followed:
    """A stream of one job; keeps what it has told."""

    def __init__(self, server, name="j", last_id=None, query=""):
        self.stream = Stream(server, f"{JOBS}/{quoted(name)}/stream{query}", last_id=last_id)
        self.last_id = last_id
        self.log = ""

    def until(self, wanted):
        """The data of the next event of this type. Others are passed over, logs are kept."""
        while True:
            event = self.stream.next()
            self.last_id = event.get("id", self.last_id)
            data = json.loads(event["data"])
            if event["event"] == "log":
                require_equal(data["next"] - data["offset"], len(data["text"]), "the offsets")
                self.log += data["text"]
            if event["event"] == wanted:
                return data
            require(event["event"] not in ("end", "problem"), f"{event} instead of {wanted}")

    def close(self):
        self.stream.close()

    def has_ended(self):
        return self.stream.response.read() == b""


def test_a_job_from_its_place_to_its_result(options):
    """One stream has everything about a job, and ends with it."""
    server = serve(options)
    with Client(server) as client:
        add(client, "first")
        add(client, "j")
        stream = Followed(server)
        state = stream.until("state")
        require_equal((state["id"], state["state"]), ("j", "pending"))
        require("position" not in state and "result" not in state, str(state))
        place = stream.until("position")
        require_equal((place["position"], place["why"]), (1, "behind 1"))
        pop(client)
        require_equal(stream.until("position")["position"], 0)
        job = pop(client)
        require_equal(stream.until("state")["state"], "active")
        touch(client, job, progress="half", log="line 1\n")
        require_equal(stream.until("progress")["progress"], "half")
        stream.until("log")
        touch(client, job, log="line 2\n")
        stream.until("log")
        touch(client, job, log="line 3\n")
        ack(client, job, "done")
        end = stream.until("end")
        require_equal((end["state"], end["result"], end["progress"]),
                      ("completed", "done", "half"))
        require_equal(stream.log, "line 1\nline 2\nline 3\n")
        require(stream.has_ended(), "there is more")
        # One that has ended before is told at once.
        again = Followed(server)
        require_equal(again.until("end")["result"], "done")
        require_equal(again.log, stream.log)
        again.close()


def test_a_stream_is_resumed(options):
    """After Last-Event-ID come the log and the progress from there on, and the state as it is."""
    server = serve(options)
    with Client(server) as client:
        add(client, "j", retry=3, backoff=[0, 0])
        job = pop(client)
        stream = Followed(server)
        for number in range(40):
            touch(client, job, progress=str(number), log=f"<{number}>")
            if number % 10 == 5:
                stream.until("log")
                stream.close()
                log = stream.log
                touch(client, job, log=f"[{number}]")
                stream = Followed(server, last_id=stream.last_id)
                stream.log = log
                stream.until("state")
        # The next run of the job continues its log.
        client.expect(200, "POST", JOBS + "/j:nack", {"lease": job["lease"]})
        job = pop(client)
        touch(client, job, log="again")
        ack(client, job)
        require_equal(stream.until("end")["state"], "completed")
        stream.close()
        written = "".join(f"<{number}>" + f"[{number}]" * (number % 10 == 5)
                          for number in range(40)) + "again"
        require_equal(stream.log, written, "every byte of the log, once")


def read_some(stream, chance):
    """Reads on from a random place to another: nothing, a part of an event, or whole ones."""
    what = chance.randrange(4)
    if what == 1:
        stream.stream.response.read(chance.randrange(1, 60))
    elif what > 1:
        stream.until("state" if what == 2 else "log")


def test_resumed_at_a_hundred_places(options):
    """Cut at 100 random places, while the server is killed now and then, a stream has each byte."""
    seed = random.randrange(1 << 30)
    chance = random.Random(seed)
    server = serve(options, DISK)
    client = Client(server)
    add(client, "j", lease_ms=600000)
    job = pop(client)
    written, log, last_id = "", "", None
    for cut in range(100):
        stream = Followed(server, last_id=last_id)
        for _ in range(chance.randrange(1, 4)):
            text = f"<{cut}" + "-" * chance.randrange(30) + ">"
            touch(client, job, log=text)
            written += text
        read_some(stream, chance)
        stream.close()
        last_id, log = stream.last_id, log + stream.log
        require(written.startswith(log), f"seed {seed}, cut {cut}: {log!r}")
        if chance.random() < 0.1:
            client.connection.close()
            server.kill()
            server.start()
            client = Client(server)
    stream = Followed(server, last_id=last_id)
    ack(client, job, "done")
    require_equal(stream.until("end")["result"], "done")
    require_equal(log + stream.log, written, f"the log, seed {seed}")
    stream.close()
    client.connection.close()


def test_after_a_long_script(options):
    """a stream that has waited for a script is as quick as before"""
    server = serve(options, {"io-threads": "2"})
    with server.connect() as connection, Client(server) as client:
        add(client, "j")
        job = pop(client)
        followed = [Followed(server) for _ in range(4)]  # on both threads
        for stream in followed:
            require_equal(stream.until("state")["state"], "active", "the job")
        script = """local began = redis.call('TIME')[1]
                    repeat redis.call('EXISTS', KEYS[1])
                    until redis.call('TIME')[1] - began > 3"""
        connection.call("EVAL", script, 1, "q")
        began = time.monotonic()
        for part in ("first", "second"):
            touch(client, job, log=part)
            for stream in followed:
                stream.until("log")
        require(time.monotonic() - began < SCRIPT_REST_S, "the streams rest")
        for stream in followed:
            stream.close()
    server.close()


def test_progress_of_a_second(options):
    """The first comes at once, then the last of each second."""
    server = serve(options)
    with Client(server) as client:
        add(client, "j")
        job = pop(client)
        stream = Followed(server)
        stream.until("state")
        told = []
        began = time.monotonic()
        for number in range(30):
            touch(client, job, progress=str(number))
            time.sleep(0.05)
        while not told or told[-1] != "29":
            told.append(stream.until("progress")["progress"])
        require(len(told) <= 2 + (time.monotonic() - began), f"{told}")
        stream.close()


def test_places_of_a_second(options):
    """While the job waits its place is told at most four times a second, and at last the last."""
    server = serve(options)
    with Client(server) as client, server.connect() as connection:
        for number in range(60):
            connection.call("Q.ADD", "q", f"before-{number}", "x")
        add(client, "j")
        stream = Followed(server)
        stream.until("state")
        began = time.monotonic()
        for number in range(60):
            _, job_id, lease, *_ = connection.call("Q.POP", 1, "q", "BRIEF").value[0]
            connection.call("Q.ACK", "q", job_id, lease)
            time.sleep(0.02)
        places = []
        while not places or places[-1]["position"] != 0:
            places.append(stream.until("position"))
        require(len(places) <= 2 + 4 * (time.monotonic() - began), f"{places}")
        order = [place["position"] for place in places]
        require_equal((order[0], order), (60, sorted(order, reverse=True)))
        require(places[0].keys() == {"position", "eta_ms", "why"}, f"{places[0]}")
        stream.close()


def test_the_beginning_of_a_long_progress(options):
    """With progress_bytes so much of it is sent, and a page of a list has room for all jobs."""
    server = serve(options, {"http-max-body": "2mb"})
    with Client(server) as client:
        for number in range(12):
            add(client, f"j{number}")
        for job in client.expect(200, "POST", QUEUE + ":pop", {"count": 12}).json["jobs"]:
            touch(client, job, progress="0123456789" * 50_000)

        def listed(query):
            return client.get(f"{JOBS}?state=active{query}").json["jobs"]

        require(len(listed("")) < 12, "a page of a list is larger than 4 MB")
        for bytes_, expected in ((0, None), (4, "0123")):
            query = f"progress_bytes={bytes_}"
            require_equal([job["progress"] for job in listed("&" + query)], [expected] * 12)
            require_equal(client.get(f"{JOBS}/j0?{query}").json["progress"], expected)
            stream = Followed(server, "j0", query="?" + query)
            require_equal(stream.until("state")["progress"], expected)
            stream.close()
        require_equal(len(client.get(f"{JOBS}/j0?progress_bytes=9999999").json["progress"]),
                      500_000)
        for bad in ("-1", "x"):
            require_problem(client.get(f"{JOBS}?progress_bytes={bad}"), 422, "BADFIELD")
            require_problem(client.get(f"{JOBS}/j0?progress_bytes={bad}"), 422, "BADFIELD")
        require_equal(server.connect().call("Q.GET", "q", "j0", "PROGRESS", "-1").raw,
                      b"-BADFIELD field=progress\r\n")


def test_what_is_not_kept(options):
    """The end is told by its event if the job is not there any more."""
    server = serve(options)
    with Client(server) as client:
        client.expect(200, "PATCH", QUEUE + "?create=true", {"retain_completed": 0})
        add(client, "j")
        stream = Followed(server)
        stream.until("state")
        job = pop(client)
        require_equal(stream.until("state")["state"], "active")
        ack(client, job, "done")
        end = stream.until("end")
        require_equal((end["state"], end["lease"]), ("completed", job["lease"]))
        require(stream.has_ended(), "there is more")


def test_a_successor_is_another_job(options):
    """The stream ends with the job that it followed."""
    server = serve(options)
    with Client(server) as client:
        add(client, "j")
        job = pop(client)
        stream = Followed(server)
        stream.until("state")
        client.expect(200, "POST", JOBS, {"id": "j", "payload": "next", "ifdup": "update"})
        touch(client, job, log="old")
        stream.until("log")
        ack(client, job)
        require_equal(stream.until("end")["state"], "completed")
        after = Followed(server, last_id=stream.last_id)
        require_equal(after.until("state")["state"], "pending")
        job = pop(client)
        touch(client, job, log="of the next one")
        after.until("log")
        require_equal(after.log, "of the next one", "a log that has begun anew")
        after.close()


def resumed_log(server, name, last_id):
    """The first piece of the log after this place."""
    stream = Followed(server, name, last_id=last_id)
    require_equal(stream.stream.next()["event"], "state", "the first event")
    piece = stream.until("log")
    stream.close()
    return piece["offset"], piece["text"]


def fail_after_ten_bytes(server, client, name, mode):
    """Returns the place of a stream that has read them."""
    job = pop(client)
    stream = Followed(server, name)
    touch(client, job, log="A" * 10)
    stream.until("log")
    stream.close()
    client.expect(200, "POST", f"{JOBS}/{name}:nack", {"lease": job["lease"], "mode": mode})
    return stream.last_id


def test_a_log_that_has_begun_anew(options):
    """After Q.RETRY, or with another job of its id, a resumed stream has it from its start, even if
    it is longer than the place by now."""
    server = serve(options)
    with Client(server) as client:
        for name in "retried", "replaced":
            add(client, name)
            before = fail_after_ten_bytes(server, client, name, "fatal")
            stream = Followed(server, name, last_id=before)
            require_equal(stream.until("end")["state"], "failed")
            behind = stream.last_id
            if name == "replaced":
                client.expect(200, "POST", JOBS + ":purge", {"where": {"all": True}})
                add(client, name)
            else:
                client.expect(200, "POST", f"{JOBS}/{name}:retry")
            touch(client, pop(client), log="B" * 20)
            require_equal(resumed_log(server, name, behind), (0, "B" * 20), name)
            # The end that lies between ends the stream, at a place before the new log.
            stream = Followed(server, name, last_id=before)
            require_equal(stream.until("end")["state"], "failed")
            require_equal((stream.log, resumed_log(server, name, stream.last_id)),
                          ("", (0, "B" * 20)), name)


def test_a_log_that_continues(options):
    """After a failed run that is retried a resumed stream continues it, behind many events too."""
    server = serve(options)
    with Client(server) as client:
        add(client, "j", retry=1, backoff=[0, 0])
        place = fail_after_ten_bytes(server, client, "j", "fail")
        for step in range(250):
            client.expect(200, "PATCH", JOBS + "/j", {"pri": ("HIGH", "LOW")[step % 2]})
        touch(client, pop(client), log="B" * 20)
        require_equal(resumed_log(server, "j", place), (10, "B" * 20))


def test_what_ends_a_stream_early(options):
    """A queue that is deleted; what is refused at the beginning."""
    server = serve(options)
    with Client(server) as client, server.connect() as connection:
        require_problem(client.get(JOBS + "/j/stream"), 404, "NOJOB")
        add(client, "j")
        for wrong in ("x", "1", "1:", ":1", "-1:0", "1:-1", "1:2:3", "1:9007199254740992"):
            answer = client.get(JOBS + "/j/stream", headers={"Last-Event-ID": wrong})
            require_problem(answer, 422, "BADFIELD")
        stream = Followed(server)
        stream.until("state")
        connection.call("DEL", "q")
        require(stream.until("problem")["code"] == "QUEUEGONE", "another problem")
        require(stream.has_ended(), "there is more")
        connection.call("SET", "q", "x")
        require_problem(client.get(JOBS + "/j/stream"), 409, "WRONGTYPE")


def test_bytes_that_are_no_text(options):
    """They come as base64; an id may be any bytes."""
    server = serve(options)
    with Client(server) as client, server.connect() as connection:
        connection.call("Q.ADD", "q", b"\xff/", "x")
        lease = pop(client)["lease"]
        stream = Stream(server, JOBS + "/%FF%2F/stream")
        require_equal(json.loads(stream.next()["data"])["id_base64"], "/y8=")
        connection.call("Q.TOUCH", "q", b"\xff/", lease, "LOG", b"\xff\n")
        event = stream.next()
        require_equal((event["event"], json.loads(event["data"])),
                      ("log", {"offset": 0, "next": 2, "text": None, "text_base64": "/wo="}))
        stream.close()


def test_an_add_waits_for_the_end(options):
    """wait_ms: the response has the job at its end, or as it stands; refusals come at once."""
    server = serve(options)

    def work(result):
        with Client(server) as client:
            body = {"worker": "w", "wait_ms": 30000}
            job, = client.expect(200, "POST", QUEUE + ":pop", body).json["jobs"]
            ack(client, job, result)

    with Client(server) as client:
        worker = threading.Thread(target=work, args=("42",))
        worker.start()
        shown = add(client, "a", wait_ms=30000)
        worker.join(TIMEOUT_S)
        require_equal((shown["id"], shown["result"], shown["state"]), ("a", "added", "pending"))
        require_equal((shown["job"]["state"], shown["job"]["result"]), ("completed", "42"))
        shown = add(client, "b", wait_ms=1)
        require_equal(shown["job"]["state"], "pending", "the time is over")
        kept = {"id": "b", "payload": "p", "ifdup": "keep", "wait_ms": 1}
        require_equal(client.expect(200, "POST", JOBS, kept).json["result"], "kept")
        require_problem(client.post(JOBS, {"id": "b", "payload": "p", "wait_ms": 30000}), 409,
                        "DUPLICATE")
        refused = client.post(JOBS, {"payload": "p", "wait_ms": 60001})
        require_equal(require_problem(refused, 422, "BADFIELD")["field"], "wait_ms")
        lines = client.expect(200, "POST", JOBS, [{"payload": "p", "wait_ms": 1}]).json["jobs"]
        require_equal(lines[0]["error"]["field"], "wait_ms", "not in an array")


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))

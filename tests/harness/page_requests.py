"""What the live page asks the server while it shows a queue with all panels in view: the requests
of page/src/queue.ts and its panels, for bench/observed. tests/page compares them with the page."""

import json
import urllib.parse

QUEUE = "/api/v1/queues/{queue}"
# A look, a second after the last one; a slow one is followed by a rest.
LOOK_S = 1.0
LOOK = ("", "/bands?with=wait_buckets")
LANE = "/jobs?state=pending&pri={band}&by=rank&limit=10&progress_bytes=0"
PANELS = ("/jobs?by=dispatch&count=25&progress_bytes=0",
          "/jobs?state=active&by=age&limit=60&progress_bytes=0")
# Asked for less often, by the end of the last answer and by its length.
SELDOM_S = {"/workers": 2.0, "/groups": 3.0}
SELDOM_REST = 20
PAST = "/history?range=hour"
PAST_S = 60.0
# The page as a whole asks for this, so seldom on a server without a group.
GROUP = "/api/v1/group"
GROUP_S = 60.0
EVENTS = "/events"
# With more events a second than this it closes its stream, and opens it again later.
MOST_EVENTS = 2000
REST_S = 3.0


def form(target):
    """A request of the page without what depends on the queue: a path and its parameters."""
    path, _, query = target.partition("?")
    if path.startswith("/api/v1/queues/"):
        path = "/".join([QUEUE] + path.split("/")[5:])
    parameters = urllib.parse.parse_qsl(query, keep_blank_values=True)
    return path, frozenset((name, "" if name == "pri" else value) for name, value in parameters)


def forms():
    """Those of all requests."""
    parts = [*LOOK, LANE, *PANELS, *SELDOM_S, PAST, EVENTS]
    return {form(QUEUE + part) for part in parts} | {form(GROUP)}


class PageRequests:
    """Asks as the page does, one request after the other. `get(path)` returns an answer's body."""

    def __init__(self, queue, get, now):
        self.queue, self.get = QUEUE.replace("{queue}", queue), get
        self.due = dict.fromkeys([LOOK, PAST, GROUP, *SELDOM_S], now())
        self.now = now

    def ask(self, part):
        return self.get(self.queue + part)

    def run(self, news):
        """What is due. `news`: events have come since the last look."""
        began = self.now()
        if began < self.due[LOOK]:
            return False
        _, bands = [self.ask(part) for part in LOOK]
        for band in json.loads(bands)["bands"]:
            if band["pending"]:
                self.ask(LANE.format(band=urllib.parse.quote(band["name"])))
        for part in PANELS:
            self.ask(part)
        self.ask_past()
        took = self.now() - began
        self.due[LOOK] = began + max(LOOK_S, (2 if news else 1.5) * took)
        self.ask_seldom()
        return True

    def ask_past(self):
        if self.now() >= self.due[PAST]:
            self.due[PAST] = self.now() + PAST_S
            self.ask(PAST)
        if self.now() >= self.due[GROUP]:
            self.due[GROUP] = self.now() + GROUP_S
            self.get(GROUP)

    def ask_seldom(self):
        for part, each_s in SELDOM_S.items():
            began = self.now()
            if began < self.due[part]:
                continue
            self.ask(part)
            took = self.now() - began
            self.due[part] = self.now() + max(each_s, SELDOM_REST * took)

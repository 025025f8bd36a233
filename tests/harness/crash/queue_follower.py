"""A connection of the crash tests that hears what happens to jobs as it happens.

It follows some jobs that the clients run, with their progress, or all. What it has heard must be in
the log after a crash: a reply waits until what it shows is durable.
"""

import random

from harness.crash.client import LoadClient, Violation
from harness.crash.model import Error
from harness.crash.queue_story import Story

MOST_FOLLOWED = 3
BLOCK_MS = 20


class QueueFollower(LoadClient):
    def __init__(self, seed, stories, clients):
        super().__init__()
        self.rng = random.Random(f"{seed}/follower")
        self.stories = stories
        self.clients = clients
        self.heard = {name: {} for name in stories}   # hash of an event -> the event
        self.acknowledged = 0

    def _drive(self, link):
        after = dict.fromkeys(self.stories, "$")
        while not self._stop.is_set():
            queue = self.rng.choice(list(self.stories))
            [events] = link.ask(self._words(queue, after[queue]))
            self.acknowledged += 1
            if isinstance(events, Error):
                if not events.text.startswith("TRIMMED"):   # it may have new numbers
                    raise Violation(f"{queue}: events behind {after[queue]} answered {events!r}")
                after[queue] = "$"
                continue
            for event in events or ():
                after[queue] = event[0]
                if event[2] != b"none":
                    self.heard[queue][Story.hash_of(*event[1:])] = event

    def _words(self, queue, after):
        words = ["Q.EVENTS", queue, after, "BLOCK", BLOCK_MS]
        held = [job_id for client in self.clients for job_id in list(client.held[queue])]
        for job_id in self.rng.sample(held, min(len(held), self.rng.randrange(MOST_FOLLOWED + 1))):
            words += ["ID", job_id]
        return words

    def verify(self):
        """The stories have read on."""
        for queue, heard in self.heard.items():
            for event in heard.keys() - self.stories[queue].fresh_hashes:
                raise Violation(f"{queue}: {heard[event]} was told, and is not in the log")
            heard.clear()

"""Clients of two native queues, and what their queues must show after a crash.

The test starts and joins `clients`, each time at the server's port. `verify`, while none of them
runs, reads the event logs on, compares all that the server shows with them, and with what each
client was told (queue_story.py, queue_client.py). Used by one thread.
"""

import contextlib
import random

from harness.crash.client import Link, Violation
from harness.crash.queue_client import QueueClient
from harness.crash.queue_follower import QueueFollower
from harness.crash.queue_story import Story

CAPS = {"queue": 6, "g": 4, "k": 3}
RETAINED = 200
EVENTS = 12000   # more than a round brings, less than a run does: older ones go


class QueueWitness:
    def __init__(self, connections, seed):
        self.rng = random.Random(f"{seed}/witness")
        self.stories = {name: Story(name, CAPS, RETAINED, EVENTS) for name in ("one", "two")}
        self.workers = [QueueClient(index, seed, self.stories) for index in range(connections)]
        self.followers = [QueueFollower(seed, self.stories, self.workers)] if connections else []
        self.clients = self.workers + self.followers

    def prepare(self, port):
        """Once, before the first client starts."""
        usual = ["max_active", CAPS["queue"], "lease_ms", 600000, "crash_limit", 2, "backoff",
                 "10:50", "retain_completed", RETAINED, "retain_failed", RETAINED, "events", EVENTS]
        commands = []
        for name, more in (("one", ["fair", "on"]), ("two", ["order", "lifo:2", "aging_ms", 100])):
            commands += [["Q.CONFIG", name, "SET"] + usual + more,
                         ["Q.CONFIG", name, "GROUP", "g*", "SET", "max_active", CAPS["g"]],
                         ["Q.CONFIG", name, "KEY", "*", "SET", "max_active", CAPS["k"]]]
        with contextlib.closing(Link(port)) as link:
            replies = link.ask(*commands)
        if replies != ["OK"] * len(commands):
            raise Violation(f"the configuration answered {replies}")

    def verify(self, port):
        """Returns how many commands that were in flight have happened, as far as can be told."""
        with contextlib.closing(Link(port)) as link:
            shown = {name: story.check(link) for name, story in self.stories.items()}
            kept = 0
            for follower in self.followers:
                follower.verify()
            for client in self.workers:
                kept += client.verify(shown)
                client.verify_setting(link)
                client.verify_logs(link, shown)
                client.repeat_lost_pop(link)
            # What timers add from here on counts for the next time.
            for story in self.stories.values():
                story.forget_fresh()
                story.check_results(link, self.rng)
            self._verify_older_events(link)
        return kept

    def _verify_older_events(self, link):
        for story in self.stories.values():
            if self.rng.random() < 0.25:
                story.check_log(link)
            else:
                story.check_page(link, self.rng)
            if self.rng.random() < 0.05:
                story.squeeze(link, self.rng.choice((1, 600, 3000)))

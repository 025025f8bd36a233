#!/usr/bin/python3
"""Kills the server with SIGKILL while connections work on native queues, as kill_test.py does.

    tests/crash/queue_kill_test.py                   80 kills, the modes always, everysec and no
    tests/crash/queue_kill_test.py --kills 5000 --mode always

After each restart the event log of each queue is read on and played (queue_story.py): it has no
gap, no admission passed a cap, tokens grow. What it tells is compared with every job of Q.LIST,
and a recount of them with every gauge and total of Q.STATS. Events that were told before are told
again as they were, and as many as should be kept. Every connection then knows (queue_client.py)
what was acknowledged to it and is there, that units over two queues are whole, that a lost pop
asked for again gives the same jobs, that rules and progress are those that it set, and that a log
has every byte that it has written, once.
"""

import sys

from harness.crash.client import Link, Violation
from harness.crash.kills import CONNECTIONS, KillRun, main
from harness.crash.queue_client import QueueClient
from harness.crash.queue_story import Story

CAPS = {"queue": 6, "g": 4, "k": 3}
RETAINED = 200
EVENTS = 12000   # more than a round brings, less than a run does: older ones go


class QueueKillRun(KillRun):
    def make_clients(self, seed):
        self.stories = {name: Story(name, CAPS, RETAINED, EVENTS) for name in ("one", "two")}
        return [QueueClient(index, seed, self.stories) for index in range(CONNECTIONS)]

    def prepare(self):
        usual = ["max_active", CAPS["queue"], "lease_ms", 600000, "crash_limit", 2, "backoff",
                 "10:50", "retain_completed", RETAINED, "retain_failed", RETAINED, "events", EVENTS]
        commands = []
        for name, more in (("one", ["fair", "on"]), ("two", ["order", "lifo:2", "aging_ms", 100])):
            commands += [["Q.CONFIG", name, "SET"] + usual + more,
                         ["Q.CONFIG", name, "GROUP", "g*", "SET", "max_active", CAPS["g"]],
                         ["Q.CONFIG", name, "KEY", "*", "SET", "max_active", CAPS["k"]]]
        link = Link(self.server.port)
        replies = link.ask(*commands)
        link.close()
        if replies != ["OK"] * len(commands):
            raise Violation(f"the configuration answered {replies}")

    def verify(self):
        link = Link(self.server.port)
        try:
            shown = {name: story.check(link) for name, story in self.stories.items()}
            for client in self.clients:
                self.counts["in flight kept"] += client.verify(shown)
                client.verify_setting(link)
                client.verify_logs(link, shown)
                client.repeat_lost_pop(link)
            # What timers add from here on counts for the next time.
            for story in self.stories.values():
                story.fresh.clear()
            self._verify_older_events(link)
        finally:
            link.close()

    def _verify_older_events(self, link):
        for story in self.stories.values():
            if self.rng.random() < 0.25:
                story.check_log(link)
            else:
                story.check_page(link, self.rng)
            if self.rng.random() < 0.05:
                story.squeeze(link, self.rng.choice((1, 600, 3000)))


if __name__ == "__main__":
    sys.exit(main(QueueKillRun, __doc__, 80))

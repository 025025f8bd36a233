#!/usr/bin/python3
"""Kills the server with SIGKILL while connections work on native queues, as kill_test.py does.

    tests/crash/queue_kill_test.py                   80 kills, the modes always, everysec and no
    tests/crash/queue_kill_test.py --kills 5000 --mode always

After each restart the event log of each queue is read on and played (queue_story.py): it has no
gap, no admission passed a cap, tokens grow. What it tells is compared with every job of Q.LIST,
and a recount of them with every gauge and total of Q.STATS. Events that were told before are told
again as they were, and as many as should be kept. Every connection then knows (queue_client.py)
what was acknowledged to it and is there, that units over two queues are whole, that a lost pop
asked for again gives the same jobs, that rules, results and progress are those that it set, that
what Q.ADD ... WAIT showed has happened, that all runs of a lost worker have ended or none, and that
a log has every byte that it has written, once. Events that a client heard as they came are in the
log (queue_follower.py).
"""

import sys

from harness.crash.kills import CONNECTIONS, KillRun, main
from harness.crash.queue_witness import QueueWitness


class QueueKillRun(KillRun):
    def make_clients(self, seed):
        self.witness = QueueWitness(CONNECTIONS, seed)
        return self.witness.clients

    def prepare(self):
        self.witness.prepare(self.server.port)

    def verify(self):
        self.counts["in flight kept"] += self.witness.verify(self.server.port)


if __name__ == "__main__":
    sys.exit(main(QueueKillRun, __doc__, 80))

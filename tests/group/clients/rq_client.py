"""Enqueues jobs for rq's workers in the same folder until it is enough."""

import sys

import redis.sentinel
import rq
from until_enough import GROUP, SENTINELS, begin, run_jobs

FAILURES = (redis.RedisError, OSError)
SETTINGS = {"socket_timeout": 0.5}


def count(number):
    with open("runs", "a", encoding="utf-8") as runs:
        runs.write(f"{number}\n")


def main():
    # rq 1.13 pops a job before it says that it was started: such a one is lost with Redis too.
    on_their_way = int(sys.argv[1])
    client = redis.sentinel.Sentinel(SENTINELS, **SETTINGS).master_for(GROUP, **SETTINGS)
    jobs = rq.Queue("work", connection=client)
    begin()
    run_jobs(lambda n: jobs.enqueue("rq_client.count", n), on_their_way, FAILURES, pause_s=0.03,
             rest_s=1.0, is_idle=lambda: not jobs.get_job_ids())


if __name__ == "__main__":
    main()

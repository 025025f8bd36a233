"""Sends tasks to a worker of celery_app in the same folder until it is enough."""

import sys

import celery_app
import kombu
import redis
from until_enough import begin, run_jobs

FAILURES = (redis.RedisError, kombu.exceptions.OperationalError, OSError)

# Celery takes a task off the list before it notes that it holds it: one that was on its way at a
# kill is lost with Redis too.
begin()
run_jobs(celery_app.count.delay, int(sys.argv[1]), FAILURES, pause_s=0.01, rest_s=2.0)

"""The task that Celery's worker runs, with its broker by Sentinel. A run is a line in the file
`runs` of the worker's folder: what was done is known whatever becomes of the server."""

from celery import Celery
from until_enough import GROUP, SENTINELS

URL = ";".join(f"sentinel://{host}:{port}" for host, port in SENTINELS)
app = Celery("celery_app", broker=URL)
app.conf.update(
    task_acks_late=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=1,
    broker_transport_options={"master_name": GROUP, "visibility_timeout": 1,
                              "unacked_restore_limit": 100, "unacked_mutex_expire": 1,
                              "socket_timeout": 2.0},
    broker_connection_max_retries=None,
)


@app.task
def count(number):
    with open("runs", "a", encoding="utf-8") as runs:
        runs.write(f"{number}\n")

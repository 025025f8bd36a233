"""Runs what app.py submits."""

from sluice import Worker, WorkerJob


def find(job: WorkerJob) -> dict[str, int]:
    below = job.payload["below"]
    composite = bytearray(below)
    count = 0
    for number in range(2, below):
        if number % 100_000 == 0:
            job.check()  # raises if the run was cancelled
            job.progress(number * 100 // below)
        if not composite[number]:
            count += 1
            composite[number * number::number] = b"\1" * len(range(number * number, below, number))
    return {"primes": count}


if __name__ == "__main__":
    Worker("primes", find, concurrency=2, processes=True).run()

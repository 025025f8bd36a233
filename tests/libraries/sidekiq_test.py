#!/usr/bin/python3
"""Sidekiq of Debian: jobs of every kind, the server killed in the middle."""

import sys

from harness import libraries, need_program, scratch

RUBY = libraries.HERE / "ruby"


def test_sidekiq(options):
    """Sidekiq: bulk, schedule, retries, sets, statistics, the server killed in the middle."""
    ruby = need_program("ruby")
    libraries.need_file("/usr/bin/sidekiq", "ruby-sidekiq")
    with libraries.server(options) as running, scratch() as folder:
        worker = libraries.Program(
            ["/usr/bin/sidekiq", "--require", RUBY / "jobs.rb", "--concurrency", 5, "--queue",
             "default,2", "--queue", "low"], running.port, folder)
        with worker:
            libraries.play([ruby, RUBY / "sidekiq_scenario.rb"], running, folder)
            worker.end(gently=True)


if __name__ == "__main__":
    libraries.run(sys.modules[__name__])

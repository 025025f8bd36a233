#!/usr/bin/python3
"""Sidekiq of Debian: jobs of every kind, the server killed in the middle."""

import sys

import play

RUBY = play.HERE / "ruby"


def test_sidekiq(options):
    """Sidekiq: bulk, schedule, retries, sets, statistics, the server killed in the middle."""
    ruby = play.need_program("ruby")
    play.need_file("/usr/bin/sidekiq", "ruby-sidekiq")
    with play.server(options) as running, play.scratch() as folder:
        worker = play.Program(
            ["/usr/bin/sidekiq", "--require", RUBY / "jobs.rb", "--concurrency", 5, "--queue",
             "default,2", "--queue", "low"], running.port, folder)
        with worker:
            play.play([ruby, RUBY / "sidekiq_scenario.rb"], running, folder)
            worker.end(gently=True)


if __name__ == "__main__":
    play.run(sys.modules[__name__])

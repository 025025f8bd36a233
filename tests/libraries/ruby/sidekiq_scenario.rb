# frozen_string_literal: true

# What Sidekiq's users do, against a sidekiq of jobs.rb in the same folder. The server dies in the
# middle.

require "sidekiq/api"
require_relative "jobs"
require_relative "scenario"

def runs
  File.exist?("runs") ? File.readlines("runs", chomp: true) : []
end

def jobs_of_every_kind
  Count.perform_async(1, "grüße")
  Count.perform_bulk((2..101).map { |n| [n] })
  Count.set(queue: "low").perform_async(102)
  began = now_s
  Count.perform_in(1, 103)
  wait_until("every run") { (1..103).all? { |n| runs.any? { |line| line.split[0] == n.to_s } } }
  holds(now_s - began >= 1, "the scheduled job ran early")
  holds(runs.include?("1 7"), "the text came back changed")
  stats = Sidekiq::Stats.new
  equal([stats.failed, stats.enqueued], [0, 0])
  wait_until("the statistics") { Sidekiq::Stats.new.processed == 103 }
end

def sets_of_jobs
  Second.perform_async(File.expand_path("marker"))
  wait_until("the second try") { runs.include?("mended") }
  Hopeless.perform_async
  later = Count.perform_in(3600, 104)
  wait_until("the failure's count") { Sidekiq::Stats.new.failed == 2 }
  scheduled = Sidekiq::ScheduledSet.new
  equal([scheduled.size, scheduled.find_job(later).args], [1, [104]])
  holds(scheduled.find_job(later).delete, "the scheduled job was not deleted")
  equal(scheduled.size, 0)
  wait_until("a process") { Sidekiq::ProcessSet.new.size == 1 }
  Sidekiq::Queue.all.each { |queue| equal(queue.size, 0) }
end

def add(*arguments)
  insist { Count.perform_async(*arguments) }
end

# Debian's Sidekiq takes a job off its list before it runs it: what a worker was just being handed at
# a kill is lost with Redis too, a job for each of its threads at most.
def kill
  killed = nil
  300.times do |n|
    add(1000 + n)
    next unless n == 150

    # Due once the server is back: Sidekiq loses what it is just moving to its list, too.
    Count.perform_in(4, 2000)
    killed = killing_server
  end
  killed.join
  ran = -> { runs.map { |line| line.split[0] } }
  missing = -> { (1000...1300).map(&:to_s) - ran.call }
  wait_until("the runs but for those on their way") { missing.call.size <= 5 }
  missing.call.each { |n| add(n.to_i) }
  wait_until("every run") { missing.call.empty? }
  wait_until("the scheduled job's run") { ran.call.include?("2000") }
  # What was added again may run twice.
  wait_until("an empty queue") { insist { Sidekiq::Queue.new.size }.zero? }
end

play(:jobs_of_every_kind, :sets_of_jobs, :kill)

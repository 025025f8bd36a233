# frozen_string_literal: true

# Adds jobs for a sidekiq of sidekiq_jobs.rb in the same folder until it is enough.

require_relative "sidekiq_jobs"

def runs
  File.exist?("runs") ? File.readlines("runs", chomp: true).map(&:to_i) : []
end

# Debian's Sidekiq takes a job off its list before it runs it: one whose reply was lost is lost with
# Redis too, one for each of its threads at most.
on_their_way = Integer(ARGV[0])
repeated = 0
count = each_until_enough do |n|
  repeated += insist { Count.perform_async(n) }
  sleep 0.002
end
missing = -> { (0...count).to_a - runs }
wait_until("the runs but for those on their way") { missing.call.size <= on_their_way }
sleep 1
again = missing.call
again.each { |n| repeated += insist { Count.perform_async(n) } }
wait_until("every run") { missing.call.empty? }
tell(count, repeated + again.size, runs.size - count)

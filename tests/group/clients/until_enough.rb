# frozen_string_literal: true

# What the programs in Ruby share: where the Sentinels are, and work until the test says that it is
# enough.

$stdout.sync = true
SENTINELS = ENV.fetch("SENTINELS").split.map { |port| { host: "127.0.0.1", port: Integer(port) } }
BY_SENTINEL = { url: "redis://mymaster", sentinels: SENTINELS, role: :master }.freeze
PATIENCE_S = 60

def now_s
  Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

# Yields numbers until it is enough; returns how many.
def each_until_enough
  listener = Thread.new { $stdin.gets }
  puts "begun"
  count = 0
  while listener.alive?
    yield count
    count += 1
  end
  count
end

# Repeats the block until it succeeds; returns how often it failed.
def insist
  deadline = now_s + PATIENCE_S
  failed = 0
  begin
    yield
    failed
  rescue Redis::BaseError, SystemCallError
    raise if now_s > deadline

    failed += 1
    sleep 0.02
    retry
  end
end

def wait_until(what)
  deadline = now_s + PATIENCE_S
  until yield
    raise "#{what} did not come about" if now_s > deadline

    sleep 0.02
  end
end

def tell(acknowledged, repeated, twice)
  puts "acknowledged #{acknowledged} repeated #{repeated} twice #{twice}"
  puts "all of it holds"
end

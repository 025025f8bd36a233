# frozen_string_literal: true

# What the scenarios in Ruby share: checks, and the kill of the server.

$stdout.sync = true
PATIENCE_S = 60
PORT = Integer(ENV.fetch("SLUICE_PORT"))
URL = "redis://127.0.0.1:#{PORT}"

def now_s
  Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

def holds(condition, what)
  raise what unless condition
end

def equal(got, expected)
  raise "got #{got.inspect}, expected #{expected.inspect}" unless got == expected
end

def wait_until(what)
  deadline = now_s + PATIENCE_S
  until (got = yield)
    raise "#{what} did not come about" if now_s > deadline

    sleep 0.01
  end
  got
end

# Tries again until it succeeds: for a caller to whom a lost connection says nothing.
def insist
  deadline = now_s + PATIENCE_S
  begin
    yield
  rescue Redis::BaseConnectionError, Redis::CommandError => e
    loading = e.message.start_with?("LOADING ")
    raise if now_s > deadline || (e.is_a?(Redis::CommandError) && !loading)

    sleep 0.02
    retry
  end
end

# On a thread, to be joined: the caller continues with its work.
def killing_server
  Thread.new do
    puts "kill"
    equal($stdin.gets, "restarted\n")
  end
end

def play(*parts)
  parts.each do |part|
    began = now_s
    send(part)
    puts format("%<part>s, %<took>.1f s", part: part, took: now_s - began)
  end
  puts "all of it holds"
end

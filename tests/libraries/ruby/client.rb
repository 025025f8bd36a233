# frozen_string_literal: true

# redis-rb as its users use it. The server dies in the middle.

require "redis"
require_relative "scenario"

def one
  @one ||= Redis.new(url: URL)
end

def values
  bytes = (0..255).to_a.pack("C*")
  one.set("bytes", bytes, px: 60_000)
  equal(one.get("bytes").b, bytes)
  large = "grüße\0" * 200_000
  one.set("large", large)
  holds(one.get("large") == large, "a large value came back changed")
  one.mapped_hmset("map", { "a" => 1, "b" => "zwei" })
  equal(one.hgetall("map"), { "a" => "1", "b" => "zwei" })
  one.zadd("scores", [[1.5, "a"], [Float::INFINITY, "b"]])
  equal(one.zrange("scores", 0, -1, with_scores: true), [["a", 1.5], ["b", Float::INFINITY]])
  begin
    one.incr("map")
    raise "INCR of a hash"
  rescue Redis::CommandError => e
    holds(e.message.start_with?("WRONGTYPE "), e.message)
  end
  equal(one.info("server")["tcp_port"], PORT.to_s)
end

def units_and_scans
  one.set("n", 1)
  equal(one.pipelined { |unit| unit.incr("n"); unit.get("n") }, [2, "2"])
  equal(one.multi { |unit| unit.incr("n"); unit.get("n") }, [3, "3"])
  one.watch("n") do
    Redis.new(url: URL).incr("n")
    equal(one.multi { |unit| unit.set("n", 0) }, nil)
  end
  equal(one.eval("return {KEYS[1], redis.call('INCRBY', KEYS[1], ARGV[1])}", ["n"], [10]), ["n", 14])
  500.times { |n| one.set("scan:#{n}", n) }
  equal(one.scan_each(match: "scan:*", count: 50).to_a.uniq.size, 500)
end

def messages_and_waits
  heard = Queue.new
  listener = Thread.new do
    Redis.new(url: URL).subscribe("news") do |on|
      on.subscribe { heard << :ready }
      on.message { |_, text| heard << text; Thread.exit }
    end
  end
  heard.pop
  equal(one.publish("news", "hello"), 1)
  equal(heard.pop, "hello")
  listener.join
  waiting = Thread.new { Redis.new(url: URL).blpop("l1", "l2") }
  wait_until("the wait") { one.info("clients")["blocked_clients"] == "1" }
  one.rpush("l2", "x")
  equal(waiting.value, %w[l2 x])
  id = one.xadd("stream", { "f" => "v" })
  one.xgroup(:create, "stream", "group", "0")
  equal(one.xreadgroup("group", "me", "stream", ">"), { "stream" => [[id, { "f" => "v" }]] })
  equal(one.xack("stream", "group", id), 1)
end

# What was acknowledged is there; what was under way may be or not, and nothing comes twice.
def kill
  writer = Redis.new(url: URL, reconnect_attempts: 0)
  written = []
  unknown = 0
  killed = nil
  (0..).each do |n|
    break if n >= 600 && unknown.positive?  # It continues until it has seen the kill.

    begin
      writer.multi { |unit| unit.incr("counter"); unit.rpush("log", n) }
      written << n
    rescue Redis::BaseConnectionError, Redis::CommandError
      unknown += 1
      insist { writer.ping }
    end
    killed = killing_server if n == 300
  end
  killed.join
  count = insist { one.get("counter") }.to_i
  log = one.lrange("log", 0, -1).map(&:to_i)
  holds(count.between?(written.size, written.size + unknown),
        "#{written.size} acknowledged, #{unknown} unknown, #{count} counted")
  equal([log.size, log.uniq.size, written - log], [count, count, []])
end

play(:values, :units_and_scans, :messages_and_waits, :kill)

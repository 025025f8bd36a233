# frozen_string_literal: true

# redis-rb by Sentinel: writes until it is enough.

require "redis"
require_relative "until_enough"

client = Redis.new(**BY_SENTINEL, timeout: 0.5, reconnect_attempts: 0)
repeated = 0
count = each_until_enough { |n| repeated += insist { client.rpush("log", n) } }
log = client.lrange("log", 0, -1).map(&:to_i)
lost = (0...count).to_a - log
raise "lost: #{lost.first(10)}" unless lost.empty?

tell(count, repeated, log.size - count)

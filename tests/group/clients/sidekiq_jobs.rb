# frozen_string_literal: true

# What Sidekiq runs. A run is a line in the file `runs` of its folder: what was done is known
# whatever becomes of the server.

require "sidekiq"
require_relative "until_enough"

Redis.silence_deprecations = true  # Sidekiq 6.4 calls redis-rb 4.8 as one did before.
Sidekiq.configure_client { |config| config.redis = { **BY_SENTINEL, size: 3 } }
Sidekiq.configure_server { |config| config.redis = BY_SENTINEL.dup }

class Count
  include Sidekiq::Worker

  def perform(number)
    File.open("runs", "a") { |file| file.syswrite("#{number}\n") }
  end
end

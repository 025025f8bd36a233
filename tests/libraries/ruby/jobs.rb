# frozen_string_literal: true

# What Sidekiq runs. A run is a line in the file `runs` of its folder: what was done is known
# whatever becomes of the server.

require "sidekiq"

Redis.silence_deprecations = true  # Sidekiq 6.4 calls redis-rb 4.8 as one did before.
url = "redis://127.0.0.1:#{Integer(ENV.fetch("SLUICE_PORT"))}"
Sidekiq.configure_client { |config| config.redis = { url: url, size: 3 } }
Sidekiq.configure_server do |config|
  config.redis = { url: url }
  config.options[:poll_interval_average] = 1
end

def note(word)
  File.open("runs", "a") { |file| file.syswrite("#{word}\n") }
end

class Count
  include Sidekiq::Worker
  sidekiq_options retry: 5

  def perform(number, text = "")
    note("#{number} #{text.bytesize}")
  end
end

# Fails at first; the next try comes at once.
class Second
  include Sidekiq::Worker
  sidekiq_options retry: 3
  sidekiq_retry_in { 1 }

  def perform(marker)
    return note("mended") if File.exist?(marker)

    File.write(marker, "")
    raise "not yet"
  end
end

class Hopeless
  include Sidekiq::Worker
  sidekiq_options retry: 0

  def perform
    raise "broken"
  end
end

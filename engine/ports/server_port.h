// ServerPort: what commands need from the process around the engine: configuration, connections,
// checkpoints, shutdown. The server implements it (net/), and so does a small class for tests.
//
// Functions may be called from any I/O thread; under shard locks only where noted, so
// implementations must not lock shards themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/status.h"

namespace sluice {

class ClientPort;
class GroupPort;
class PersistencePort;
struct Client;

// Text of INFO: "# Section\r\nfield:value\r\n...".
class InfoWriter {
 public:
  void section(Bytes title);
  void field(Bytes name, Bytes value);
  void field(Bytes name, int64_t value);
  void field(Bytes name, uint64_t value);
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

// Facts of one connection, for CLIENT LIST; a snapshot.
struct ClientFacts {
  uint64_t id = 0;
  std::string address;
  std::string local_address;
  std::string name;
  std::string user;
  std::string library_name;
  std::string library_version;
  std::string command;
  std::string flags;
  int fd = -1;
  int database = 0;
  int protocol = 2;
  int multi = -1;
  int64_t redirect = -1;  // where invalidations go; 0: to itself, -1: no tracking
  size_t subscriptions = 0;
  size_t pattern_subscriptions = 0;
  size_t shard_subscriptions = 0;
  int64_t age_s = 0;
  int64_t idle_s = 0;
  size_t query_buffer_bytes = 0;
  size_t query_buffer_free_bytes = 0;
  size_t argument_bytes = 0;
  size_t multi_bytes = 0;  // queued commands that wait for EXEC
  size_t output_bytes = 0;
  size_t output_buffer_bytes = 0;
  size_t output_list_length = 0;
  size_t output_list_bytes = 0;
  size_t total_bytes = 0;
  bool is_pubsub = false;
  bool is_self = false;
};

// In the order of redis.LOG_DEBUG and so on, which are 0 to 3.
enum class ScriptLogLevel : uint8_t { kDebug, kVerbose, kNotice, kWarning };

enum class ShutdownMode { kDefault, kSave, kNoSave };

class ServerPort {
 public:
  virtual ~ServerPort() = default;

  // The fields of one INFO section ("server", "clients", "memory", "persistence", "stats", ...)
  // that only the server knows.
  virtual void info(Bytes section, InfoWriter& out) = 0;

  // CONFIG. Here and below, a Status that is not OK is a refusal().
  virtual std::vector<std::pair<std::string, std::string>> config_get(
      const std::vector<std::string>& patterns) = 0;
  virtual Status config_set(const std::vector<std::pair<std::string, std::string>>& parameters) = 0;
  virtual Status config_rewrite() = 0;
  // Whether values of this parameter must not be shown (SLOWLOG).
  virtual bool is_secret(Bytes /*parameter*/) const { return false; }
  // ACL LOAD and ACL SAVE.
  virtual Status load_users() = 0;
  virtual Status save_users() = 0;
  virtual void reset_stats() = 0;

  virtual std::vector<ClientFacts> clients(const Client& asking) = 0;
  // Facts of the calling thread's own connection, as it is now.
  virtual ClientFacts client(const Client& asking) = 0;
  // Closes the connections for which `matches` holds and returns their number. `asking` itself is
  // closed after its reply.
  virtual size_t kill_clients(Client& asking,
                              const std::function<bool(const ClientFacts&)>& matches) = 0;
  // Unblocks another connection, as by a time-out or with -UNBLOCKED. Returns false if it is not
  // blocked.
  virtual bool unblock_client(uint64_t id, bool with_error) = 0;

  // The connection with this id, or null.
  virtual std::shared_ptr<ClientPort> client_port(uint64_t) { return nullptr; }
  // CLIENT PAUSE has begun or ended: waiting requests are checked again.
  virtual void pause_changed() {}
  // Scripts or libraries have been flushed: each I/O thread drops its compiled ones.
  virtual void scripts_flushed() {}
  // Rules of users have changed, or users were deleted: open requests and connections elsewhere are
  // checked again.
  virtual void users_changed() {}

  // The store's side of the process; null: there is no store.
  virtual PersistencePort* persistence() { return nullptr; }
  // The group of this process; null: it is alone (`journal local`).
  virtual GroupPort* group() { return nullptr; }
  // Requests a checkpoint, and waits for its end.
  virtual Status checkpoint() = 0;
  virtual int64_t last_checkpoint_s() = 0;
  // Begins the shutdown of the process.
  virtual Status shutdown(ShutdownMode mode, bool now, bool force, bool abort) = 0;

  // The wall clock, for times that people and programs see. It may be stepped both ways, by years.
  virtual int64_t unix_time_us() = 0;
  // The steady clock, since some moment before the process began, for durations.
  virtual int64_t steady_time_us() = 0;
  virtual void sleep_ms(int64_t duration_ms) = 0;
  // Bytes in use in the process's allocator.
  virtual uint64_t used_memory_bytes() = 0;
  // Returns the allocator's free pages to the system. False if that failed.
  virtual bool purge_memory() = 0;
  // The allocator's own report, or an empty text if it has none.
  virtual std::string allocator_report() = 0;
  // Lets the calling I/O thread serve its sockets from inside a script that runs for too long.
  virtual void poll_events() = 0;
  virtual void log_warning(const std::string& message) = 0;
  // redis.log(): shown if `loglevel` says so.
  virtual void log_script(ScriptLogLevel /*level*/, const std::string& /*line*/) {}
};

}  // namespace sluice

// EngineClient: a client of the engine inside the server, like a Session without a socket. It runs
// commands through the Execution of its I/O thread with the rights of its user, and may wait in
// blocking commands.
//
// Threads: belongs to one I/O thread for life. Other threads only hold its port, which may outlive
// it: replies that arrive too late are dropped. Call close() before destruction.
//
// Replies may report changes that are not durable yet: before passing them to the outside, wait
// until gate() is durable (JournalGate::when_durable).
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "engine/clients/client.h"
#include "engine/keyspace/entry.h"
#include "net/io/asio_types.h"
#include "net/resp/resp_value.h"

namespace sluice {

class Execution;
class IoThread;

class EngineClient {
 public:
  using Then = std::function<void(RespValue reply)>;

  EngineClient(IoThread& thread, std::string address);
  ~EngineClient();
  EngineClient(const EngineClient&) = delete;
  EngineClient& operator=(const EngineClient&) = delete;

  // Sets the user and the database of the next commands.
  void speak_for(std::shared_ptr<User> user, int database);

  // Runs a command that does not block. REQUIRES: the data is loaded, and no command is waiting.
  RespValue run(std::span<const Bytes> arguments);
  // The same if the key holds a value of this type at that moment; otherwise returns null.
  RespValue run_if(Type type, Bytes key, std::span<const Bytes> arguments);
  // Calls `commands`, which may call run() and run_if() a few times: nobody else changes the data
  // from the first to the last of them.
  void run_together(const std::function<void()>& commands);
  // Runs a command that may block. `then` receives the reply, at once or later, or null when the
  // command times out. Not called after close().
  void run_waiting(std::span<const Bytes> arguments, Then then);

  // Whether a command is further up the stack: while it waits for a script, the thread serves its
  // sockets. This object must exist, and may not be closed, until the command has returned.
  bool executing() const { return executing_; }

  // The error that every command about data is answered with now, as clients are paused or this
  // node of a group may not answer; null: such commands run.
  std::optional<RespValue> refusal_of_data();

  // Whether the user may still run the command that is waiting. True if none is waiting.
  bool may_wait() const;
  // Whether a command waits that has changed nothing so far, and will not reply by itself now.
  bool only_waits() const;
  // Lets the waiting command reply now, as when its time is over. REQUIRES: !only_waits().
  void hurry();
  // Cancels the waiting command: `then` is not called, even if the command has just been served.
  void stop_waiting();

  // The lsn up to which the journal must be durable before the replies so far may be sent.
  Lsn gate() const { return gate_; }
  // Raises the gate for data that was read without a command.
  void raise_gate(Lsn gate) { gate_ = std::max(gate_, gate); }
  IoThread& thread() { return thread_; }
  // Ends a waiting command, and the connection's state such as tied leases.
  void close();

 private:
  class Port;

  // The condition under which the command runs.
  struct Condition {
    Bytes key;
    Type type;
  };
  RespValue execute(std::span<const Bytes> arguments, const Condition* condition = nullptr);
  void finish(Execution& execution);
  std::optional<RespValue> refusal_of_pause() const;
  RespValue refuse_at_gate() const;
  void begin_waiting();
  void on_timeout();
  void take_reply(Bytes bytes, Lsn gate);
  void finish_waiting(RespValue reply);

  IoThread& thread_;
  // Shared with a departure that has to wait for a script.
  std::shared_ptr<Client> client_;
  std::shared_ptr<Port> port_;
  SteadyTimer timer_;
  uint64_t waits_ = 0;  // identifies the wait that a timer belongs to
  Then then_;
  Lsn gate_ = 0;
  bool executing_ = false;
  bool together_ = false;  // in run_together()
  bool closed_ = false;
};

}  // namespace sluice

// EngineClient: a client of the engine inside the server, as a Session is without a socket: it runs
// commands through the Execution of its I/O thread, with the rights of the user that it speaks for,
// and may wait in blocking ones.
//
// Threads: belongs to one I/O thread for life. Other threads know only its port, which may outlive
// it: a reply that comes too late is dropped. close() before the end.
//
// Replies report what may not be durable yet: whoever tells the outside of them waits until gate()
// is (JournalGate::when_durable).
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "engine/clients/client.h"
#include "engine/keyspace/entry.h"
#include "net/io/asio_types.h"
#include "net/resp/resp_value.h"

namespace sluice {

class IoThread;

class EngineClient {
 public:
  using Then = std::function<void(RespValue reply)>;

  EngineClient(IoThread& thread, std::string address);
  ~EngineClient();
  EngineClient(const EngineClient&) = delete;
  EngineClient& operator=(const EngineClient&) = delete;

  // For whom the next commands run, and in which database.
  void speak_for(std::shared_ptr<User> user, int database);

  // Runs a command that does not block. REQUIRES: the data is loaded, nothing waits.
  RespValue run(std::span<const Bytes> arguments);
  // The same if the key holds a value of this type at that moment; else the reply is null.
  RespValue run_if(Type type, Bytes key, std::span<const Bytes> arguments);
  // Runs one that may: `then` gets the reply, at once or later, null when the time of the command
  // is over. Not called after close().
  void run_waiting(std::span<const Bytes> arguments, Then then);

  // Whether whom it speaks for may still run what it waits in. True where nothing waits.
  bool may_wait() const;
  // Gives up what it waits in: `then` is not called. Somebody who has been served meanwhile is not
  // told of it.
  void stop_waiting();

  // Up to where the journal must be durable before the replies so far may be told.
  Lsn gate() const { return gate_; }
  // What was read in another way than by a command is to be told, too.
  void raise_gate(Lsn gate) { gate_ = std::max(gate_, gate); }
  IoThread& thread() { return thread_; }
  // Ends a waiting, and what hangs on the connection: tied leases.
  void close();

 private:
  class Port;

  // What it takes for the command to run at all.
  struct Condition {
    Bytes key;
    Type type;
  };
  RespValue execute(std::span<const Bytes> arguments, const Condition* condition = nullptr);
  RespValue refuse_paused() const;
  void begin_waiting();
  void on_timeout();
  void take_reply(Bytes bytes, Lsn gate);
  void finish_waiting(RespValue reply);

  IoThread& thread_;
  // Shared with a departure that has to wait for a script.
  std::shared_ptr<Client> client_;
  std::shared_ptr<Port> port_;
  SteadyTimer timer_;
  uint64_t waits_ = 0;  // which of them a timer is for
  Then then_;
  Lsn gate_ = 0;
  bool closed_ = false;
};

}  // namespace sluice

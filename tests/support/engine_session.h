// EngineSession: one connection to an engine in this process; takes a request and returns RESP
// bytes. Used by one thread.
#pragma once

#include <atomic>
#include <initializer_list>
#include <string>
#include <vector>

#include "engine/access/acl.h"
#include "engine/execution/engine.h"
#include "engine/execution/execution.h"

namespace sluice::test {

class EngineSession {
 public:
  EngineSession(Engine& engine, Execution& execution) : execution_(execution) {
    client.id = next_id();
    client.user = engine.acl().default_user();
  }
  ~EngineSession() {
    execution_.disconnect(client);
    execution_.finish();
  }
  EngineSession(const EngineSession&) = delete;
  EngineSession& operator=(const EngineSession&) = delete;

  std::string run(std::span<const Bytes> args) {
    std::string reply = run_unfinished(args);
    execution_.finish();
    return reply;
  }
  std::string run(std::initializer_list<Bytes> args) {
    return run(std::span<const Bytes>(args.begin(), args.size()));
  }
  // As within a batch: the locks are kept.
  std::string run_unfinished(std::span<const Bytes> args) {
    ByteBuffer out;
    RespReply reply(out, client.protocol);
    execution_.execute(client, Request(args), reply);
    return std::string(out.view());
  }
  // EVAL with keys and arguments.
  std::string eval(Bytes script, std::vector<Bytes> keys = {}, std::vector<Bytes> arguments = {}) {
    const std::string count = std::to_string(keys.size());
    std::vector<Bytes> args{"EVAL", script, count};
    args.insert(args.end(), keys.begin(), keys.end());
    args.insert(args.end(), arguments.begin(), arguments.end());
    return run(args);
  }

  Client client;

 private:
  static uint64_t next_id() {
    static std::atomic<uint64_t> last{0};
    return ++last;
  }

  Execution& execution_;
};

}  // namespace sluice::test

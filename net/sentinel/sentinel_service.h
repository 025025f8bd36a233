// SentinelService: the connections of `sentinel-port`. They run on I/O thread 0 and not as
// sessions: they touch no data, so neither a full journal nor a pause of the clients holds them up.
//
// A client that sends more than a Sentinel's client needs, or does not read, is disconnected.
// Threads: I/O thread 0, which owns it as a guest. The group publishes no view after the I/O
// threads have ended.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>

#include "net/io/io_thread.h"
#include "net/io/session_port.h"
#include "net/sentinel/sentinel_commands.h"

namespace sluice {

class SentinelConnection;

class SentinelService final : public IoThreadGuest {
 public:
  // Further connections are refused.
  static constexpr size_t kMaxConnections = 1000;

  // `group` must outlive this object.
  SentinelService(IoThread& thread, GroupPort& group, SentinelOptions options);
  ~SentinelService() override;

  // Follows the group from now on, and publishes +switch-master.
  void start();
  // Ends the oldest connection, one that has not subscribed first, if there are kMaxConnections.
  void make_room();
  // Takes ownership of a connected, non-blocking socket.
  void adopt(int fd, const Endpoints& endpoints);

  void begin_stop() override { close_all(); }
  void close_all() override;

  IoThread& thread() { return thread_; }
  SentinelCommands& commands() { return commands_; }
  void forget(const std::shared_ptr<SentinelConnection>& connection);

 private:
  void publish(const std::string& channel, const std::string& message);

  IoThread& thread_;
  GroupPort& group_;
  SentinelCommands commands_;
  std::set<std::shared_ptr<SentinelConnection>> connections_;
  bool stopped_ = false;
};

}  // namespace sluice

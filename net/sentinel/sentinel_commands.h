// SentinelCommands: what clients of Redis Sentinel ask, answered from the view of the group, in the
// shapes of `redis-server --sentinel` 7.0.15. It monitors nothing: the journal in etcd decides.
//
// - A view older than kTrustedViewMs names nobody: GET-MASTER-ADDR-BY-NAME is null, and the flags
//   of MASTERS say that the primary is down, so that clients ask the next node.
// - SENTINELS names a node for a minute more after it has gone, as one that restarts does:
//   node-redis forgets a Sentinel that is not named, and for ever once it knows no other one.
// - Reading needs no password, as with Sentinel's own configuration. FAILOVER needs a user who may
//   run the command FAILOVER.
//
// Threads: one at a time; the group may be changed by others meanwhile.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/clients/client.h"
#include "engine/execution/engine.h"
#include "engine/ports/group_port.h"
#include "engine/reply/reply.h"

namespace sluice {

struct SentinelOptions {
  std::string name = "mymaster";  // under which clients ask for the group
  int64_t failover_timeout_ms = 1000;
};

class SentinelCommands {
 public:
  using Args = std::span<const Bytes>;

  // All arguments must outlive this object.
  SentinelCommands(Engine& engine, GroupPort& group, SentinelOptions options)
      : engine_(engine), group_(group), options_(std::move(options)) {}

  // Runs one request and writes its replies. Of `client` it uses the user, the protocol, the names
  // and the subscriptions, which are not those of engine/clients/pubsub.h.
  void run(Client& client, Args args, RespReply& reply);
  // Writes the message, if the client has subscribed to the channel by name or by pattern.
  static void publish(const Client& client, Bytes channel, Bytes message, RespReply& reply);

  // Call it with each view: of the other nodes SENTINELS knows those that were noted.
  void note(const GroupView& view, int64_t now_ms);

  const std::string& name() const { return options_.name; }

 private:
  using Handler = void (SentinelCommands::*)(Client&, Args, RespReply&);
  struct Row {
    const char* name;
    int arity;  // with the name itself; negative: at least
    Handler handler;
    bool for_subscribers = false;  // also while a client of RESP2 is subscribed
  };
  using Fields = std::vector<std::pair<std::string, std::string>>;
  static const Row kRows[];
  static const Row kSubcommands[];

  static std::string unknown(std::span<const Row> rows, Bytes container, Bytes name);
  void dispatch(std::span<const Row> rows, Bytes container, Client& client, Args args,
                RespReply& reply);

  // --- The connection ---
  void ping(Client& client, Args args, RespReply& reply);
  void quit(Client& client, Args args, RespReply& reply);
  void auth(Client& client, Args args, RespReply& reply);
  void hello(Client& client, Args args, RespReply& reply);
  void client_words(Client& client, Args args, RespReply& reply);
  void command(Client& client, Args args, RespReply& reply);
  void info(Client& client, Args args, RespReply& reply);
  void role(Client& client, Args args, RespReply& reply);
  void subscribe(Client& client, Args args, RespReply& reply);
  void psubscribe(Client& client, Args args, RespReply& reply);
  void unsubscribe(Client& client, Args args, RespReply& reply);
  void punsubscribe(Client& client, Args args, RespReply& reply);
  // False: the error is replied.
  static bool set_name(Client& client, Bytes name, RespReply& reply);
  bool log_in(Client& client, Bytes command, Bytes user, Bytes password, RespReply& reply);

  // --- SENTINEL ---
  void sentinel(Client& client, Args args, RespReply& reply);
  void address(Client& client, Args args, RespReply& reply);
  void masters(Client& client, Args args, RespReply& reply);
  void master(Client& client, Args args, RespReply& reply);
  void replicas(Client& client, Args args, RespReply& reply);
  void sentinels(Client& client, Args args, RespReply& reply);
  void quorum(Client& client, Args args, RespReply& reply);
  void my_id(Client& client, Args args, RespReply& reply);
  void is_down(Client& client, Args args, RespReply& reply);
  void failover(Client& client, Args args, RespReply& reply);

  // Replies the error if it is another name.
  bool is_ours(Bytes name, RespReply& reply) const;
  bool is_trusted() const { return group_.view_age_ms() <= kTrustedViewMs; }
  Fields common_fields(const GroupMember& member, bool is_up, const std::string& flags) const;
  Fields master_fields(const GroupView& view) const;
  static void reply_fields(RespReply& reply, const Fields& fields);

  Engine& engine_;
  GroupPort& group_;
  const SentinelOptions options_;
  struct Seen {
    GroupMember member;
    int64_t at_ms;
  };
  std::map<std::string, Seen> seen_;  // other nodes with a sentinel-port, by name
};

// Notes who leads, from view to view. Used by one thread at a time.
class SentinelWatch {
 public:
  explicit SentinelWatch(std::string name) : name_(std::move(name)) {}

  // The message of +switch-master, if another node leads than the last one that led:
  // "mymaster 10.0.0.1 6379 10.0.0.2 6379". Otherwise empty.
  std::string note(const GroupView& view);

 private:
  std::string name_;
  std::string address_;  // "10.0.0.1 6379"
};

}  // namespace sluice

// Commands about the group of servers: nodes, failover.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>

#include "engine/ports/group_port.h"
#include "tools/cli/context.h"
#include "tools/cli/failure.h"
#include "tools/cli/group_view.h"
#include "tools/cli/text.h"

namespace sluice::cli {

namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenLooks(50);
constexpr int64_t kLookMs = 1000;
// Longer than a take-over needs, or etcd for a change.
constexpr std::chrono::seconds kGroupPatience(10);
// After the timeout of a hand-over the primary writes again soon.
constexpr std::chrono::seconds kGivesUp(1);

json read_group(Connection& connection) {
  return group_of_info(connection.call({"INFO", "replication"}).text);
}

json require_group(Connection& connection) {
  json group = read_group(connection);
  if (group.is_null()) {
    throw Failure{kServerError, "the server has no group: its configuration says journal local"};
  }
  return group;
}

// The address of another node, with this client's user and TLS.
Address address_of(const json& member, Address like) {
  like.sentinels.clear();
  like.socket.clear();
  like.host = member.value("host", "");
  like.port = member.value(like.tls == nullptr ? "port" : "tls_port", 0);
  return like;
}

// --- nodes ---

constexpr Option kNodesOptions[] = {
    {"--pause", "MS", "no other node takes over from a failing primary for this time: up to 24h"},
    {"--resume", nullptr, "end the pause"},
};

// Returns when this node has heard of it by way of etcd, as the others do.
void pause_group(Connection& connection, std::optional<int64_t> for_ms) {
  connection.call(for_ms ? Words{"FAILOVER", "PAUSE", std::to_string(*for_ms)}
                         : Words{"FAILOVER", "RESUME"});
  const auto deadline = Clock::now() + kGroupPatience;
  while (Clock::now() < deadline) {
    const int64_t left_ms = require_group(connection).value("paused_ms", int64_t{0});
    // An older pause is another one.
    const int64_t least_ms = for_ms ? *for_ms - kGroupPatience / std::chrono::milliseconds(1) : 0;
    if (for_ms ? left_ms > std::max<int64_t>(0, least_ms) && left_ms <= *for_ms : left_ms == 0) {
      return;
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
  throw Failure{kServerError, "the node has not heard of it within 10 seconds: see sluice nodes"};
}

int run_nodes(Context& context) {
  context.arguments.at_most_one({"--pause", "--resume"});
  context.connection.take_any_node();
  if (context.arguments.has("--pause")) {
    pause_group(context.connection, context.arguments.integer("--pause", 0, 1, kMaxPauseMs));
  } else if (context.arguments.has("--resume")) {
    pause_group(context.connection, std::nullopt);
  }
  const json group = require_group(context.connection);
  if (context.json) {
    print_json(group);
    return kDone;
  }
  for (const std::string& line : group_lines(group)) std::printf("%s\n", printable(line).c_str());
  group_table(group).print(context.screen);
  return kDone;
}

// --- failover ---

constexpr Option kFailoverOptions[] = {
    {"--to", "NODE", "the node that takes over; default: the one with the most of the journal"},
    {"--timeout", "MS", "give up if writes had to wait longer; default: 10s"},
};

const json& require_member(const json& group, const std::string& name) {
  if (const json* const member = find_member(group, name)) return *member;
  std::vector<std::string> names;
  for (const json& member : group["members"]) names.push_back(member.value("name", ""));
  std::string text = "the group has no live node " + name;
  for (const std::string& live : names) text += (&live == names.data() ? ", only " : ", ") + live;
  throw Failure{kUsageError, text, names};
}

// The group as the first node that answers sees it, once somebody leads a later epoch. Writes wait
// for the hand-over for `timeout`; if the old primary leads after it, it has given up.
json wait_for_next(const json& before, const Address& like, std::chrono::milliseconds timeout) {
  const auto begun = Clock::now();
  const auto leads_still = [&before](const json& group) {
    return group.is_object() && group["node"] == before["primary"] && group["role"] == "primary" &&
           group["epoch"] == before["epoch"];
  };
  while (Clock::now() < begun + timeout + kGroupPatience) {
    bool is_over = false;
    for (const json& member : before["members"]) {
      try {
        Connection connection(address_of(member, like));
        connection.set_patience(kLookMs);
        json group = read_group(connection);
        if (group.is_object() && group["primary"].is_string() && group["epoch"] > before["epoch"]) {
          return group;
        }
        is_over |= Clock::now() > begun + timeout + kGivesUp && leads_still(group);
      } catch (const Failure&) {  // it restarts
      }
    }
    if (is_over) {
      throw Failure{kServerError, before["primary"].get<std::string>() +
                                      " leads still: the hand-over was given up after " +
                                      duration_text(timeout.count()) + ", or ended by somebody"};
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
  throw Failure{kServerError, "no node has taken over within " +
                                  duration_text((timeout + kGroupPatience).count()) +
                                  ": see sluice nodes"};
}

int run_failover(Context& context) {
  const json before = require_group(context.connection);
  const int64_t timeout_ms = context.arguments.integer("--timeout", 10'000, 1, INT32_MAX);
  Words words = {"FAILOVER"};
  if (const auto to = context.arguments.value("--to")) {
    if (before["primary"] == *to) throw Failure{kServerError, *to + " leads already"};
    const json& member = require_member(before, *to);
    const int64_t port = member.value("port", 0);
    words.insert(words.end(), {"TO", member.value("host", ""),
                               std::to_string(port != 0 ? port : member.value("tls_port", 0))});
  }
  words.insert(words.end(), {"TIMEOUT", std::to_string(timeout_ms)});
  if (!has_primary(before)) throw Failure{kServerError, "nobody leads the group"};
  const Address& like = context.connection.address();
  Connection primary(address_of(require_member(before, before["primary"]), like));
  // It answers when the standby is near.
  primary.set_patience(timeout_ms + kGroupPatience / std::chrono::milliseconds(1));
  const auto begun = Clock::now();
  primary.call(words);
  const json after = wait_for_next(before, like, std::chrono::milliseconds(timeout_ms));
  const auto took =
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begun).count();
  if (context.json) {
    print_json({{"primary", after["primary"]}, {"epoch", after["epoch"]}, {"took_ms", took}});
  } else {
    std::printf("%s leads after %s\n", after["primary"].get<std::string>().c_str(),
                duration_text(took).c_str());
  }
  return kDone;
}

}  // namespace

std::span<const CommandRow> group_commands() {
  static const CommandRow kRows[] = {
      {"nodes",
       "",
       "show the servers of the group: who leads, and how far the others are",
       "With --sentinel it asks any server of the list if none leads.\n"
       "A pause is for work at machines or at etcd. sluice failover still works, and a server\n"
       "that is stopped still hands over.",
       {kNodesOptions},
       run_nodes,
       "sluice nodes --pause 30m"},
      {"failover",
       "",
       "let another server of the group lead",
       "Nothing that was acknowledged is lost. Writes wait, connections to the old primary close,\n"
       "and it comes back as a standby.",
       {kFailoverOptions},
       run_failover,
       "sluice failover --to n2"},
  };
  return kRows;
}

}  // namespace sluice::cli

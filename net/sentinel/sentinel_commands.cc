#include "net/sentinel/sentinel_commands.h"

#include <algorithm>

#include "engine/access/acl.h"
#include "engine/base/numbers.h"
#include "engine/commands/connection.h"
#include "engine/execution/refusal.h"
#include "engine/table/command.h"
#include "net/process/version.h"

namespace sluice {

namespace {

// How long SENTINEL FAILOVER may hold writes.
constexpr int64_t kHandOverMs = 10'000;
// How long SENTINELS names a node that has gone.
constexpr int64_t kNamedMs = 60'000;

std::string address_of(const GroupMember& member, char between) {
  return member.host + between + std::to_string(member.client_port());
}

int64_t sentinels_of(const GroupView& view) {
  return std::count_if(view.members.begin(), view.members.end(),
                       [](const GroupMember& member) { return member.sentinel_port != 0; });
}

}  // namespace

const SentinelCommands::Row SentinelCommands::kRows[] = {
    {"ping", -1, &SentinelCommands::ping, true},
    {"quit", -1, &SentinelCommands::quit, true},
    {"auth", -2, &SentinelCommands::auth},
    {"hello", -1, &SentinelCommands::hello},
    {"client", -2, &SentinelCommands::client_words},
    {"command", -1, &SentinelCommands::command},
    {"info", -1, &SentinelCommands::info},
    {"role", 1, &SentinelCommands::role},
    {"subscribe", -2, &SentinelCommands::subscribe, true},
    {"psubscribe", -2, &SentinelCommands::psubscribe, true},
    {"unsubscribe", -1, &SentinelCommands::unsubscribe, true},
    {"punsubscribe", -1, &SentinelCommands::punsubscribe, true},
    {"sentinel", -2, &SentinelCommands::sentinel},
};

const SentinelCommands::Row SentinelCommands::kSubcommands[] = {
    {"get-master-addr-by-name", 3, &SentinelCommands::address},
    {"masters", 2, &SentinelCommands::masters},
    {"master", 3, &SentinelCommands::master},
    {"replicas", 3, &SentinelCommands::replicas},
    {"slaves", 3, &SentinelCommands::replicas},
    {"sentinels", 3, &SentinelCommands::sentinels},
    {"ckquorum", 3, &SentinelCommands::quorum},
    {"myid", 2, &SentinelCommands::my_id},
    {"is-master-down-by-addr", 6, &SentinelCommands::is_down},
    {"failover", 3, &SentinelCommands::failover},
};

void SentinelCommands::run(Client& client, Args args, RespReply& reply) {
  dispatch(kRows, "", client, args, reply);
}

void SentinelCommands::sentinel(Client& client, Args args, RespReply& reply) {
  dispatch(kSubcommands, "sentinel", client, args, reply);
}

std::string SentinelCommands::unknown(std::span<const Row> rows, Bytes container, Bytes name) {
  std::string text = container.empty() ? "ERR unknown command '" : "ERR unknown subcommand '";
  text += std::string(name.substr(0, 128)) + "'. This port answers for Redis Sentinel:";
  for (const Row& row : rows) text += ' ' + std::string(row.name);
  return text;
}

// `container`: the command of which these are subcommands; empty: they are commands.
void SentinelCommands::dispatch(std::span<const Row> rows, Bytes container, Client& client,
                                Args args, RespReply& reply) {
  const Bytes name = args[container.empty() ? 0 : 1];
  const auto found = std::find_if(rows.begin(), rows.end(), [name](const Row& row) {
    return equals_ignore_case(row.name, name);
  });
  if (found == rows.end()) return reply.error(unknown(rows, container, name));
  if (!arity_takes(found->arity, args.size())) {
    const std::string full = (container.empty() ? "" : std::string(container) + '|') + found->name;
    return reply.error("ERR wrong number of arguments for '" + full + "' command");
  }
  const bool is_subscriber = client.protocol == 2 && client.subscriptions() != 0;
  if (container.empty() && is_subscriber && !found->for_subscribers) {
    return reply.error(std::string("ERR Can't execute '") + found->name +
                       "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are "
                       "allowed in this context");
  }
  (this->*found->handler)(client, args, reply);
}

// --- The connection ------------------------------------------------------------------------------

void SentinelCommands::ping(Client& client, Args args, RespReply& reply) {
  if (client.protocol == 2 && client.subscriptions() != 0) {
    reply.array(2);
    reply.bulk("pong");
    return reply.bulk(args.size() > 1 ? args[1] : Bytes());
  }
  args.size() > 1 ? reply.bulk(args[1]) : reply.simple("PONG");
}

void SentinelCommands::quit(Client& client, Args, RespReply& reply) {
  client.close_after_reply = true;
  reply.ok();
}

bool SentinelCommands::log_in(Client& client, Bytes command, Bytes user, Bytes password,
                              RespReply& reply) {
  std::shared_ptr<User> found = engine_.acl().authenticate(user, password);
  if (found == nullptr) {
    log_failed_login(engine_, client, command, user);
    reply.error("WRONGPASS invalid username-password pair or user is disabled.");
    return false;
  }
  client.user = std::move(found);
  return true;
}

void SentinelCommands::auth(Client& client, Args args, RespReply& reply) {
  if (args.size() > 3) return reply.error(errors::kSyntax);
  if (args.size() == 2 && engine_.acl().default_user_needs_no_password()) {
    return reply.error(
        "ERR AUTH <password> called without any password configured for the default user. Are you "
        "sure your configuration is correct?");
  }
  if (log_in(client, args[0], args.size() == 2 ? "default" : args[1], args.back(), reply)) {
    reply.ok();
  }
}

bool SentinelCommands::set_name(Client& client, Bytes name, RespReply& reply) {
  if (!is_printable_word(name)) {
    reply.error("ERR Client names cannot contain spaces, newlines or special characters.");
    return false;
  }
  client.name = name;
  return true;
}

void SentinelCommands::hello(Client& client, Args args, RespReply& reply) {
  int64_t protocol = client.protocol;
  if (args.size() > 1) {
    protocol = parse_i64(args[1]).value_or(0);
    if (protocol < 2 || protocol > 3) return reply.error("NOPROTO unsupported protocol version");
  }
  for (size_t at = 2; at < args.size(); ++at) {
    const size_t left = args.size() - at - 1;
    if (equals_ignore_case(args[at], "AUTH") && left >= 2) {
      if (!log_in(client, args[0], args[at + 1], args[at + 2], reply)) return;
      at += 2;
    } else if (equals_ignore_case(args[at], "SETNAME") && left >= 1) {
      if (!set_name(client, args[++at], reply)) return;
    } else {
      return reply.error("ERR Syntax error in HELLO option '" + std::string(args[at]) + "'");
    }
  }
  client.protocol = static_cast<int>(protocol);
  reply.set_protocol(client.protocol);
  reply.map(6);
  reply.bulk("server");
  reply.bulk("redis");
  reply.bulk("version");
  reply.bulk(kRedisVersion);
  reply.bulk("proto");
  reply.integer(protocol);
  reply.bulk("id");
  reply.integer(static_cast<int64_t>(client.id));
  reply.bulk("mode");
  reply.bulk("sentinel");
  reply.bulk("modules");
  reply.array(0);
}

void SentinelCommands::client_words(Client& client, Args args, RespReply& reply) {
  const Bytes word = args[1];
  if (equals_ignore_case(word, "SETNAME") && args.size() == 3) {
    if (set_name(client, args[2], reply)) reply.ok();
    return;
  }
  if (equals_ignore_case(word, "SETINFO") && args.size() == 4) return reply.ok();
  if (equals_ignore_case(word, "GETNAME")) {
    return client.name.empty() ? reply.null() : reply.bulk(client.name);
  }
  if (equals_ignore_case(word, "ID")) return reply.integer(static_cast<int64_t>(client.id));
  reply.error("ERR this port takes CLIENT ID, GETNAME, SETINFO and SETNAME");
}

// Clients ask for tables of commands in order to complete or to check words; there are none.
void SentinelCommands::command(Client&, Args args, RespReply& reply) {
  if (args.size() == 2 && equals_ignore_case(args[1], "COUNT")) {
    return reply.integer(static_cast<int64_t>(std::size(kRows)));
  }
  const bool docs = args.size() > 1 && equals_ignore_case(args[1], "DOCS");
  docs ? reply.map(0) : reply.array(0);
}

void SentinelCommands::info(Client&, Args, RespReply& reply) {
  const auto view = group_.view();
  const GroupMember* const primary = view->primary();
  const bool up = primary != nullptr && is_trusted();
  InfoWriter out;
  out.section("Server");
  out.field("redis_version", kRedisVersion);
  out.field("redis_mode", "sentinel");
  out.field("sluice_version", kSluiceVersion);
  out.section("Sentinel");
  out.field("sentinel_masters", int64_t{1});
  out.field("sentinel_tilt", int64_t{0});
  out.field("sentinel_running_scripts", int64_t{0});
  out.field("sentinel_scripts_queue_length", int64_t{0});
  out.field("sentinel_simulate_failure_flags", int64_t{0});
  out.field("master0", "name=" + options_.name + ",status=" + (up ? "ok" : "odown") +
                           ",address=" + (primary == nullptr ? "" : address_of(*primary, ':')) +
                           ",slaves=" + std::to_string(view->standbys()) +
                           ",sentinels=" + std::to_string(sentinels_of(*view)));
  reply.verbatim("txt", out.take());
}

void SentinelCommands::role(Client&, Args, RespReply& reply) {
  reply.array(2);
  reply.bulk("sentinel");
  reply.array(1);
  reply.bulk(options_.name);
}

namespace {

using Names = std::set<std::string, std::less<>>;

// Nobody needs a password to subscribe.
constexpr size_t kMaxSubscriptions = 100;
constexpr size_t kMaxChannelBytes = 256;

void confirm(Client& client, Bytes kind, const Bytes* name, RespReply& reply) {
  reply.push(3);
  reply.bulk(kind);
  name == nullptr ? reply.null() : reply.bulk(*name);
  reply.integer(static_cast<int64_t>(client.subscriptions()));
}

void add_names(Client& client, Names& names, Bytes kind, SentinelCommands::Args args,
               RespReply& reply) {
  for (const Bytes& name : args.subspan(1)) {
    if (client.subscriptions() >= kMaxSubscriptions || name.size() > kMaxChannelBytes) {
      client.close_after_reply = true;
      return reply.error("ERR at most " + std::to_string(kMaxSubscriptions) +
                         " subscriptions are allowed here, with names of at most " +
                         std::to_string(kMaxChannelBytes) + " bytes");
    }
    names.emplace(name);
    confirm(client, kind, &name, reply);
  }
}

void drop_names(Client& client, Names& names, Bytes kind, SentinelCommands::Args args,
                RespReply& reply) {
  if (args.size() == 1 && names.empty()) return confirm(client, kind, nullptr, reply);
  const Names all = args.size() == 1 ? names : Names(args.begin() + 1, args.end());
  for (const std::string& name : all) {
    names.erase(name);
    const Bytes shown = name;
    confirm(client, kind, &shown, reply);
  }
}

}  // namespace

void SentinelCommands::subscribe(Client& client, Args args, RespReply& reply) {
  add_names(client, client.channels, "subscribe", args, reply);
}

void SentinelCommands::psubscribe(Client& client, Args args, RespReply& reply) {
  add_names(client, client.patterns, "psubscribe", args, reply);
}

void SentinelCommands::unsubscribe(Client& client, Args args, RespReply& reply) {
  drop_names(client, client.channels, "unsubscribe", args, reply);
}

void SentinelCommands::punsubscribe(Client& client, Args args, RespReply& reply) {
  drop_names(client, client.patterns, "punsubscribe", args, reply);
}

void SentinelCommands::publish(const Client& client, Bytes channel, Bytes message,
                               RespReply& reply) {
  if (client.channels.contains(channel)) {
    reply.push(3);
    reply.bulk("message");
    reply.bulk(channel);
    reply.bulk(message);
  }
  for (const std::string& pattern : client.patterns) {
    if (!glob_match(pattern, channel)) continue;
    reply.push(4);
    reply.bulk("pmessage");
    reply.bulk(pattern);
    reply.bulk(channel);
    reply.bulk(message);
  }
}

// --- SENTINEL ------------------------------------------------------------------------------------

bool SentinelCommands::is_ours(Bytes name, RespReply& reply) const {
  if (name == options_.name) return true;
  reply.error("ERR No such master with that name");
  return false;
}

void SentinelCommands::address(Client&, Args args, RespReply& reply) {
  const auto view = group_.view();
  const GroupMember* const primary = view->primary();
  if (args[2] != options_.name || primary == nullptr || !is_trusted()) return reply.null_array();
  reply.array(2);
  reply.bulk(primary->host);
  reply.bulk(std::to_string(primary->client_port()));
}

// The fields that every instance has. Their times are how old the view is.
SentinelCommands::Fields SentinelCommands::common_fields(const GroupMember& member, bool is_up,
                                                         const std::string& flags) const {
  const std::string age = std::to_string(group_.view_age_ms());
  return {{"ip", member.host},
          {"port", std::to_string(member.client_port())},
          {"runid", member.run_id},
          {"flags", (is_up ? "" : "s_down,") + flags},
          {"link-pending-commands", "0"},
          {"link-refcount", "1"},
          {"last-ping-sent", "0"},
          {"last-ok-ping-reply", age},
          {"last-ping-reply", age},
          {"down-after-milliseconds", std::to_string(options_.failover_timeout_ms)}};
}

SentinelCommands::Fields SentinelCommands::master_fields(const GroupView& view) const {
  const GroupMember* const primary = view.primary();
  const bool up = primary != nullptr && is_trusted();
  Fields fields{{"name", options_.name}};
  // node-redis heeds only "s_down", and would connect to the address of nobody for ever.
  const Fields common = common_fields(primary == nullptr ? GroupMember() : *primary, up,
                                      up ? "master" : "o_down,master");
  fields.insert(fields.end(), common.begin(), common.end());
  const Fields rest{
      {"info-refresh", std::to_string(group_.view_age_ms())},
      {"role-reported", "master"},
      {"role-reported-time", "0"},
      {"config-epoch", std::to_string(view.epoch)},
      {"num-slaves", std::to_string(view.standbys())},
      {"num-other-sentinels", std::to_string(std::max<int64_t>(sentinels_of(view) - 1, 0))},
      {"quorum", "1"},
      {"failover-timeout", std::to_string(options_.failover_timeout_ms)},
      {"parallel-syncs", "1"}};
  fields.insert(fields.end(), rest.begin(), rest.end());
  return fields;
}

void SentinelCommands::reply_fields(RespReply& reply, const Fields& fields) {
  reply.map(fields.size());
  for (const auto& [name, value] : fields) {
    reply.bulk(name);
    reply.bulk(value);
  }
}

void SentinelCommands::masters(Client&, Args, RespReply& reply) {
  reply.array(1);
  reply_fields(reply, master_fields(*group_.view()));
}

void SentinelCommands::master(Client&, Args args, RespReply& reply) {
  if (is_ours(args[2], reply)) reply_fields(reply, master_fields(*group_.view()));
}

void SentinelCommands::replicas(Client&, Args args, RespReply& reply) {
  if (!is_ours(args[2], reply)) return;
  const auto view = group_.view();
  const GroupMember* const primary = view->primary();
  reply.array(static_cast<size_t>(view->standbys()));
  for (const GroupMember& member : view->members) {
    if (!view->is_standby(member)) continue;
    Fields fields{{"name", address_of(member, ':')}};
    // Libraries read from no replica that is down: one that is starting answers LOADING.
    const Fields common = common_fields(member, is_trusted() && !member.starting, "slave");
    fields.insert(fields.end(), common.begin(), common.end());
    const Fields rest{
        {"info-refresh", std::to_string(group_.view_age_ms())},
        {"role-reported", "slave"},
        {"role-reported-time", "0"},
        {"master-link-down-time", "0"},
        {"master-link-status", primary == nullptr || member.starting ? "err" : "ok"},
        {"master-host", primary == nullptr ? "?" : primary->host},
        {"master-port", primary == nullptr ? "0" : std::to_string(primary->client_port())},
        {"slave-priority", std::to_string(member.priority)},
        {"slave-repl-offset", std::to_string(member.lsn)},
        {"replica-announced", "1"}};
    fields.insert(fields.end(), rest.begin(), rest.end());
    reply_fields(reply, fields);
  }
}

void SentinelCommands::note(const GroupView& view, int64_t now_ms) {
  for (const GroupMember& member : view.members) {
    if (member.name == view.node) continue;
    seen_.erase(member.name);
    if (member.sentinel_port != 0) seen_.emplace(member.name, Seen{member, now_ms});
  }
  std::erase_if(seen_, [&](const auto& entry) { return now_ms - entry.second.at_ms > kNamedMs; });
}

void SentinelCommands::sentinels(Client&, Args args, RespReply& reply) {
  if (!is_ours(args[2], reply)) return;
  reply.array(seen_.size());
  for (const auto& [node, seen] : seen_) {
    const GroupMember& member = seen.member;
    Fields fields{{"name", member.run_id}};
    Fields common = common_fields(member, is_trusted(), "sentinel");
    common[1].second = std::to_string(member.sentinel_port);
    fields.insert(fields.end(), common.begin(), common.end());
    const Fields rest{{"last-hello-message", std::to_string(group_.view_age_ms())},
                      {"voted-leader", "?"},
                      {"voted-leader-epoch", "0"}};
    fields.insert(fields.end(), rest.begin(), rest.end());
    reply_fields(reply, fields);
  }
}

void SentinelCommands::quorum(Client&, Args args, RespReply& reply) {
  if (!is_ours(args[2], reply)) return;
  if (!is_trusted()) {
    return reply.error("NOQUORUM etcd has not been heard of for " +
                       std::to_string(group_.view_age_ms()) + " ms");
  }
  reply.simple("OK " + std::to_string(sentinels_of(*group_.view())) +
               " usable Sentinels. Quorum and failover authorization can be reached");
}

void SentinelCommands::my_id(Client&, Args, RespReply& reply) {
  const auto view = group_.view();
  const GroupMember* const self = view->self();
  reply.bulk(self == nullptr ? std::string(40, '0') : self->run_id);
}

void SentinelCommands::is_down(Client&, Args args, RespReply& reply) {
  const auto view = group_.view();
  const GroupMember* const primary = view->primary();
  const bool is_primary = primary != nullptr && args[2] == primary->host &&
                          args[3] == std::to_string(primary->client_port());
  reply.array(3);
  reply.integer(is_primary && !is_trusted() ? 1 : 0);
  reply.bulk("*");
  reply.integer(0);
}

void SentinelCommands::failover(Client& client, Args args, RespReply& reply) {
  if (!is_ours(args[2], reply)) return;
  if (client.user == nullptr) return reply.error("NOAUTH Authentication required.");
  const Bytes words[] = {"failover"};
  const Command& failover = *CommandTable::instance().find(words[0]);
  const Denial denial = check_rights(engine_, client, AclLogContext::kTopLevel, failover, words);
  if (denial != Denial::kNone) return reply.error(Acl::refusal(denial, failover));
  const auto view = group_.view();
  const GroupMember* const primary = view->primary();
  if (view->role == GroupRole::kResigning || view->awaits_standby) {
    return reply.error("INPROG Failover already in progress");
  }
  if (!view->leads()) {
    return reply.error("ERR only the primary hands over: ask its Sentinel, " +
                       (primary == nullptr
                            ? "when there is one"
                            : primary->host + ':' + std::to_string(primary->sentinel_port)));
  }
  if (view->standbys() == 0) return reply.error("NOGOODSLAVE No suitable replica to promote");
  const Status status = group_.hand_over("", kHandOverMs, {});
  status.ok() ? reply.ok() : reply.error("NOGOODSLAVE " + status.message());
}

std::string SentinelWatch::note(const GroupView& view) {
  const GroupMember* const primary = view.primary();
  if (primary == nullptr) return {};
  std::string now = address_of(*primary, ' ');
  if (now == address_) return {};
  const std::string before = std::exchange(address_, std::move(now));
  return before.empty() ? std::string() : name_ + ' ' + before + ' ' + address_;
}

}  // namespace sluice

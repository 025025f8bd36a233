// ACL: managing users at run time; engine/access/acl.h holds them.
#include "engine/commands/acl.h"

#include <algorithm>
#include <set>

#include "engine/access/acl.h"
#include "engine/access/acl_log.h"
#include "engine/access/passwords.h"
#include "engine/clients/pubsub.h"
#include "engine/commands/help.h"
#include "engine/execution/call.h"
#include "engine/execution/engine.h"
#include "engine/table/command_names.h"

namespace sluice {

namespace {

constexpr int64_t kDefaultPasswordBits = 256;
constexpr int64_t kMaxPasswordBits = 4096;

// Closes connections with subscriptions that the user may no longer have: permissions are checked
// only when a subscription begins.
void close_forbidden_subscribers(Call& call, Bytes name) {
  const std::shared_ptr<User> user = call.engine.acl().find(name);
  if (user == nullptr) return;
  const auto rules = user->rules();
  if (rules->permissions().all_channels()) return;
  const PubSub& pubsub = call.engine.pubsub();
  std::set<uint64_t> clients;
  using Kind = PubSub::Kind;
  for (const Kind kind : {Kind::kChannel, Kind::kPattern, Kind::kShardChannel}) {
    for (const std::string& channel : pubsub.names(kind, {}, false)) {
      if (rules->may_use_channel(channel, kind == Kind::kPattern)) continue;
      for (const uint64_t id : pubsub.subscriber_ids(kind, channel)) clients.insert(id);
    }
  }
  if (clients.empty()) return;
  call.engine.server().kill_clients(call.client, [&](const ClientFacts& facts) {
    return facts.user == user->name && clients.contains(facts.id);
  });
}

}  // namespace

namespace {

void reply_permissions(Reply& reply, const Permissions& permissions) {
  reply.bulk("commands");
  reply.bulk(permissions.describe_commands());
  reply.bulk("keys");
  reply.bulk(permissions.describe_keys());
  reply.bulk("channels");
  reply.bulk(permissions.describe_channels());
}

}  // namespace

void acl_whoami_command(Call& call) {
  call.client.user == nullptr ? call.reply.null() : call.reply.bulk(call.client.user->name);
}

void acl_users_command(Call& call) {
  const auto users = call.engine.acl().users();
  call.reply.array(users.size());
  for (const auto& user : users) call.reply.bulk(user->name);
}

void acl_list_command(Call& call) {
  const auto users = call.engine.acl().users();
  call.reply.array(users.size());
  for (const auto& user : users) call.reply.bulk(Acl::line_of(*user));
}

void acl_getuser_command(Call& call) {
  const std::shared_ptr<User> user = call.engine.acl().find(call.args[2]);
  if (user == nullptr) return call.reply.null();
  const auto rules = user->rules();
  Reply& reply = call.reply;
  reply.map(6);
  reply.bulk("flags");
  reply.set(1U + (rules->needs_no_password() ? 1U : 0U) +
            (rules->payload_word().empty() ? 0U : 1U));
  reply.bulk(rules->enabled() ? "on" : "off");
  if (rules->needs_no_password()) reply.bulk("nopass");
  if (!rules->payload_word().empty()) reply.bulk(rules->payload_word());
  reply.bulk("passwords");
  reply.array(rules->passwords().size());
  for (const std::string& password : rules->passwords()) reply.bulk(password);
  reply_permissions(reply, rules->permissions());
  reply.bulk("selectors");
  reply.array(rules->selectors().size());
  for (const Permissions& selector : rules->selectors()) {
    reply.map(3);
    reply_permissions(reply, selector);
  }
}

void acl_setuser_command(Call& call) {
  const Status status = call.engine.acl().set_user(call.args[2], call.args.subspan(3));
  if (!status.ok()) return call.reply.error("ERR " + status.message());
  close_forbidden_subscribers(call, call.args[2]);
  call.engine.server().users_changed();
  call.reply.ok();
}

void acl_deluser_command(Call& call) {
  const auto names = call.args.subspan(2);
  for (const Bytes name : names) {
    if (name == "default") return call.reply.error("ERR The 'default' user cannot be removed");
  }
  int64_t deleted = 0;
  for (const Bytes name : names) {
    if (!call.engine.acl().delete_user(name)) continue;
    ++deleted;
    call.engine.server().kill_clients(call.client,
                                      [&](const ClientFacts& facts) { return facts.user == name; });
  }
  if (deleted != 0) call.engine.server().users_changed();
  call.reply.integer(deleted);
}

void acl_cat_command(Call& call) {
  if (call.args.size() > 3) return reply_subcommand_error(call);
  if (call.args.size() == 2) {
    call.reply.array(std::size(kAclCategoryNames));
    for (const FlagName& category : kAclCategoryNames) call.reply.bulk(category.name);
    return;
  }
  const FlagName* category = find_acl_category(call.args[2]);
  if (category == nullptr) {
    return call.reply.error("ERR Unknown category '" + std::string(call.args[2].substr(0, 128)) +
                            "'");
  }
  const size_t mark = call.reply.open_array();
  size_t count = 0;
  for (size_t id = 0; id < CommandTable::instance().id_limit(); ++id) {
    if ((CommandTable::instance().by_id(id).acl & category->flag) == 0) continue;
    call.reply.bulk(CommandTable::full_name(CommandTable::instance().by_id(id)));
    ++count;
  }
  call.reply.close_array(mark, count);
}

void acl_genpass_command(Call& call) {
  int64_t bits = kDefaultPasswordBits;
  if (call.args.size() > 3) return reply_subcommand_error(call);
  if (call.args.size() == 3) {
    if (!call.integer(2, bits)) return;
    if (bits <= 0 || bits > kMaxPasswordBits) {
      return call.reply.error(
          "ERR ACL GENPASS argument must be the number of bits for the output password, a positive "
          "number up to 4096");
    }
  }
  call.reply.bulk(random_hex(static_cast<size_t>((bits + 3) / 4)));
}

// --- Dry runs and the log of refusals ---

void acl_dryrun_command(Call& call) {
  const std::shared_ptr<User> user = call.engine.acl().find(call.args[2]);
  if (user == nullptr) {
    return call.reply.error("ERR User '" + std::string(call.args[2]) + "' not found");
  }
  const auto args = call.args.subspan(3);
  const Command* command = CommandTable::instance().find(args[0]);
  if (command != nullptr && (command->flags & kContainer) != 0 && args.size() > 1) {
    command = CommandTable::find_subcommand(*command, args[1]);
  }
  if (command == nullptr) {
    return call.reply.error("ERR Command '" + std::string(args[0]) + "' not found");
  }
  const std::string name = CommandTable::full_name(*command);
  if (!command->takes(args.size())) {
    return call.reply.error("ERR wrong number of arguments for '" + name + "' command");
  }
  const Verdict verdict = user->rules()->check(*command, args);
  const std::string argument(args[verdict.argument]);
  const std::string begin = "This user has no permissions to ";
  switch (verdict.denial) {
    case Denial::kNone:
      return call.reply.ok();
    case Denial::kCommand:
      return call.reply.bulk(begin + "run the '" + name + "' command");
    case Denial::kKey:
      return call.reply.bulk(begin + "access the '" + argument + "' key");
    case Denial::kChannel:
      return call.reply.bulk(begin + "access the '" + argument + "' channel");
  }
}

namespace {

Bytes context_name(AclLogContext context) {
  switch (context) {
    case AclLogContext::kTopLevel:
      return "toplevel";
    case AclLogContext::kMulti:
      return "multi";
    case AclLogContext::kLua:
      return "lua";
  }
  CHECK(false);
}

}  // namespace

void acl_log_command(Call& call) {
  if (call.args.size() > 3) return reply_subcommand_error(call);
  int64_t count = 10;
  if (call.args.size() == 3) {
    if (call.option(2, "RESET")) {
      call.engine.acl_log().reset();
      return call.reply.ok();
    }
    if (!call.integer(2, count)) return;
  }
  const auto entries =
      call.engine.acl_log().newest(static_cast<size_t>(std::max<int64_t>(count, 0)));
  const int64_t now_ms = call.engine.server().steady_time_us() / 1000;
  call.reply.array(entries.size());
  for (const AclLogEntry& entry : entries) {
    call.reply.map(7);
    call.reply.bulk("count");
    call.reply.integer(static_cast<int64_t>(entry.count));
    call.reply.bulk("reason");
    call.reply.bulk(entry.reason);
    call.reply.bulk("context");
    call.reply.bulk(context_name(entry.context));
    call.reply.bulk("object");
    call.reply.bulk(entry.object);
    call.reply.bulk("username");
    call.reply.bulk(entry.username);
    call.reply.bulk("age-seconds");
    call.reply.number(static_cast<double>(now_ms - entry.at_ms) / 1000);
    call.reply.bulk("client-info");
    call.reply.bulk(entry.client);
  }
}

// --- The file ---

void acl_load_command(Call& call) {
  const Status status = call.engine.server().load_users();
  if (!status.ok()) return call.reply.error(status.message());
  // As in Redis, even those of users that the file does not change.
  call.engine.server().kill_clients(
      call.client, [](const ClientFacts& facts) { return facts.user != "default"; });
  call.engine.server().users_changed();
  call.reply.ok();
}

void acl_save_command(Call& call) { call.reply_status(call.engine.server().save_users()); }

}  // namespace sluice

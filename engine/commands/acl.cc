// ACL: users at run time; engine/acl.h keeps them.
#include "engine/commands/acl.h"

#include <set>

#include "engine/acl.h"
#include "engine/commands/call.h"
#include "engine/commands/command_names.h"
#include "engine/commands/help.h"
#include "engine/engine.h"
#include "engine/passwords.h"
#include "engine/pubsub.h"

namespace sluice {

namespace {

constexpr int64_t kDefaultPasswordBits = 256;
constexpr int64_t kMaxPasswordBits = 4096;

// Connections that are subscribed to something that the user may no longer hear of are closed: a
// subscription is checked only once, when it begins.
void close_forbidden_subscribers(Call& call, Bytes name) {
  const std::shared_ptr<User> user = call.engine.acl().find(name);
  if (user == nullptr) return;
  const auto rules = user->rules();
  const Permissions& permissions = rules->permissions();
  if (permissions.all_channels()) return;
  const PubSub& pubsub = call.engine.pubsub();
  std::set<uint64_t> clients;
  using Kind = PubSub::Kind;
  for (const Kind kind : {Kind::kChannel, Kind::kPattern, Kind::kShardChannel}) {
    for (const std::string& channel : pubsub.names(kind, {}, false)) {
      if (permissions.may_use_channel(channel, kind == Kind::kPattern)) continue;
      for (const uint64_t id : pubsub.subscriber_ids(kind, channel)) clients.insert(id);
    }
  }
  if (clients.empty()) return;
  call.engine.server().kill_clients(call.client, [&](const ClientFacts& facts) {
    return facts.user == user->name && clients.contains(facts.id);
  });
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
  const Permissions& permissions = rules->permissions();
  reply.bulk("commands");
  reply.bulk(permissions.describe_commands());
  reply.bulk("keys");
  reply.bulk(permissions.describe_keys());
  reply.bulk("channels");
  reply.bulk(permissions.describe_channels());
  reply.bulk("selectors");
  reply.array(0);
}

void acl_setuser_command(Call& call) {
  const std::string error = call.engine.acl().set_user(call.args[2], call.args.subspan(3));
  if (!error.empty()) return call.reply.error("ERR " + error);
  close_forbidden_subscribers(call, call.args[2]);
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
  call.reply.integer(deleted);
}

void acl_cat_command(Call& call) {
  if (call.args.size() > 3) {
    return call.reply.error(
        "ERR unknown subcommand or wrong number of arguments for 'CAT'. Try ACL HELP.");
  }
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
  const CommandTable& table = CommandTable::instance();
  const size_t mark = call.reply.open_array();
  size_t count = 0;
  for (size_t id = 0; id < table.id_limit(); ++id) {
    if ((table.by_id(id).acl & category->flag) == 0) continue;
    call.reply.bulk(CommandTable::full_name(table.by_id(id)));
    ++count;
  }
  call.reply.close_array(mark, count);
}

void acl_genpass_command(Call& call) {
  int64_t bits = kDefaultPasswordBits;
  if (call.args.size() > 3) {
    return call.reply.error(
        "ERR unknown subcommand or wrong number of arguments for 'GENPASS'. Try ACL HELP.");
  }
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

void acl_help_command(Call& call) { reply_help(call); }

}  // namespace sluice

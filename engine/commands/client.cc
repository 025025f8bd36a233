// CLIENT and its subcommands: names, the list of connections, closing them.
#include <algorithm>
#include <optional>

#include "engine/access/acl.h"
#include "engine/base/numbers.h"
#include "engine/clients/describe_client.h"
#include "engine/commands/connection.h"
#include "engine/execution/call.h"
#include "engine/execution/engine.h"
#include "engine/execution/execution.h"

namespace sluice {

bool is_printable_word(Bytes text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '!' && c <= '~'; });
}

namespace {

// The filter of CLIENT KILL.
struct KillFilter {
  std::optional<uint64_t> id;
  std::string address;
  std::string local_address;
  std::string user;
  std::string type;
  bool skip_me = true;
  int64_t min_age_s = 0;

  bool matches(const ClientFacts& facts) const {
    if (skip_me && facts.is_self) return false;
    if (id && *id != facts.id) return false;
    if (!address.empty() && address != facts.address) return false;
    if (!local_address.empty() && local_address != facts.local_address) return false;
    if (!user.empty() && user != facts.user) return false;
    if (facts.age_s < min_age_s) return false;
    if (type == "pubsub") return facts.is_pubsub;
    if (type == "normal") return !facts.is_pubsub;
    return type.empty();  // master, replica: they do not exist here
  }
};

bool is_client_type(Bytes type) {
  return type == "normal" || type == "pubsub" || type == "master" || type == "replica" ||
         type == "slave";
}

bool parse_kill_option(Call& call, size_t at, KillFilter& filter) {
  const std::string value(call.args[at + 1]);
  if (call.option(at, "ID")) {
    const auto id = parse_i64(value);
    if (!id || *id < 1) return fail(call, "ERR client-id should be greater than 0");
    filter.id = static_cast<uint64_t>(*id);
  } else if (call.option(at, "MAXAGE")) {
    if (!call.integer(at + 1, filter.min_age_s, "ERR maxage is not an integer or out of range")) {
      return false;
    }
    if (filter.min_age_s <= 0) return fail(call, "ERR maxage should be greater than 0");
  } else if (call.option(at, "ADDR")) {
    filter.address = value;
  } else if (call.option(at, "LADDR")) {
    filter.local_address = value;
  } else if (call.option(at, "TYPE")) {
    filter.type = to_lower(value);
    if (!is_client_type(filter.type)) return fail(call, "ERR Unknown client type '" + value + "'");
  } else if (call.option(at, "USER")) {
    if (!call.engine.acl().exists(value)) return fail(call, "ERR No such user '" + value + "'");
    filter.user = value;
  } else if (call.option(at, "SKIPME") &&
             (equals_ignore_case(value, "yes") || equals_ignore_case(value, "no"))) {
    filter.skip_me = equals_ignore_case(value, "yes");
  } else {
    return fail(call, errors::kSyntax);
  }
  return true;
}

void reply_bad_count(Call& call) {
  call.reply.error("ERR unknown subcommand or wrong number of arguments for '" +
                   std::string(call.args[1]) + "'. Try CLIENT HELP.");
}

}  // namespace

bool check_client_name(Call& call, size_t argument) {
  if (is_printable_word(call.args[argument])) return true;
  return fail(call, "ERR Client names cannot contain spaces, newlines or special characters.");
}

void client_id_command(Call& call) { call.reply.integer(static_cast<int64_t>(call.client.id)); }

void client_setname_command(Call& call) {
  if (!check_client_name(call, 2)) return;
  call.client.name = call.args[2];
  call.reply.ok();
}

void client_getname_command(Call& call) {
  call.client.name.empty() ? call.reply.null() : call.reply.bulk(call.client.name);
}

void client_setinfo_command(Call& call) {
  const bool name = call.option(2, "LIB-NAME");
  if (!name && !call.option(2, "LIB-VER")) {
    return call.reply.error("ERR Unrecognized option '" + std::string(call.args[2]) + "'");
  }
  if (!is_printable_word(call.args[3])) {
    return call.reply.error(std::string("ERR ") + (name ? "lib-name" : "lib-ver") +
                            " cannot contain spaces, newlines or special characters.");
  }
  (name ? call.client.library_name : call.client.library_version) = call.args[3];
  call.reply.ok();
}

namespace {

// What only the command knows of its own connection.
void add_arguments(const Call& call, ClientFacts& facts) {
  for (const Bytes argument : call.args) facts.argument_bytes += argument.size();
}

std::vector<ClientFacts> list_clients(const Call& call) {
  std::vector<ClientFacts> all = call.engine.server().clients(call.client);
  for (ClientFacts& facts : all) {
    if (facts.is_self) add_arguments(call, facts);
  }
  return all;
}

}  // namespace

void client_info_command(Call& call) {
  ClientFacts facts = call.engine.server().client(call.client);
  add_arguments(call, facts);
  call.reply.verbatim("txt", describe_client(facts) + "\n");
}

void client_list_command(Call& call) {
  std::string type;
  std::vector<uint64_t> ids;
  if (call.args.size() == 4 && call.option(2, "TYPE")) {
    type = to_lower(call.args[3]);
    if (!is_client_type(type)) {
      return call.reply.error("ERR Unknown client type '" + std::string(call.args[3]) + "'");
    }
  } else if (call.args.size() > 3 && call.option(2, "ID")) {
    for (const Bytes arg : call.args.subspan(3)) {
      const auto id = parse_i64(arg);
      if (!id) return call.reply.error("ERR Invalid client ID");
      ids.push_back(static_cast<uint64_t>(*id));
    }
  } else if (call.args.size() != 2) {
    return call.reply.error(errors::kSyntax);
  }
  std::string text;
  KillFilter filter;
  filter.type = type;
  filter.skip_me = false;
  for (const ClientFacts& facts : list_clients(call)) {
    if (!filter.matches(facts)) continue;
    if (!ids.empty() && std::find(ids.begin(), ids.end(), facts.id) == ids.end()) continue;
    text += describe_client(facts) + "\n";
  }
  call.reply.verbatim("txt", text);
}

void client_kill_command(Call& call) {
  KillFilter filter;
  const bool old_form = call.args.size() == 3;
  if (old_form) {
    filter.address = call.args[2];
    filter.skip_me = false;
  } else {
    if (call.args.size() % 2 != 0) return call.reply.error(errors::kSyntax);
    for (size_t at = 2; at < call.args.size(); at += 2) {
      if (!parse_kill_option(call, at, filter)) return;
    }
  }
  const size_t killed = call.engine.server().kill_clients(
      call.client, [&](const ClientFacts& facts) { return filter.matches(facts); });
  if (!old_form) return call.reply.integer(static_cast<int64_t>(killed));
  killed != 0 ? call.reply.ok() : call.reply.error("ERR No such client");
}

void client_no_evict_command(Call& call) {
  if (call.option(2, "ON")) {
    call.client.no_evict = true;
  } else if (call.option(2, "OFF")) {
    call.client.no_evict = false;
  } else {
    return call.reply.error(errors::kSyntax);
  }
  call.reply.ok();
}

void client_no_touch_command(Call& call) {
  if (call.option(2, "ON")) {
    call.client.no_touch = true;
  } else if (call.option(2, "OFF")) {
    call.client.no_touch = false;
  } else {
    return call.reply.error(errors::kSyntax);
  }
  call.reply.ok();
}

void client_reply_command(Call& call) {
  Client& client = call.client;
  ByteBuffer* const output = call.reply.buffer();
  if (call.option(2, "ON")) {
    if (client.reply_mode != ReplyMode::kOn && output != nullptr) {
      output->resize(client.muted_from);
    }
    client.reply_mode = ReplyMode::kOn;
    call.reply.ok();
  } else if (call.option(2, "OFF")) {
    // In a transaction, earlier replies are kept.
    if (client.reply_mode == ReplyMode::kOn && output != nullptr) {
      client.muted_from = output->size();
    }
    client.reply_mode = ReplyMode::kOff;
    call.unit.requester.output = nullptr;
  } else if (call.option(2, "SKIP")) {
    if (client.reply_mode != ReplyMode::kOff) client.skips_next = true;
  } else {
    call.reply.error(errors::kSyntax);
  }
}

void client_unblock_command(Call& call) {
  bool with_error = false;
  if (call.args.size() > 3) {
    if (call.args.size() > 4) return reply_bad_count(call);
    with_error = call.option(3, "ERROR");
    if (!with_error && !call.option(3, "TIMEOUT")) {
      return call.reply.error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
    }
  }
  int64_t id = 0;
  if (!call.integer(2, id)) return;
  const bool unblocked =
      id > 0 && call.engine.server().unblock_client(static_cast<uint64_t>(id), with_error);
  call.reply.integer(unblocked ? 1 : 0);
}

void client_pause_command(Call& call) {
  if (call.args.size() > 4) return reply_bad_count(call);
  PauseMode mode = PauseMode::kAll;
  if (call.args.size() == 4) {
    if (call.option(3, "WRITE")) {
      mode = PauseMode::kWrites;
    } else if (!call.option(3, "ALL")) {
      return call.reply.error("ERR CLIENT PAUSE mode must be WRITE or ALL");
    }
  }
  int64_t duration_ms = 0;
  if (!call.integer(2, duration_ms, "ERR timeout is not an integer or out of range")) return;
  if (duration_ms < 0) return call.reply.error("ERR timeout is negative");
  const int64_t now_ms = call.execution.steady_ms();
  if (duration_ms >= kNeverMs - now_ms) return call.reply.error("ERR timeout is out of range");
  call.engine.pause.begin(mode, now_ms, now_ms + duration_ms);
  call.engine.server().pause_changed();
  call.reply.ok();
}

void client_unpause_command(Call& call) {
  call.engine.pause.end();
  call.engine.server().pause_changed();
  call.reply.ok();
}

}  // namespace sluice

#include "engine/clients/describe_client.h"

namespace sluice {

std::string describe_client(const ClientFacts& facts) {
  std::string out = "id=" + std::to_string(facts.id);
  const auto add = [&](const char* name, const std::string& value) {
    out += ' ';
    out += name;
    out += '=';
    out += value;
  };
  add("addr", facts.address);
  add("laddr", facts.local_address);
  add("fd", std::to_string(facts.fd));
  add("name", facts.name);
  add("age", std::to_string(facts.age_s));
  add("idle", std::to_string(facts.idle_s));
  add("flags", facts.flags);
  add("db", std::to_string(facts.database));
  add("sub", std::to_string(facts.subscriptions));
  add("psub", std::to_string(facts.pattern_subscriptions));
  add("ssub", std::to_string(facts.shard_subscriptions));
  add("multi", std::to_string(facts.multi));
  add("qbuf", std::to_string(facts.query_buffer_bytes));
  add("qbuf-free", std::to_string(facts.query_buffer_free_bytes));
  add("argv-mem", std::to_string(facts.argument_bytes));
  add("multi-mem", std::to_string(facts.multi_bytes));
  add("rbs", std::to_string(facts.output_buffer_bytes));
  add("rbp", std::to_string(facts.output_bytes));
  add("obl", std::to_string(facts.output_bytes));
  add("oll", std::to_string(facts.output_list_length));
  add("omem", std::to_string(facts.output_list_bytes));
  add("tot-mem", std::to_string(facts.total_bytes));
  add("events", "r");
  add("cmd", facts.command);
  add("user", facts.user);
  add("redir", std::to_string(facts.redirect));
  add("resp", std::to_string(facts.protocol));
  // Redis 7.0 does not have these two.
  if (!facts.library_name.empty() || !facts.library_version.empty()) {
    add("lib-name", facts.library_name);
    add("lib-ver", facts.library_version);
  }
  return out;
}

}  // namespace sluice

// The directives of a group of machines that share a journal, in the order of conf/sluice.conf.
// Those named replica-* have Redis's names, defaults and ranges.
#include <optional>
#include <utility>

#include "net/config/config_special.h"
#include "net/config/config_table.h"
#include "storage/group_keys.h"

namespace sluice {

std::vector<Directive> group_directives();

namespace {

using enum DirectiveKind;
using enum ChangeRule;
using enum ValueType;
using config_special::Arguments;
using config_special::set_choice;

constexpr const char* kBadName =
    "a name has 1 to 64 letters, digits, '.', '_' and '-', and is not '-'";

Result<std::string> parse_endpoints(Arguments arguments, ConfigDraft& draft) {
  if (arguments.size() == 1 && arguments[0].empty()) arguments = {};
  std::optional<bool> tls;
  for (const std::string& url : arguments) {
    const Result<HttpEndpoint> endpoint = parse_http_endpoint(url, {});
    if (!endpoint.ok()) return endpoint.status();
    if (endpoint->port.empty() || !url.ends_with(endpoint->port)) {
      return invalid("an endpoint must end with its port");
    }
    if (tls.value_or(endpoint->tls) != endpoint->tls) {
      return invalid("either all endpoints must begin with https:// or none");
    }
    tls = endpoint->tls;
  }
  draft.settings.etcd_endpoints.assign(arguments.begin(), arguments.end());
  return config_special::joined(arguments);
}

template <std::string Settings::*Member>
Result<std::string> parse_name(Arguments arguments, ConfigDraft& draft) {
  if (!is_group_name(arguments[0])) return invalid(kBadName);
  return draft.settings.*Member = arguments[0];
}

Result<std::string> parse_node_name(Arguments arguments, ConfigDraft& draft) {
  const Result<std::string> name = parse_name<&Settings::node_name>(arguments, draft);
  if (name.ok() && equals_ignore_case(*name, "auto")) draft.settings.node_name.clear();
  return name;
}

// A part of lines of text, in etcd and in INFO.
Result<std::string> parse_address(Arguments arguments, ConfigDraft& draft) {
  if (arguments[0].find_first_of(" \t\r\n,") != std::string::npos) {
    return invalid("an address has no blanks and no commas");
  }
  return draft.settings.replica_announce_ip = arguments[0];
}

// Most are read once, at the start. A text is a file of this machine, or who it is to etcd.
Directive text(const char* name, std::string Settings::*member, const char* summary) {
  return {.name = name,
          .kind = kOurs,
          .change = kRestart,
          .may_differ = true,
          .binding = member,
          .summary = summary};
}

Directive flag(const char* name, const char* value, bool Settings::*member, const char* summary) {
  return {.name = name,
          .kind = kOurs,
          .change = kRestart,
          .default_value = value,
          .binding = member,
          .summary = summary};
}

Directive number(const char* name, const char* value, std::pair<int64_t, uint64_t> range,
                 int64_t Settings::*member, const char* summary) {
  return {.name = name,
          .kind = kOurs,
          .change = kRestart,
          .default_value = value,
          .low = range.first,
          .high = range.second,
          .binding = member,
          .summary = summary};
}

Directive named(const char* name, const char* value, SpecialParser parse, const char* summary) {
  return {.name = name,
          .kind = kOurs,
          .change = kRestart,
          .default_value = value,
          .parse = parse,
          .expected = "a name of 1 to 64 letters, digits, '.', '_' and '-'",
          .summary = summary};
}

std::vector<Directive> etcd_rows() {
  return {
      {.name = "journal",
       .kind = kOurs,
       .change = kRestart,
       .default_value = "local",
       .choices = "local, etcd",
       .binding = &set_choice<&Settings::journal>,
       .summary = "where a change becomes durable: on this machine's disk, or in an etcd cluster"},
      {.name = "etcd-endpoints",
       .kind = kOurs,
       .change = kRestart,
       .multiple = true,
       .may_differ = true,
       .parse = parse_endpoints,
       .expected = "http://host:port of each member of etcd, or https:// for all of them",
       .summary = "the members of the etcd cluster"},
      text("etcd-user", &Settings::etcd_user, "user of etcd; empty = etcd without authentication"),
      text("etcd-password-file", &Settings::etcd_password_file, "file with that user's password"),
      text("etcd-tls-ca-cert-file", &Settings::etcd_tls_ca_cert_file,
           "authorities for etcd's certificates, in PEM; empty = the system's"),
      text("etcd-tls-cert-file", &Settings::etcd_tls_cert_file,
           "certificate shown to etcd, in PEM; empty = none"),
      text("etcd-tls-key-file", &Settings::etcd_tls_key_file, "its private key, in PEM"),
      {.name = "journal-log-bytes",
       .kind = kOurs,
       .change = kRestart,
       .default_value = "1gb",
       .low = kMebibyte,
       .binding = &Settings::journal_log_bytes,
       .summary =
           "size of the journal in etcd; from 75 % on growth is refused, a request may have 25 %"},
      number("journal-in-flight", "4", {1, 64}, &Settings::journal_in_flight,
             "pieces of the journal that may be on their way to etcd at once"),
      number("journal-patience", "5000", {0, kMaxInt}, &Settings::journal_patience_ms,
             "milliseconds that requests wait for an etcd that does not answer"),
      flag("journal-etcd-compact", "yes", &Settings::journal_etcd_compact,
           "compact etcd, which else keeps all that it ever had; no = others do"),
  };
}

std::vector<Directive> node_rows() {
  return {
      named("cluster-name", "main", parse_name<&Settings::cluster_name>,
            "name in etcd of all groups that belong together"),
      named("group", "1", parse_name<&Settings::group>, "the group to which this node belongs"),
      may_differ(named("node-name", "auto", parse_node_name,
                       "this node's name in the group; auto = made once, kept in the data "
                       "directory")),
      number("failover-timeout", "1000", {300, 3'600'000}, &Settings::failover_timeout_ms,
             "milliseconds of the primary's silence after which a standby takes over"),
      number("watchdog-ms", "15000", {0, kMaxInt}, &Settings::watchdog_ms,
             "milliseconds without a turn of an I/O thread after which the primary sends no beats; "
             "0 = never"),
      {.name = "checkpoint-copies",
       .kind = kOurs,
       .change = kRestart,
       .default_value = "auto",
       .choices = "auto, 1, 2",
       .binding = &set_choice<&Settings::checkpoint_copies>,
       .summary = "nodes that must have a checkpoint before the journal behind it is removed"},
      text("replication-token-file", &Settings::replication_token_file,
           "file with the HTTP token for checkpoints of other nodes"),
      {.name = "sentinel-port",
       .kind = kOurs,
       .change = kRestart,
       .default_value = "0",
       .may_differ = true,
       .parse = config_special::parse_port<&Settings::sentinel_port>,
       .expected = "a number from 0 to 65535 (0 = no Sentinel), or auto",
       .summary = "port for clients of Redis Sentinel; 0 = none, auto = any free one"},
      named("sentinel-name", "mymaster", parse_name<&Settings::sentinel_name>,
            "name of this group for clients of Sentinel"),
  };
}

std::vector<Directive> replica_rows() {
  return {
      {.name = "replica-announce-ip",
       .alias = "slave-announce-ip",
       .may_differ = true,
       .parse = parse_address,
       .expected = "an address or a name, without blanks and commas",
       .summary = "address at which clients reach this node; empty = the local address of the "
                  "connection to etcd"},
      {.name = "replica-announce-port",
       .alias = "slave-announce-port",
       .default_value = "0",
       .high = 65535,
       .may_differ = true,
       .binding = &Settings::replica_announce_port,
       .summary = "port at which clients reach this node; 0 = port"},
      {.name = "replica-priority",
       .alias = "slave-priority",
       .default_value = "100",
       .high = kMaxInt,
       .may_differ = true,
       .binding = &Settings::replica_priority,
       .summary = "0 = never takes over; other numbers are shown to clients of Sentinel"},
      {.name = "replica-serve-stale-data",
       .alias = "slave-serve-stale-data",
       .default_value = "yes",
       .binding = &Settings::replica_serve_stale_data,
       .summary = "whether a standby answers reads while it hears nothing of etcd"},
  };
}

}  // namespace

std::vector<Directive> group_directives() {
  std::vector<Directive> all;
  for (const auto part : {etcd_rows, node_rows, replica_rows}) {
    for (Directive& row : part()) all.push_back(row);
  }
  return all;
}

}  // namespace sluice

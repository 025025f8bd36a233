#include "tools/cli/group_view.h"

#include <algorithm>

#include "engine/base/numbers.h"
#include "engine/ports/group_port.h"
#include "tools/cli/text.h"

namespace sluice::cli {

namespace {

using nlohmann::json;

// From here on the group makes checkpoints to trim the journal in etcd (net/group/log_bound.h).
constexpr int64_t kManyPercent = 50;

// Other members are numbers.
constexpr Bytes kTexts[] = {"cluster",   "group", "node",   "role", "primary", "log_kept_by",
                            "waits_for", "name",  "run_id", "host", "version"};
// Members of a member that are 1 or 0.
constexpr Bytes kFlags[] = {"primary", "starting", "config_differs", "users_differ"};

json value_of(Bytes name, Bytes text) {
  const bool is_text = std::find(std::begin(kTexts), std::end(kTexts), name) != std::end(kTexts);
  if (is_text) return text.empty() ? json(nullptr) : json(text);
  return parse_i64(text).value_or(0);
}

// "name=n1,host=10.0.0.1,primary=1,..."
json member_of(Bytes text) {
  json member = json::object();
  while (!text.empty()) {
    const Bytes part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const size_t equals = std::min(part.find('='), part.size());
    const Bytes name = part.substr(0, equals);
    const Bytes value = part.substr(std::min(equals + 1, part.size()));
    const bool is_flag = std::find(std::begin(kFlags), std::end(kFlags), name) != std::end(kFlags);
    member[std::string(name)] = is_flag ? json(value == "1") : value_of(name, value);
  }
  return member;
}

int64_t number(const json& from, const char* name) { return from.value(name, int64_t{0}); }

std::string text(const json& from, const char* name) {
  const auto found = from.find(name);
  return found != from.end() && found->is_string() ? found->get<std::string>() : std::string();
}

int64_t newest_lsn(const json& group) {
  int64_t newest = 0;
  for (const json& member : group["members"]) newest = std::max(newest, number(member, "lsn"));
  return newest;
}

bool others_can_lead(const json& group) {
  return std::any_of(group["members"].begin(), group["members"].end(), [](const json& member) {
    return !member.value("primary", false) && !member.value("starting", false) &&
           number(member, "priority") != 0;
  });
}

// What clients would meet if another node took over. Nothing while nobody leads.
void add_differences(const json& group, std::vector<std::string>& lines) {
  const json* const primary = find_member(group, text(group, "primary"));
  if (primary == nullptr) return;
  const std::string wanted = text(*primary, "version");
  for (const json& member : group["members"]) {
    const std::string name = text(member, "name");
    const std::string version = text(member, "version");
    if (!version.empty() && !wanted.empty() && version != wanted) {
      lines.push_back(name + " runs version " + version + ", the primary " + wanted);
    }
    if (member.value("config_differs", false)) {
      lines.push_back(name +
                      " has another configuration than the primary: compare CONFIG GET * of both");
    }
    if (member.value("users_differ", false)) {
      lines.push_back(name + " has other users than the primary: compare ACL LIST of both");
    }
  }
}

}  // namespace

json group_of_info(Bytes info) {
  constexpr Bytes kPrefix = "sluice_group_";
  constexpr Bytes kMember = "member";
  json group = json::object();
  json members = json::array();
  while (!info.empty()) {
    const Bytes line = info.substr(0, info.find("\r\n"));
    info.remove_prefix(std::min(line.size() + 2, info.size()));
    const size_t colon = line.find(':');
    if (!line.starts_with(kPrefix) || colon == Bytes::npos) continue;
    const Bytes name = line.substr(kPrefix.size(), colon - kPrefix.size());
    const Bytes value = line.substr(colon + 1);
    if (name.starts_with(kMember)) {
      members.push_back(member_of(value));
    } else {
      group[std::string(name)] = value_of(name, value);
    }
  }
  if (group.empty()) return nullptr;
  group["members"] = std::move(members);
  return group;
}

const json* find_member(const json& group, const std::string& name) {
  for (const json& member : group["members"]) {
    if (text(member, "name") == name) return &member;
  }
  return nullptr;
}

bool has_primary(const json& group) {
  const std::string primary = text(group, "primary");
  return !primary.empty() &&
         (primary == text(group, "node") || find_member(group, primary) != nullptr);
}

std::vector<std::string> group_lines(const json& group) {
  const std::string primary = text(group, "primary");
  const std::string gone = primary.empty() ? "" : ", and " + primary + ", which led, is away";
  std::vector<std::string> lines = {
      "group " + text(group, "cluster") + "/" + text(group, "group") + ", epoch " +
      std::to_string(number(group, "epoch")) + ": " +
      (has_primary(group) ? primary + " leads" : "nobody leads" + gone)};
  const std::string node = text(group, "node");
  if (node != primary) {
    lines.push_back("this is " + node + ", " + text(group, "role") + ", " +
                    duration_text(number(group, "lag_ms")) + " behind");
  }
  if (const std::string waits_for = text(group, "waits_for"); !waits_for.empty()) {
    lines.push_back(node + " is waiting: " + waits_for);
  }
  if (const int64_t age_ms = number(group, "age_ms"); age_ms > kTrustedViewMs) {
    lines.push_back("etcd was last heard of " + duration_text(age_ms) +
                    " ago: the rest may be old");
  }
  if (const int64_t paused_ms = number(group, "paused_ms"); paused_ms != 0) {
    lines.push_back("paused for " + duration_text(paused_ms) +
                    " more: no other node takes over if the primary fails");
  }
  const int64_t percent_bytes = number(group, "log_limit_bytes") / 100;
  const int64_t percent = percent_bytes == 0 ? 0 : number(group, "log_bytes") / percent_bytes;
  if (percent >= kManyPercent) {
    const std::string kept_by = text(group, "log_kept_by");
    lines.push_back("the journal in etcd has " + std::to_string(percent) +
                    " % of journal-log-bytes" + (kept_by.empty() ? "" : ". What keeps it: ") +
                    kept_by);
  }
  add_differences(group, lines);
  if (!others_can_lead(group)) lines.emplace_back("no other node can take over");
  if (const int64_t took_ms = number(group, "last_takeover_ms"); took_ms != 0) {
    lines.push_back(node + " took over in " + duration_text(took_ms) + " the last time");
  }
  return lines;
}

Table group_table(const json& group) {
  Table table({{"NODE"},
               {"ROLE"},
               {"ADDRESS"},
               {"HTTP", true},
               {"SENTINEL", true},
               {"BEHIND", true},
               {"PRIORITY", true}});
  const int64_t newest = newest_lsn(group);
  const auto port = [](int64_t value) { return value == 0 ? "" : std::to_string(value); };
  for (const json& member : group["members"]) {
    const bool leads = member.value("primary", false);
    const int64_t plain = number(member, "port");
    const int64_t behind = newest - number(member, "lsn");
    table.add({printable(text(member, "name")),
               {leads                             ? "primary"
                : member.value("starting", false) ? "starting"
                                                  : "standby",
                leads ? Style::kGood : Style::kPlain},
               printable(text(member, "host")) + ":" +
                   std::to_string(plain != 0 ? plain : number(member, "tls_port")),
               port(number(member, "http_port")),
               port(number(member, "sentinel_port")),
               leads ? "" : count_text(behind) + (behind == 1 ? " unit" : " units"),
               std::to_string(number(member, "priority"))});
  }
  return table;
}

}  // namespace sluice::cli

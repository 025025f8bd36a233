#include "net/admin/group_state.h"

#include <memory>

namespace sluice {

namespace {

using nlohmann::json;

json text_or_null(const std::string& text) { return text.empty() ? json(nullptr) : json(text); }

json member_json(const GroupView& view, const GroupMember& member) {
  const GroupDifference difference = view.difference(member);
  return {{"name", member.name},
          {"run_id", member.run_id},
          {"primary", !view.is_standby(member)},
          {"starting", member.starting},
          {"host", member.host},
          {"port", member.port},
          {"tls_port", member.tls_port},
          {"http_port", member.http_port},
          {"sentinel_port", member.sentinel_port},
          {"priority", member.priority},
          {"lsn", member.lsn},
          {"checkpoint_lsn", member.checkpoint_lsn},
          {"checkpoint_bytes", member.checkpoint_bytes},
          {"version", text_or_null(member.version)},
          {"config_differs", difference.config},
          {"users_differ", difference.users}};
}

}  // namespace

json group_json(const GroupPort* group) {
  if (group == nullptr) return nullptr;
  const std::shared_ptr<const GroupView> view = group->view();
  json members = json::array();
  for (const GroupMember& member : view->members) members.push_back(member_json(*view, member));
  return {{"cluster", view->cluster},
          {"group", view->group},
          {"node", view->node},
          {"role", name_of(view->role)},
          {"epoch", view->epoch},
          {"primary", text_or_null(view->holder)},
          {"seq", view->seq},
          {"lsn", view->lsn},
          {"lag_ms", view->lag_ms},
          {"age_ms", group->view_age_ms()},
          {"lease_ms", group->lease_ms()},
          {"log_frames", view->log_frames},
          {"log_bytes", view->log_bytes},
          {"log_limit_bytes", view->log_limit_bytes},
          {"log_kept_by", text_or_null(view->log_kept_by)},
          {"etcd_bytes", view->etcd_bytes},
          {"etcd_quota_bytes", view->etcd_quota_bytes},
          {"copies", view->copies()},
          {"paused_ms", view->paused_ms},
          {"takeovers", view->takeovers},
          {"last_takeover_ms", view->last_takeover_ms},
          {"waits_for", text_or_null(view->waits_for)},
          {"members", std::move(members)}};
}

std::string why_no_primary(const GroupPort* group) {
  if (group == nullptr) return {};
  const std::shared_ptr<const GroupView> view = group->view();
  if (view->role != GroupRole::kPrimary) {
    return std::string("The role of this node is ") + name_of(view->role) + ".";
  }
  // Another node may have taken over.
  if (group->lease_ms() > 0) return {};
  return "This node has not reached etcd in time: another one may be the primary.";
}

std::string why_no_standby(const GroupPort* group, bool answers,
                           std::optional<int64_t> max_lag_ms) {
  if (group == nullptr) return "The server has no group: it is a primary.";
  const std::shared_ptr<const GroupView> view = group->view();
  if (view->role != GroupRole::kStandby) {
    return std::string("The role of this node is ") + name_of(view->role) + ".";
  }
  if (!answers) {
    return "This node has not heard of etcd for " + std::to_string(group->view_age_ms()) +
           " ms, and replica-serve-stale-data is no: it refuses reads.";
  }
  // Without news, the lag grows.
  const int64_t lag_ms = view->lag_ms + group->view_age_ms();
  if (lag_ms <= max_lag_ms.value_or(INT64_MAX)) return {};
  return "This node is " + std::to_string(lag_ms) + " ms behind, more than max_lag_ms allows.";
}

json primary_url(const GroupPort* group) {
  if (group == nullptr) return nullptr;
  const std::shared_ptr<const GroupView> view = group->view();
  const GroupMember* const primary = view->primary();
  if (primary == nullptr || primary->http_port == 0) return nullptr;
  const bool version_6 = primary->host.find(':') != std::string::npos;
  const std::string host = version_6 ? '[' + primary->host + ']' : primary->host;
  return "http://" + host + ':' + std::to_string(primary->http_port);
}

}  // namespace sluice

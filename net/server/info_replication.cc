#include "net/server/info_replication.h"

namespace sluice {

namespace {

void write_link(const ReplicationFacts& facts, InfoWriter& out) {
  const GroupView& view = *facts.view;
  const GroupMember* const primary = view.primary();
  // Otherwise the primary is not heard of any more, or not yet.
  const bool up = view.is_linked(facts.view_age_ms);
  out.field("master_host", primary == nullptr ? "" : primary->host);
  out.field("master_port", int64_t{primary == nullptr ? 0 : primary->client_port()});
  out.field("master_link_status", up ? "up" : "down");
  out.field("master_last_io_seconds_ago", up ? facts.view_age_ms / 1000 : -1);
  out.field("master_sync_in_progress", int64_t{view.role == GroupRole::kStarting});
  out.field("slave_read_repl_offset", view.lsn);
  out.field("slave_repl_offset", view.lsn);
  if (!up) {
    out.field("master_link_down_since_seconds",
              view.unlinked_ms < 0 ? -1 : (view.unlinked_ms + facts.view_age_ms) / 1000);
  }
  out.field("slave_priority", facts.priority);
  out.field("slave_read_only", int64_t{1});
  out.field("replica_announced", int64_t{1});
}

void write_standbys(const GroupView& view, InfoWriter& out) {
  out.field("connected_slaves", view.standbys());
  int64_t number = 0;
  for (const GroupMember& member : view.members) {
    if (!view.is_standby(member)) continue;
    // The record of a node that lives is at most a second old.
    out.field("slave" + std::to_string(number++),
              "ip=" + member.host + ",port=" + std::to_string(member.client_port()) +
                  ",state=" + (member.starting ? "wait_bgsave" : "online") +
                  ",offset=" + std::to_string(member.lsn) + ",lag=0");
  }
}

std::string member_text(const GroupView& view, const GroupMember& member) {
  std::string text = "name=" + member.name + ",run_id=" + member.run_id;
  const auto add = [&text](const char* name, uint64_t value) {
    text += std::string(",") + name + '=' + std::to_string(value);
  };
  text += ",host=" + member.host;
  add("primary", view.is_standby(member) ? 0 : 1);
  add("starting", member.starting ? 1 : 0);
  add("port", member.port);
  add("tls_port", member.tls_port);
  add("http_port", member.http_port);
  add("sentinel_port", member.sentinel_port);
  add("priority", member.priority);
  add("lsn", member.lsn);
  add("checkpoint_lsn", member.checkpoint_lsn);
  add("checkpoint_bytes", member.checkpoint_bytes);
  text += ",version=" + member.version;
  const GroupDifference difference = view.difference(member);
  add("config_differs", difference.config ? 1 : 0);
  add("users_differ", difference.users ? 1 : 0);
  return text;
}

// The members of HTTP's group (net/admin/group_state.h), which `sluice nodes` shows.
void write_group(const ReplicationFacts& facts, InfoWriter& out) {
  const GroupView& view = *facts.view;
  out.field("sluice_journal_kind", "etcd");
  out.field("sluice_group_cluster", view.cluster);
  out.field("sluice_group_group", view.group);
  out.field("sluice_group_node", view.node);
  out.field("sluice_group_role", name_of(view.role));
  out.field("sluice_group_epoch", view.epoch);
  out.field("sluice_group_primary", view.holder);
  out.field("sluice_group_seq", view.seq);
  out.field("sluice_group_lsn", view.lsn);
  out.field("sluice_group_lag_ms", view.lag_ms);
  out.field("sluice_group_age_ms", facts.view_age_ms);
  out.field("sluice_group_lease_ms", facts.lease_ms);
  out.field("sluice_group_log_frames", view.log_frames);
  out.field("sluice_group_log_bytes", view.log_bytes);
  out.field("sluice_group_log_limit_bytes", view.log_limit_bytes);
  out.field("sluice_group_log_kept_by", view.log_kept_by);
  out.field("sluice_group_etcd_bytes", view.etcd_bytes);
  out.field("sluice_group_etcd_quota_bytes", view.etcd_quota_bytes);
  out.field("sluice_group_copies", view.copies());
  out.field("sluice_group_paused_ms", view.paused_ms);
  out.field("sluice_group_takeovers", view.takeovers);
  out.field("sluice_group_last_takeover_ms", view.last_takeover_ms);
  out.field("sluice_group_waits_for", view.waits_for);
  int64_t number = 0;
  for (const GroupMember& member : view.members) {
    out.field("sluice_group_member" + std::to_string(number++), member_text(view, member));
  }
}

}  // namespace

void write_replication(const ReplicationFacts& facts, InfoWriter& out) {
  const GroupView alone;
  const GroupView& view = facts.view == nullptr ? alone : *facts.view;
  const bool leads = facts.view == nullptr || view.leads();
  out.field("role", leads ? "master" : "slave");
  if (!leads) write_link(facts, out);
  if (leads) {
    write_standbys(view, out);
  } else {
    out.field("connected_slaves", int64_t{0});
  }
  out.field("master_failover_state", view.role == GroupRole::kResigning ? "failover-in-progress"
                                     : view.awaits_standby              ? "waiting-for-sync"
                                                                        : "no-failover");
  const GroupMember* const primary = view.primary();
  out.field("master_replid", primary == nullptr ? facts.run_id : primary->run_id);
  out.field("master_replid2", std::string(40, '0'));
  out.field("master_repl_offset", view.lsn);
  out.field("second_repl_offset", int64_t{-1});
  out.field("repl_backlog_active", int64_t{0});
  out.field("repl_backlog_size", int64_t{1} << 20);
  out.field("repl_backlog_first_byte_offset", int64_t{0});
  out.field("repl_backlog_histlen", int64_t{0});
  if (facts.view != nullptr) write_group(facts, out);
}

}  // namespace sluice

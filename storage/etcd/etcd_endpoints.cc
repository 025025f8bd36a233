#include "storage/etcd/etcd_endpoints.h"

#include <algorithm>

#include "storage/etcd/etcd_rules.h"

namespace sluice {

void EtcdEndpoints::begin_round() {
  leader_found_ = false;
  leader_term_ = 0;
}

bool EtcdEndpoints::on_status(size_t endpoint, const std::optional<Told>& told) {
  Endpoint& one = endpoints_[endpoint];
  bool is_new = false;
  if (!told.has_value()) {
    // Later its cluster stays known: it may come back as it was.
    if (cluster_ == 0) one.cluster = 0;
  } else {
    one.cluster = told->cluster;
    one.refusal = judge_etcd_version(told->version).refusal;
    // A member that was cut off may still believe to lead: the newest term counts.
    if (told->leads && told->term > leader_term_ && accepts(told->cluster)) {
      is_new = leader_.has_value() && leader_ != endpoint;
      leader_term_ = told->term;
      leader_found_ = true;
      leader_ = current_ = endpoint;
    }
  }
  if (!is_usable(current_)) move_on();
  return is_new;
}

void EtcdEndpoints::end_round() {
  if (cluster_ != 0 || !leader_found_ || !refusal().empty()) return;
  const bool all = std::all_of(endpoints_.begin(), endpoints_.end(),
                               [](const Endpoint& one) { return one.cluster != 0; });
  if (all || ++rounds_ >= kFirstRounds) cluster_ = endpoints_[*leader_].cluster;
}

void EtcdEndpoints::on_failure(size_t endpoint) {
  if (endpoint == current_) move_on();
}

bool EtcdEndpoints::is_usable(size_t endpoint) const {
  const Endpoint& one = endpoints_[endpoint];
  return one.refusal.empty() && (cluster_ == 0 || one.cluster == cluster_);
}

void EtcdEndpoints::move_on() {
  for (size_t i = 1; i < endpoints_.size(); ++i) {
    const size_t next = (current_ + i) % endpoints_.size();
    if (!is_usable(next)) continue;
    current_ = next;
    return;
  }
}

std::string EtcdEndpoints::refusal() const {
  const auto at = [this](size_t endpoint) {
    return "etcd at " + names_[endpoint] + ": " + fault_of(endpoint);
  };
  if (cluster_ != 0 && !endpoints_[*leader_].refusal.empty()) return at(*leader_);
  std::optional<size_t> faulty;
  for (size_t i = 0; i < endpoints_.size(); ++i) {
    if (cluster_ != 0 && is_usable(i)) return {};
    const bool fits = endpoints_[i].refusal.empty() && accepts(endpoints_[i].cluster);
    if (!fits && !faulty.has_value()) faulty = i;
  }
  return faulty.has_value() ? at(*faulty) : mixture();
}

std::string EtcdEndpoints::fault_of(size_t endpoint) const {
  const Endpoint& one = endpoints_[endpoint];
  if (!accepts(one.cluster)) {
    return "it is a member of another etcd cluster than the one that was found at the start, as "
           "one that was set up anew, and is left out. Let it join that one (etcdctl member "
           "remove, etcdctl member add), or restart all servers if that one has gone";
  }
  if (one.refusal.empty()) return mixture();
  return one.refusal + (cluster_ != 0 && leader_ != endpoint ? ". It is left out" : "");
}

// Each would have a log of its own, and the client would change from one to the other.
std::string EtcdEndpoints::mixture() const {
  if (cluster_ != 0) return {};
  size_t first = endpoints_.size();
  for (size_t i = 0; i < endpoints_.size(); ++i) {
    if (endpoints_[i].cluster == 0) continue;
    if (first == endpoints_.size()) first = i;
    if (endpoints_[i].cluster == endpoints_[first].cluster) continue;
    return names_[first] + " and " + names_[i] +
           " are members of different etcd clusters. All of etcd-endpoints must be of one "
           "(--initial-cluster names its members)";
  }
  return {};
}

}  // namespace sluice

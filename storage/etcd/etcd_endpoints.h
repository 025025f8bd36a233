// EtcdEndpoints: which of an etcd's endpoints may be used, and which of them leads.
//
// - At first they must all fit together. An endpoint of another etcd cluster than the others, or of
//   a version that may lose data, keeps the client from all of them: a person must look.
// - That ends as soon as a leader was found and all have answered, or are silent for some rounds,
//   without anything wrong: the leader's cluster is the one from then on. An endpoint of another
//   one, as a member that was set up anew, or of such a version is then left out, and so is one
//   that has not said of which it is. Only a leader of such a version still keeps the client from
//   all, and that there is no other endpoint.
//
// Values; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice {

class EtcdEndpoints {
 public:
  static constexpr int kFirstRounds = 5;

  // What a member says of itself.
  struct Told {
    uint64_t cluster = 0;  // etcd's number of it
    uint64_t term = 0;
    bool leads = false;
    std::string version;
  };

  explicit EtcdEndpoints(std::vector<std::string> names)
      : names_(std::move(names)), endpoints_(names_.size()) {}

  // All are asked.
  void begin_round();
  // What one has answered; nothing: it has not, in time. True if another one leads than before.
  bool on_status(size_t endpoint, const std::optional<Told>& told);
  // All have answered, or are too late.
  void end_round();
  // One leads, as this round has told until now.
  bool leader_found() const { return leader_found_; }
  // The next round has time: a leader was found, and its cluster too unless something is wrong.
  bool has_settled() const { return leader_found_ && (cluster_ != 0 || !refusal().empty()); }

  // Where requests go.
  size_t current() const { return current_; }
  // They go elsewhere, if they went there.
  void on_failure(size_t endpoint);
  // Whether an answer from this cluster is one of the log. 0: it does not say.
  bool accepts(uint64_t cluster) const {
    return cluster_ == 0 || cluster == 0 || cluster == cluster_;
  }

  // Why nothing must be asked of any, in words; empty: it may.
  std::string refusal() const;
  // What is wrong with one, in words; empty: nothing.
  std::string fault_of(size_t endpoint) const;

 private:
  struct Endpoint {
    std::string refusal;   // its version's
    uint64_t cluster = 0;  // the last one that it has told; 0: none, or at first: it was silent
  };

  bool is_usable(size_t endpoint) const;
  void move_on();
  // Why the endpoints must not be used together; empty: they may.
  std::string mixture() const;

  const std::vector<std::string> names_;
  std::vector<Endpoint> endpoints_;
  uint64_t cluster_ = 0;  // the one that was found; 0: at first
  int rounds_ = 0;        // in which a leader was found and some were silent, at first
  size_t current_ = 0;
  std::optional<size_t> leader_;  // the last one that was found
  bool leader_found_ = false;
  uint64_t leader_term_ = 0;
};

}  // namespace sluice

// Encodes the requests of the native queue: the same jobs as in queue_wire.h, by Q.ADD, Q.POP and
// Q.ACK. All functions append to a caller's buffer; no state, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bench/load/queue_wire.h"
#include "bench/load/resp_client.h"

namespace sluice::bench {

inline constexpr std::string_view kNativeQueue = "exec";

class NativeWire {
 public:
  // `groups`, `keys`: their numbers; 0: none. `payload`: as made by QueueWire, with the id at
  // `payload_id_at`.
  NativeWire(std::string payload, size_t payload_id_at, uint64_t cap, uint64_t groups,
             uint64_t keys)
      : payload_(std::move(payload)), payload_id_at_(payload_id_at), groups_(groups), keys_(keys) {
    const size_t words = 6 + (groups > 0 ? 2 : 0) + (keys > 0 ? 2 : 0);
    add_head_ = "*" + std::to_string(words) + "\r\n";
    append_bulk(add_head_, "Q.ADD");
    append_bulk(add_head_, kNativeQueue);
    append_bulk(pop_ += "*5\r\n", "Q.POP");
    append_bulk(pop_, "1");
    append_bulk(pop_, kNativeQueue);
    append_bulk(pop_, "CAP");
    append_bulk(pop_, std::to_string(cap));
    append_bulk(ack_ += "*4\r\n", "Q.ACK");
    append_bulk(ack_, kNativeQueue);
    append_bulk(ack_pop_ += "*7\r\n", "Q.ACK");
    append_bulk(ack_pop_, kNativeQueue);
    append_bulk(ack_pop_tail_, "POP");
    append_bulk(ack_pop_tail_, "CAP");
    append_bulk(ack_pop_tail_, std::to_string(cap));
  }

  void append_add(std::string& out, uint64_t job) const {
    const JobId id = id_of(job);
    out.append(add_head_);
    append_bulk(out, std::string_view(id.data(), id.size()));
    char head[24];
    const int n = std::snprintf(head, sizeof head, "$%zu\r\n", payload_.size());
    out.append(head, static_cast<size_t>(n));
    const size_t payload_at = out.size();
    out.append(payload_);
    std::memcpy(out.data() + payload_at + payload_id_at_, id.data(), id.size());
    out.append("\r\n", 2);
    append_bulk(out, "PRI");
    append_bulk(out, std::to_string(job % 5));
    if (groups_ > 0) {
      append_bulk(out, "GROUP");
      append_bulk(out, "user:" + std::to_string(scramble(job) % groups_));
    }
    if (keys_ > 0) {
      append_bulk(out, "KEY");
      append_bulk(out, "lang:" + std::to_string(scramble(job) / 7 % keys_));
    }
  }

  void append_pop(std::string& out) const { out.append(pop_); }

  void append_ack(std::string& out, uint64_t job, uint64_t lease, bool and_pop) const {
    out.append(and_pop ? ack_pop_ : ack_);
    const JobId id = id_of(job);
    append_bulk(out, std::string_view(id.data(), id.size()));
    append_bulk(out, std::to_string(lease));
    if (and_pop) out.append(ack_pop_tail_);
  }

 private:
  std::string payload_;
  size_t payload_id_at_;
  uint64_t groups_, keys_;
  std::string add_head_, pop_, ack_, ack_pop_, ack_pop_tail_;
};

// Extracts the job and its lease from Q.POP's reply. Returns false if it is not such a reply.
inline bool read_popped(const Reply& reply, uint64_t& job, uint64_t& lease) {
  // [[name, value, ...]]: one job, its fields in RESP2's flat form.
  const Reply fields = parse_reply(reply.text);
  std::string_view rest = fields.text;
  job = lease = UINT64_MAX;
  while (!rest.empty()) {
    const Reply name = parse_reply(rest);
    rest.remove_prefix(name.size);
    const Reply value = parse_reply(rest);
    rest.remove_prefix(value.size);
    if (name.text == "id") job = job_of(value.text);
    if (name.text == "lease") lease = std::strtoull(value.text.data(), nullptr, 10);
    if (job != UINT64_MAX && lease != UINT64_MAX) return true;
  }
  return false;
}

}  // namespace sluice::bench

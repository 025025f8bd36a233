// Encodes the requests of the seed's execution queue, and the names of its jobs.
//
// A job is a number; its id is a UUID-shaped text whose last twelve digits are that number and
// whose first digits are scrambled, so that ids sort at random as the seed's do and still lead back
// to the job without a table. All functions append to a caller's buffer; no state, any thread.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

namespace sluice::bench {

inline constexpr std::string_view kActiveKey = "exec_queue:active";
inline constexpr std::string_view kPendingKey = "exec_queue:pending";
inline constexpr std::string_view kEventPrefix = "exec_queue:event:";
inline constexpr size_t kIdBytes = 36;
inline constexpr uint64_t kBandWidth = 1'000'000'000'000;

// Exactly as documented by the seed.
inline constexpr std::string_view kScheduleScript = R"(local active_key  = KEYS[1]
local pending_key = KEYS[2]
local max_active  = tonumber(ARGV[1])

local current = redis.call('SCARD', active_key)
if current >= max_active then
    return nil
end

local result = redis.call('ZPOPMIN', pending_key, 1)
if #result == 0 then
    return nil
end

local exec_id = result[1]
redis.call('SADD', active_key, exec_id)
return exec_id
)";

inline uint64_t scramble(uint64_t job) {
  uint64_t x = job + 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

using JobId = std::array<char, kIdBytes>;

inline void write_hex(char* out, uint64_t value, int digits) {
  static constexpr char kDigits[] = "0123456789abcdef";
  for (int i = digits - 1; i >= 0; --i, value >>= 4) out[i] = kDigits[value & 15];
}

inline JobId id_of(uint64_t job) {
  JobId id;
  const uint64_t random = scramble(job);
  write_hex(id.data(), random >> 32, 8);
  id[8] = '-';
  write_hex(id.data() + 9, random >> 16, 4);
  std::memcpy(id.data() + 13, "-4", 2);
  write_hex(id.data() + 15, random >> 4, 3);
  std::memcpy(id.data() + 18, "-8", 2);
  write_hex(id.data() + 20, random, 3);
  id[23] = '-';
  write_hex(id.data() + 24, job, 12);
  return id;
}

// The job with this id, or UINT64_MAX if the text is not one of our ids.
inline uint64_t job_of(std::string_view id) {
  if (id.size() != kIdBytes) return UINT64_MAX;
  uint64_t job = 0;
  for (const char c : id.substr(24)) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return UINT64_MAX;
    job = job << 4 | static_cast<uint64_t>(digit);
  }
  return job;
}

// The dispatch order of a job as far as it fits in 64 bits: the score, then the head of the member.
inline uint64_t order_of(uint64_t score, uint64_t job) { return score << 20 | scramble(job) >> 44; }

inline void append_bulk(std::string& out, std::string_view text) {
  char head[24];
  const int n = std::snprintf(head, sizeof head, "$%zu\r\n", text.size());
  out.append(head, static_cast<size_t>(n));
  out.append(text);
  out.append("\r\n", 2);
}

// Requests are copied from templates, because the load generator must cost less than the server.
class QueueWire {
 public:
  QueueWire(size_t payload_bytes, uint64_t cap, std::string_view sha)
      : payload_bytes_(payload_bytes) {
    append_bulk(zadd_head_ += "*4\r\n", "ZADD");
    append_bulk(zadd_head_, kPendingKey);
    append_bulk(set_head_ += "*5\r\n", "SET");
    set_tail_ = "\r\n";
    append_bulk(set_tail_, "EX");
    append_bulk(set_tail_, "86400");
    append_bulk(schedule_ += "*6\r\n", "EVALSHA");
    append_bulk(schedule_, sha);
    append_bulk(schedule_, "2");
    append_bulk(schedule_, kActiveKey);
    append_bulk(schedule_, kPendingKey);
    append_bulk(schedule_, std::to_string(cap));
    append_bulk(srem_head_ += "*3\r\n", "SREM");
    append_bulk(srem_head_, kActiveKey);
    append_bulk(del_head_ += "*2\r\n", "DEL");
    build_payload();
  }

  void append_zadd(std::string& out, const JobId& id, uint64_t score) const {
    out.append(zadd_head_);
    append_bulk(out, std::to_string(score));
    append_id(out, id);
  }

  void append_set(std::string& out, const JobId& id) const {
    out.append(set_head_);
    append_event_key(out, id);
    out.append(payload_head_);
    const size_t payload_at = out.size();
    out.append(payload_);
    std::memcpy(out.data() + payload_at + payload_id_at_, id.data(), id.size());
    out.append(set_tail_);
  }

  void append_schedule(std::string& out) const { out.append(schedule_); }

  const std::string& payload() const { return payload_; }
  size_t payload_id_at() const { return payload_id_at_; }

  void append_srem(std::string& out, const JobId& id) const {
    out.append(srem_head_);
    append_id(out, id);
  }

  void append_del(std::string& out, const JobId& id) const {
    out.append(del_head_);
    append_event_key(out, id);
  }

 private:
  // An event like the seed's JSON, cut or padded to the requested size.
  void build_payload() {
    payload_ = R"({"event_type":"execution_requested","execution_id":")";
    payload_id_at_ = payload_.size();
    payload_.append(kIdBytes, '0');
    payload_ += R"(","language":"python","language_version":"3.11","priority":"normal",)"
                R"("timeout_seconds":30,"cpu_limit":"1000m","memory_limit":"128Mi",)"
                R"("script":"print(sum(range(10)))\n)";
    if (payload_.size() + 2 < payload_bytes_) {
      static constexpr std::string_view kCode = "for i in range(100): print(i, i * i)\\n";
      for (size_t i = 0; payload_.size() + 2 < payload_bytes_; ++i) {
        payload_ += kCode[i % kCode.size()];
      }
      payload_ += "\"}";
    }
    payload_bytes_ = payload_.size();
    payload_head_ = "$" + std::to_string(payload_bytes_) + "\r\n";
  }

  static void append_id(std::string& out, const JobId& id) {
    out.append("$36\r\n", 5);
    out.append(id.data(), id.size());
    out.append("\r\n", 2);
  }

  static void append_event_key(std::string& out, const JobId& id) {
    static_assert(kEventPrefix.size() + kIdBytes == 53);
    out.append("$53\r\n", 5);
    out.append(kEventPrefix);
    out.append(id.data(), id.size());
    out.append("\r\n", 2);
  }

  size_t payload_bytes_;
  size_t payload_id_at_ = 0;
  std::string zadd_head_, set_head_, set_tail_, schedule_, srem_head_, del_head_;
  std::string payload_, payload_head_;
};

}  // namespace sluice::bench

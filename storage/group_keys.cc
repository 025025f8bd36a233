#include "storage/group_keys.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "engine/base/hex.h"
#include "engine/base/numbers.h"

namespace sluice {
namespace {

constexpr size_t kSeqDigits = 16;
constexpr size_t kMaxNameBytes = 64;
constexpr const char* kValueVersion = "1";

std::string name_field(const std::string& name) { return name.empty() ? "-" : name; }

// Takes the fields of a value one after the other; the first one that is wrong is remembered.
class FieldReader {
 public:
  FieldReader(const char* what, Bytes text) : what_(what), text_(text) {
    if (next() != kValueVersion) fail("version");
  }

  void number(const char* name, uint64_t& to) {
    const std::optional<uint64_t> value = parse_u64(next());
    if (!value.has_value()) return fail(name);
    to = *value;
  }
  void number(const char* name, int64_t& to) {
    const std::optional<int64_t> value = parse_i64(next());
    if (!value.has_value()) return fail(name);
    to = *value;
  }
  void number(const char* name, uint32_t& to) {
    uint64_t wide = 0;
    number(name, wide);
    if (wide > std::numeric_limits<uint32_t>::max()) return fail(name);
    to = static_cast<uint32_t>(wide);
  }
  void number(const char* name, uint16_t& to) {
    uint64_t wide = 0;
    number(name, wide);
    if (wide > std::numeric_limits<uint16_t>::max()) return fail(name);
    to = static_cast<uint16_t>(wide);
  }
  void text(const char* name, std::string& to) {
    const Bytes field = next();
    if (field.empty()) return fail(name);
    to = field == "-" ? "" : field;
  }
  void word(const char* wanted, bool& found) {
    if (next() != wanted) return fail(wanted);
    found = true;
  }
  void role(bool& primary) {
    const Bytes field = next();
    if (field != "primary" && field != "standby") return fail("role");
    primary = field == "primary";
  }
  void name(const char* name, std::string& to, bool may_be_empty = false) {
    const Bytes field = next();
    if (may_be_empty && field == "-") return to.clear();
    if (!is_group_name(field)) return fail(name);
    to = field;
  }
  void state(bool& ready) {
    const Bytes field = next();
    if (field != "ready" && field != "taken") return fail("state");
    ready = field == "ready";
  }

  bool more() const { return !at_end_; }

  Status finish() {
    if (!at_end_) fail("end");
    if (wrong_ == nullptr) return {};
    return {StatusCode::kDamaged,
            std::string("the ") + what_ + " \"" + std::string(text_) + "\" has a wrong " + wrong_};
  }

 private:
  Bytes next() {
    if (at_end_) return {};
    const size_t end = std::min(text_.find(' ', at_), text_.size());
    const Bytes field = text_.substr(at_, end - at_);
    at_end_ = end == text_.size();
    at_ = end + 1;
    return field;
  }
  void fail(const char* name) {
    if (wrong_ == nullptr) wrong_ = name;
  }

  const char* const what_;
  const Bytes text_;
  size_t at_ = 0;
  bool at_end_ = false;
  const char* wrong_ = nullptr;
};

template <typename Value>
Result<Value> result(FieldReader& fields, Value value) {
  if (Status status = fields.finish(); !status.ok()) return status;
  return value;
}

std::string join(const std::vector<std::string>& fields) {
  std::string text = kValueVersion;
  for (const std::string& field : fields) text += " " + field;
  return text;
}

}  // namespace

bool is_group_name(Bytes name) {
  if (name.empty() || name.size() > kMaxNameBytes || name == "-") return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '_' || c == '-';
  });
}

std::string GroupKeys::log(uint64_t seq) const {
  std::string digits(kSeqDigits, '0');
  for (size_t i = kSeqDigits; i-- != 0; seq >>= 4) digits[i] = kHexDigits[seq & 15];
  return logs() + digits;
}

std::optional<uint64_t> GroupKeys::log_seq(Bytes key) const {
  const std::string before = logs();
  if (key.size() != before.size() + kSeqDigits || !key.starts_with(before)) return std::nullopt;
  uint64_t seq = 0;
  for (const char c : key.substr(before.size())) {
    if (hex_value(c) < 0 || (c >= 'A' && c <= 'F')) return std::nullopt;
    seq = seq << 4 | static_cast<uint64_t>(hex_value(c));
  }
  return seq;
}

std::string encode_epoch(const EpochValue& value) {
  return join({value.cluster_id, std::to_string(value.epoch), name_field(value.holder),
               name_field(value.run_id), value.ready ? "ready" : "taken",
               name_field(value.preferred), std::to_string(value.base_lsn)});
}

Result<EpochValue> decode_epoch(Bytes text) {
  EpochValue value;
  FieldReader fields("epoch", text);
  fields.name("cluster id", value.cluster_id);
  fields.number("number", value.epoch);
  fields.name("holder", value.holder, true);
  fields.name("run id", value.run_id, true);
  fields.state(value.ready);
  fields.name("preferred node", value.preferred, true);
  fields.number("base lsn", value.base_lsn);
  return result(fields, std::move(value));
}

std::string encode_beat(const BeatValue& value) {
  return join({std::to_string(value.epoch), std::to_string(value.counter),
               std::to_string(value.seq), std::to_string(value.lsn),
               std::to_string(value.wall_ms)});
}

Result<BeatValue> decode_beat(Bytes text) {
  BeatValue value;
  FieldReader fields("beat", text);
  fields.number("epoch", value.epoch);
  fields.number("counter", value.counter);
  fields.number("seq", value.seq);
  fields.number("lsn", value.lsn);
  fields.number("time", value.wall_ms);
  return result(fields, value);
}

std::string encode_pause(const PauseValue& value) {
  return join({std::to_string(value.until_wall_ms), value.node});
}

Result<PauseValue> decode_pause(Bytes text) {
  PauseValue value;
  FieldReader fields("pause", text);
  fields.number("time", value.until_wall_ms);
  fields.name("node", value.node);
  return result(fields, std::move(value));
}

std::string encode_position(const LogPosition& value) {
  return join({value.cluster_id, value.group, std::to_string(value.epoch),
               std::to_string(value.seq), std::to_string(value.lsn), std::to_string(value.chain),
               std::to_string(value.bytes)});
}

Result<LogPosition> decode_position(Bytes text) {
  LogPosition value;
  FieldReader fields("position", text);
  fields.name("cluster id", value.cluster_id);
  fields.name("group", value.group);
  fields.number("epoch", value.epoch);
  fields.number("seq", value.seq);
  fields.number("lsn", value.lsn);
  fields.number("chain", value.chain);
  // Directories of older builds lack it: they count from there on.
  if (fields.more()) fields.number("bytes", value.bytes);
  return result(fields, std::move(value));
}

std::string encode_member(const GroupMember& value) {
  std::vector<std::string> fields = {value.run_id,
                                     name_field(value.host),
                                     std::to_string(value.port),
                                     std::to_string(value.tls_port),
                                     std::to_string(value.http_port),
                                     std::to_string(value.sentinel_port),
                                     std::to_string(value.priority),
                                     value.primary ? "primary" : "standby",
                                     std::to_string(value.lsn),
                                     std::to_string(value.checkpoint_lsn),
                                     std::to_string(value.checkpoint_bytes)};
  // Seldom, and older builds do not know it.
  if (value.wants_values) fields.emplace_back("values");
  return join(fields);
}

Result<GroupMember> decode_member(const std::string& name, Bytes text) {
  GroupMember value;
  value.name = name;
  FieldReader fields("record of a node", text);
  fields.name("run id", value.run_id);
  fields.text("host", value.host);
  fields.number("port", value.port);
  fields.number("tls port", value.tls_port);
  fields.number("http port", value.http_port);
  fields.number("sentinel port", value.sentinel_port);
  fields.number("priority", value.priority);
  fields.role(value.primary);
  fields.number("lsn", value.lsn);
  fields.number("checkpoint's lsn", value.checkpoint_lsn);
  fields.number("checkpoint's bytes", value.checkpoint_bytes);
  if (fields.more()) fields.word("values", value.wants_values);
  return result(fields, std::move(value));
}

}  // namespace sluice

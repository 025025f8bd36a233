#include "storage/group_keys.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

#include "engine/base/characters.h"
#include "engine/base/hex.h"
#include "engine/base/numbers.h"

namespace sluice {
namespace {

constexpr size_t kDigits = 16;  // hexadecimal
constexpr size_t kMaxGroupNameBytes = 64;
constexpr const char* kValueVersion = "1";

// So many that texts compare as their numbers do.
std::string digits_of(uint64_t number) {
  std::string digits(kDigits, '0');
  for (size_t i = kDigits; i-- != 0; number >>= 4) digits[i] = kHexDigits[number & 15];
  return digits;
}

std::optional<uint64_t> parse_digits(Bytes digits) {
  if (digits.size() != kDigits) return std::nullopt;
  uint64_t number = 0;
  for (const char c : digits) {
    if (hex_value(c) < 0 || (c >= 'A' && c <= 'F')) return std::nullopt;
    number = number << 4 | static_cast<uint64_t>(hex_value(c));
  }
  return number;
}

// The fields of a value are named once, in the order of its text, by a function that FieldWriter
// and FieldReader both take.
class FieldWriter {
 public:
  template <typename Number>
  void number(const char*, Number value) {
    text_ += " " + std::to_string(value);
  }
  void text(const char*, const std::string& value) { text_ += value.empty() ? " -" : " " + value; }
  void name(const char* name, const std::string& value) { text(name, value); }
  void name_or_none(const char* name, const std::string& value) { text(name, value); }
  void choice(const char*, bool value, const char* yes, const char* no) {
    text_ += std::string(" ") + (value ? yes : no);
  }
  // In front only, so that texts compare by it, and above those of older builds, which lack it.
  void order(const char*, uint64_t value) { text_ += " n" + digits_of(value); }
  // At the end only, as older builds do not have them.
  template <typename Number>
  void last_number(const char* name, Number value) {
    number(name, value);
  }
  void word(const char* word, bool value) {
    if (value) text_ += std::string(" ") + word;
  }
  void word(const char* name, const std::string& value) {
    if (!value.empty()) text_ += std::string(" ") + name + "=" + value;
  }
  void other_words() {}

  std::string finish() { return std::move(text_); }

 private:
  std::string text_ = kValueVersion;
};

// Takes the fields of a value one after the other; the first one that is wrong is remembered.
class FieldReader {
 public:
  FieldReader(const char* what, Bytes text) : what_(what), text_(text) {
    if (next() != kValueVersion) fail("version");
  }

  template <typename Number>
  void number(const char* name, Number& to) {
    const auto value = parse<Number>(next());
    if (!value || *value > std::numeric_limits<Number>::max()) return fail(name);
    to = static_cast<Number>(*value);
  }
  void text(const char* name, std::string& to) {
    const Bytes field = next();
    if (field.empty()) return fail(name);
    to = field == "-" ? "" : field;
  }
  void name(const char* name, std::string& to) {
    to = next();
    if (!is_group_name(to)) fail(name);
  }
  void name_or_none(const char* name, std::string& to) {
    text(name, to);
    if (!to.empty() && !is_group_name(to)) fail(name);
  }
  void choice(const char* name, bool& to, const char* yes, const char* no) {
    const Bytes field = next();
    if (field != yes && field != no) return fail(name);
    to = field == yes;
  }
  void order(const char* name, uint64_t& to) {
    if (at_end_ || !text_.substr(at_).starts_with('n')) return;
    const auto value = parse_digits(next().substr(1));
    if (!value) return fail(name);
    to = *value;
  }
  template <typename Number>
  void last_number(const char* name, Number& to) {
    if (!at_end_) number(name, to);
  }
  void word(const char* word, bool& to) {
    each_word([&](Bytes found) { to |= found == word; });
  }
  // What is no name is as good as absent.
  void word(const char* name, std::string& to) {
    const std::string before = std::string(name) + "=";
    each_word([&](Bytes found) {
      const Bytes value = found.substr(std::min(before.size(), found.size()));
      if (found.starts_with(before) && is_group_name(value)) to = value;
    });
  }
  void other_words() { at_end_ = true; }

  Status finish() {
    if (!at_end_) fail("end");
    if (wrong_ == nullptr) return {};
    return {StatusCode::kDamaged,
            std::string("the ") + what_ + " \"" + std::string(text_) + "\" has a wrong " + wrong_};
  }

 private:
  template <typename Number>
  static auto parse(Bytes field) {
    if constexpr (std::is_signed_v<Number>) {
      return parse_i64(field);
    } else {
      return parse_u64(field);
    }
  }
  Bytes next() {
    if (at_end_) return {};
    const size_t end = std::min(text_.find(' ', at_), text_.size());
    const Bytes field = text_.substr(at_, end - at_);
    at_end_ = end == text_.size();
    at_ = end + 1;
    return field;
  }
  template <typename Look>
  void each_word(Look look) const {
    for (FieldReader rest = *this; !rest.at_end_;) look(rest.next());
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

template <typename Fields, typename Value>
std::string encode(Fields each_field, const Value& value) {
  FieldWriter fields;
  each_field(fields, value);
  return fields.finish();
}

template <typename Fields, typename Value>
Result<Value> decode(const char* what, Fields each_field, Bytes text, Value value) {
  FieldReader fields(what, text);
  each_field(fields, value);
  if (Status status = fields.finish(); !status.ok()) return status;
  return value;
}

constexpr auto kEpochFields = [](auto& fields, auto& value) {
  fields.name("cluster id", value.cluster_id);
  fields.number("number", value.epoch);
  fields.name_or_none("holder", value.holder);
  fields.name_or_none("run id", value.run_id);
  fields.choice("state", value.ready, "ready", "taken");
  fields.name_or_none("preferred node", value.preferred);
  fields.number("base lsn", value.base_lsn);
  fields.number("failover timeout", value.failover_timeout_ms);
};

constexpr auto kBeatFields = [](auto& fields, auto& value) {
  fields.number("epoch", value.epoch);
  fields.number("counter", value.counter);
  fields.number("seq", value.seq);
  fields.number("lsn", value.lsn);
  fields.number("time", value.wall_ms);
};

constexpr auto kPauseFields = [](auto& fields, auto& value) {
  fields.order("number", value.number);
  fields.number("time", value.until_wall_ms);
  fields.name("node", value.node);
};

constexpr auto kPositionFields = [](auto& fields, auto& value) {
  fields.name("cluster id", value.cluster_id);
  fields.name("group", value.group);
  fields.number("epoch", value.epoch);
  fields.number("seq", value.seq);
  fields.number("lsn", value.lsn);
  fields.number("chain", value.chain);
  // Directories of older builds lack it: they count from there on.
  fields.last_number("bytes", value.bytes);
};

constexpr auto kMemberFields = [](auto& fields, auto& value) {
  fields.name("run id", value.run_id);
  fields.text("host", value.host);
  fields.number("port", value.port);
  fields.number("tls port", value.tls_port);
  fields.number("http port", value.http_port);
  fields.number("sentinel port", value.sentinel_port);
  fields.number("priority", value.priority);
  fields.choice("role", value.primary, "primary", "standby");
  fields.number("lsn", value.lsn);
  fields.number("checkpoint's lsn", value.checkpoint_lsn);
  fields.number("checkpoint's bytes", value.checkpoint_bytes);
  fields.word("values", value.wants_values);
  fields.word("starting", value.starting);
  fields.word("version", value.version);
  fields.word("config", value.config_mark);
  fields.word("users", value.users_mark);
  fields.other_words();
};

}  // namespace

bool is_group_name(Bytes name) {
  if (name.empty() || name.size() > kMaxGroupNameBytes || name == "-") return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-';
  });
}

std::string GroupKeys::log(uint64_t seq) const { return logs() + digits_of(seq); }

std::optional<uint64_t> GroupKeys::log_seq(Bytes key) const {
  const std::string before = logs();
  if (!key.starts_with(before)) return std::nullopt;
  return parse_digits(key.substr(before.size()));
}

std::string encode_epoch(const EpochValue& value) { return encode(kEpochFields, value); }

Result<EpochValue> decode_epoch(Bytes text) {
  return decode("epoch", kEpochFields, text, EpochValue());
}

std::string encode_beat(const BeatValue& value) { return encode(kBeatFields, value); }

Result<BeatValue> decode_beat(Bytes text) { return decode("beat", kBeatFields, text, BeatValue()); }

std::string encode_pause(const PauseValue& value) { return encode(kPauseFields, value); }

Result<PauseValue> decode_pause(Bytes text) {
  return decode("pause", kPauseFields, text, PauseValue());
}

std::string encode_position(const LogPosition& value) { return encode(kPositionFields, value); }

Result<LogPosition> decode_position(Bytes text) {
  return decode("position", kPositionFields, text, LogPosition());
}

std::string encode_member(const GroupMember& value) { return encode(kMemberFields, value); }

Result<GroupMember> decode_member(const std::string& name, Bytes text) {
  GroupMember value;
  value.name = name;
  return decode("record of a node", kMemberFields, text, std::move(value));
}

}  // namespace sluice

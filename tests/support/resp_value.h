// RespValue: a RESP2 or RESP3 reply as a tree, for tests that look into replies.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::test {

struct RespValue {
  enum class Kind : uint8_t { kNull, kText, kError, kArray, kMap };
  Kind kind = Kind::kNull;
  // The text or error; numbers and statuses are stored as text too.
  std::string text;
  // Elements of an array; for a map its keys and values, alternating.
  std::vector<RespValue> items;

  static RespValue of(std::string text) { return {Kind::kText, std::move(text), {}}; }
  static RespValue of(int64_t number) { return of(std::to_string(number)); }
  static RespValue error(std::string text) { return {Kind::kError, std::move(text), {}}; }
  static RespValue array(std::vector<RespValue> items = {}) {
    return {Kind::kArray, {}, std::move(items)};
  }
  static RespValue map() { return {Kind::kMap, {}, {}}; }

  bool is_null() const { return kind == Kind::kNull; }
  bool is_error() const { return kind == Kind::kError; }
  size_t size() const { return kind == Kind::kMap ? items.size() / 2 : items.size(); }

  RespValue& put(std::string key, RespValue value) {
    items.push_back(of(std::move(key)));
    items.push_back(std::move(value));
    return *this;
  }
  RespValue& put(std::string key, std::string value) {
    return put(std::move(key), of(std::move(value)));
  }
  RespValue& put(std::string key, int64_t value) { return put(std::move(key), of(value)); }

  // In a map or a flat array of pairs (RESP2); null if the key is missing.
  const RespValue* find(std::string_view key) const {
    for (size_t i = 0; i + 1 < items.size(); i += 2) {
      if (items[i].text == key) return &items[i + 1];
    }
    return nullptr;
  }
  // The text of a key's value; "null" for a null, "absent" if the key is missing.
  std::string field(std::string_view key) const {
    const RespValue* value = find(key);
    return value == nullptr ? "absent" : value->show();
  }
  int64_t number(std::string_view key) const { return std::atoll(field(key).c_str()); }

  // For messages and for comparing: `{a=1 b=[x y]}`, `-ERR text`, `null`.
  std::string show() const {
    switch (kind) {
      case Kind::kNull:
        return "null";
      case Kind::kText:
        return text;
      case Kind::kError:
        return "-" + text;
      case Kind::kArray:
      case Kind::kMap:
        break;
    }
    std::string out = kind == Kind::kMap ? "{" : "[";
    for (size_t i = 0; i < items.size(); ++i) {
      if (i != 0) out += kind == Kind::kMap && i % 2 == 1 ? '=' : ' ';
      out += items[i].show();
    }
    return out + (kind == Kind::kMap ? '}' : ']');
  }
};

// Removes one value from the front of `reply`. Invalid RESP gives an error that says so.
inline RespValue parse_resp(std::string_view& reply) {
  const size_t end = reply.find("\r\n");
  if (reply.empty() || end == std::string_view::npos) {
    reply = {};
    return RespValue::error("not RESP");
  }
  const char type = reply[0];
  const std::string line(reply.substr(1, end - 1));
  reply.remove_prefix(end + 2);
  const int64_t size = std::atoll(line.c_str());
  switch (type) {
    case '$':
    case '=': {
      if (size < 0) return {};
      RespValue value = RespValue::of(std::string(reply.substr(0, static_cast<size_t>(size))));
      reply.remove_prefix(static_cast<size_t>(size) + 2);
      return value;
    }
    case '*':
    case '~':
    case '>':
    case '%': {
      if (size < 0) return {};
      RespValue value{type == '%' ? RespValue::Kind::kMap : RespValue::Kind::kArray, {}, {}};
      const int64_t count = type == '%' ? size * 2 : size;
      for (int64_t i = 0; i < count; ++i) value.items.push_back(parse_resp(reply));
      return value;
    }
    case '_':
      return {};
    case '-':
      return RespValue::error(line);
    default:
      return RespValue::of(line);
  }
}

inline RespValue resp_value(std::string_view reply) { return parse_resp(reply); }

}  // namespace sluice::test

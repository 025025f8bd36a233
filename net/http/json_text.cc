#include "net/http/json_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/base/hex.h"

namespace sluice {

namespace {

using nlohmann::json;
using Kind = RespValue::Kind;

constexpr Bytes kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// The length of the well-formed UTF-8 character at the start, or 0.
size_t utf8_length(Bytes bytes) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || bytes.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Reject overlong forms, surrogates, and code points above U+10FFFF.
  if (first == 0xe0 && byte(1) < 0xa0) return 0;
  if (first == 0xed && byte(1) > 0x9f) return 0;
  if (first == 0xf0 && byte(1) < 0x90) return 0;
  if (first == 0xf4 && byte(1) > 0x8f) return 0;
  return length;
}

int base64_digit(char c) {
  if (c == '-') return 62;
  if (c == '_') return 63;
  const size_t digit = kBase64.find(c);
  return digit == Bytes::npos ? -1 : static_cast<int>(digit);
}

// Whether brackets nest too deeply. Malformed JSON is left to the parser.
bool is_too_deep(Bytes text) {
  size_t depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxJsonDepth) return true;
    } else if ((c == ']' || c == '}') && depth != 0) {
      --depth;
    }
  }
  return false;
}

// Keeps one member of the object that is parsed.
class MemberReader final : public json::json_sax_t {
 public:
  explicit MemberReader(Bytes name) : name_(name) {}

  std::optional<json> take() { return std::move(found_); }

  bool null() override { return keep(nullptr); }
  bool boolean(bool value) override { return keep(value); }
  bool number_integer(int64_t value) override { return keep(value); }
  bool number_unsigned(uint64_t value) override { return keep(value); }
  bool number_float(double value, const std::string&) override { return keep(value); }
  bool string(std::string& value) override { return keep(std::move(value)); }
  bool binary(json::binary_t&) override { return false; }
  bool start_object(size_t) override { return (depth_ == 0 || keep(json::object())) && begin(); }
  bool end_object() override { return end(); }
  bool start_array(size_t) override { return keep(json::object()) && begin(); }
  bool end_array() override { return end(); }
  bool key(std::string& name) override {
    if (depth_ == 1) here_ = name == name_;
    return true;
  }
  bool parse_error(size_t, const std::string&, const json::exception&) override { return false; }

 private:
  // False if the text is not an object.
  template <class Value>
  bool keep(Value&& value) {
    if (depth_ == 1 && here_) found_ = json(std::forward<Value>(value));
    return depth_ != 0;
  }
  bool begin() { return ++depth_ <= kMaxJsonDepth; }
  bool end() {
    --depth_;
    return true;
  }

  const Bytes name_;
  size_t depth_ = 0;
  bool here_ = false;  // the value of a member of this name follows, or is being read
  std::optional<json> found_;
};

}  // namespace

std::optional<json> parse_member(Bytes text, Bytes name) {
  MemberReader reader(name);
  return json::sax_parse(text, &reader) ? reader.take() : std::nullopt;
}

json parse_json(Bytes text) {
  if (is_too_deep(text)) return json::value_t::discarded;
  return json::parse(text, nullptr, false);
}

bool is_utf8(Bytes bytes) {
  while (!bytes.empty()) {
    const size_t length = utf8_length(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

std::string to_base64(Bytes bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (size_t k = 0; k < 4; ++k) {
      out += i + k > bytes.size() ? '=' : kBase64[group >> (18 - 6 * k) & 63];
    }
  }
  return out;
}

std::optional<std::string> from_base64(Bytes text) {
  const bool padded = text.ends_with('=');
  if (padded && text.size() % 4 != 0) return std::nullopt;
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  if (text.size() % 4 == 1) return std::nullopt;
  std::string out;
  out.reserve(text.size() * 3 / 4);
  uint32_t group = 0;
  unsigned bits = 0;
  for (const char c : text) {
    const int digit = base64_digit(c);
    if (digit < 0) return std::nullopt;
    group = group << 6 | static_cast<uint32_t>(digit);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    out += static_cast<char>(group >> bits & 0xff);
  }
  return out;
}

json text_to_json(Bytes bytes) {
  if (is_utf8(bytes)) return std::string(bytes);
  return {{"base64", to_base64(bytes)}};
}

std::string name_to_json(Bytes name) {
  constexpr Bytes kMark = "base64:";
  const bool plain = is_utf8(name) && !name.starts_with(kMark);
  return plain ? std::string(name) : std::string(kMark) + to_base64(name);
}

void put_bytes(json& object, const std::string& name, Bytes bytes) {
  if (is_utf8(bytes)) {
    object[name] = std::string(bytes);
    return;
  }
  object[name] = nullptr;
  object[name + "_base64"] = to_base64(bytes);
}

json resp_to_json(const RespValue& value) {
  switch (value.kind) {
    case Kind::kNull:
      return nullptr;
    case Kind::kInteger:
      return value.integer;
    case Kind::kDouble:
      return std::isfinite(value.number) ? json(value.number) : json(nullptr);
    case Kind::kBoolean:
      return value.integer != 0;
    case Kind::kText:
    case Kind::kError:
      return text_to_json(value.text);
    case Kind::kArray: {
      json array = json::array();
      for (const RespValue& item : value.items) array.push_back(resp_to_json(item));
      return array;
    }
    case Kind::kMap: {
      json object = json::object();
      for (size_t i = 0; i + 1 < value.items.size(); i += 2) {
        put_value(object, name_to_json(value.items[i].text), value.items[i + 1]);
      }
      return object;
    }
  }
  return nullptr;
}

void put_value(json& object, const std::string& name, const RespValue& value) {
  if (value.kind == Kind::kText) {
    put_bytes(object, name, value.text);
  } else {
    object[name] = resp_to_json(value);
  }
}

namespace {

void append_escaped(char c, std::string& to) {
  constexpr Bytes kSpecial = "\"\\\b\f\n\r\t";
  constexpr Bytes kNames = "\"\\bfnrt";
  const size_t special = kSpecial.find(c);
  if (special != Bytes::npos) {
    to += '\\';
    to += kNames[special];
  } else if (static_cast<unsigned char>(c) < 0x20) {
    to += "\\u00";
    to += kHexDigits[static_cast<size_t>(c) >> 4U];
    to += kHexDigits[static_cast<size_t>(c) & 15U];
  } else {
    to += c;
  }
}

// The text must be UTF-8.
void append_quoted(Bytes text, std::string& to) {
  to += '"';
  for (size_t at = 0; at < text.size();) {
    const auto* special = std::find_if(text.begin() + at, text.end(), [](char c) {
      return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\';
    });
    const auto end = static_cast<size_t>(special - text.begin());
    to.append(text.substr(at, end - at));
    if (end < text.size()) append_escaped(text[end], to);
    at = end + 1;
  }
  to += '"';
}

}  // namespace

void append_member(Bytes name, const RespValue& value, std::string& to) {
  to.append("\"").append(name);
  if (value.kind == Kind::kText && !is_utf8(value.text)) {
    to.append("\":null,\"").append(name).append("_base64\":\"");
    to.append(to_base64(value.text)).append("\"");
    return;
  }
  to += "\":";
  append_json(value, to);
}

void append_json(const RespValue& value, std::string& to) {
  switch (value.kind) {
    case Kind::kInteger:
      to += std::to_string(value.integer);
      return;
    case Kind::kText:
    case Kind::kError:
      if (is_utf8(value.text)) return append_quoted(value.text, to);
      to.append("{\"base64\":\"").append(to_base64(value.text)).append("\"}");
      return;
    case Kind::kArray:
      to += '[';
      for (size_t i = 0; i < value.items.size(); ++i) {
        if (i != 0) to += ',';
        append_json(value.items[i], to);
      }
      to += ']';
      return;
    case Kind::kMap:
      to += '{';
      for (size_t i = 0; i + 1 < value.items.size(); i += 2) {
        if (i != 0) to += ',';
        std::string name;
        append_quoted(name_to_json(value.items[i].text), name);
        append_member(Bytes(name).substr(1, name.size() - 2), value.items[i + 1], to);
      }
      to += '}';
      return;
    case Kind::kNull:
    case Kind::kDouble:
    case Kind::kBoolean:
      to += dump_json(resp_to_json(value));
      return;
  }
}

json config_to_json(const RespValue& config) {
  json object = resp_to_json(config);
  for (auto& [name, value] : object.items()) {
    // Names of bands may look like numbers.
    if (!value.is_string() || name == "bands") continue;
    const auto& text = value.get_ref<const std::string&>();
    double number = 0;
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, number);
    if (parsed.ec != std::errc() || parsed.ptr != end || !std::isfinite(number)) continue;
    const auto integer = static_cast<int64_t>(number);
    value = static_cast<double>(integer) == number ? json(integer) : json(number);
  }
  return object;
}

std::string dump_json(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace sluice

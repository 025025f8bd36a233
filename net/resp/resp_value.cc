#include "net/resp/resp_value.h"

#include <cmath>

#include "engine/base/numbers.h"

namespace sluice {

namespace {

using Kind = RespValue::Kind;

Bytes take_line(Bytes& bytes) {
  const size_t end = bytes.find("\r\n");
  CHECK(end != Bytes::npos);
  const Bytes line = bytes.substr(0, end);
  bytes.remove_prefix(end + 2);
  return line;
}

int64_t number_of(Bytes line) {
  const auto number = parse_i64(line);
  CHECK(number.has_value());
  return *number;
}

std::string take_bulk(Bytes& bytes, int64_t size) {
  const auto count = static_cast<size_t>(size);
  CHECK(bytes.size() >= count + 2);
  std::string text(bytes.substr(0, count));
  bytes.remove_prefix(count + 2);
  return text;
}

void take_items(Bytes& bytes, int64_t count, RespValue& value) {
  value.items.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) value.items.push_back(parse_resp_value(bytes));
}

void take_sized(char type, Bytes& bytes, int64_t size, RespValue& value) {
  if (size < 0) return;
  switch (type) {
    case '$':
      value.kind = Kind::kText;
      value.text = take_bulk(bytes, size);
      return;
    case '=':
      value.kind = Kind::kText;
      value.text = take_bulk(bytes, size).substr(4);
      return;
    case '!':
      value.kind = Kind::kError;
      value.text = take_bulk(bytes, size);
      return;
    case '*':
    case '~':
      value.kind = Kind::kArray;
      return take_items(bytes, size, value);
    case '%':
      value.kind = Kind::kMap;
      return take_items(bytes, size * 2, value);
    default:
      CHECK(false);
  }
}

}  // namespace

RespValue parse_resp_value(Bytes& bytes) {
  CHECK(!bytes.empty());
  RespValue value;
  const char type = bytes[0];
  bytes.remove_prefix(1);
  const Bytes line = take_line(bytes);
  switch (type) {
    case '+':
    case '(':
      value.kind = Kind::kText;
      value.text = line;
      break;
    case '-':
      value.kind = Kind::kError;
      value.text = line;
      break;
    case ':':
      value.kind = Kind::kInteger;
      value.integer = number_of(line);
      break;
    case ',':
      value.kind = Kind::kDouble;
      value.number = parse_double(line).value_or(std::nan(""));
      break;
    case '#':
      value.kind = Kind::kBoolean;
      value.integer = line == "t" ? 1 : 0;
      break;
    case '_':
      break;
    default:
      take_sized(type, bytes, number_of(line), value);
  }
  return value;
}

const RespValue* RespValue::find(Bytes name) const {
  for (size_t i = 0; kind == Kind::kMap && i + 1 < items.size(); i += 2) {
    if (items[i].text == name) return &items[i + 1];
  }
  return nullptr;
}

const RespValue& RespValue::at(Bytes name) const {
  const RespValue* value = find(name);
  CHECK(value != nullptr);
  return *value;
}

double RespValue::as_number() const {
  if (kind == Kind::kInteger) return static_cast<double>(integer);
  return kind == Kind::kDouble ? number : 0;
}

}  // namespace sluice

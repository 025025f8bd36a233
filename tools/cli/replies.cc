#include "tools/cli/replies.h"

#include <algorithm>
#include <array>

#include "engine/base/numbers.h"

namespace sluice::cli {

namespace {

using Kind = RespValue::Kind;

// Maps with arbitrary names, whose values stay as they are.
constexpr std::array<Bytes, 7> kOpenMaps = {"by_priority", "rejected",     "tags",   "adopted",
                                            "kept",        "need_results", "options"};
// Yes or no.
constexpr std::array<Bytes, 4> kBooleans = {"successor", "truncated", "quiet", "complete"};
// Durations: maps in statistics, a number or null in a job.
constexpr std::array<Bytes, 2> kDurations = {"wait_ms", "run_ms"};

template <size_t kCount>
bool is_one_of(const std::array<Bytes, kCount>& names, Bytes name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void make_number(RespValue& value) {
  if (value.kind != Kind::kText) return;
  const auto number = parse_double(value.text);
  if (!number) return;
  value = {};
  value.kind = Kind::kDouble;
  value.number = *number;
}

RespValue text_value(std::string text) {
  RespValue value;
  value.kind = Kind::kText;
  value.text = std::move(text);
  return value;
}

void make_member(Bytes name, RespValue& value) {
  if (value.kind == Kind::kArray && is_one_of(kOpenMaps, name)) {
    value.kind = Kind::kMap;
  } else if (value.kind == Kind::kArray && is_one_of(kDurations, name)) {
    value = as_map(std::move(value));
  } else if (value.kind == Kind::kArray && name == "rates") {
    value.kind = Kind::kMap;
    for (size_t i = 1; i < value.items.size(); i += 2) make_number(value.items[i]);
  } else if (name == "utilization" || name == "mean") {
    make_number(value);
  } else if (is_one_of(kBooleans, name) && value.kind == Kind::kInteger) {
    value.kind = Kind::kBoolean;
  }
}

}  // namespace

RespValue as_map(RespValue reply) {
  if (reply.kind != Kind::kArray) return reply;
  reply.kind = Kind::kMap;
  for (size_t i = 0; i + 1 < reply.items.size(); i += 2) {
    make_member(reply.items[i].text, reply.items[i + 1]);
  }
  return reply;
}

RespValue as_maps(RespValue reply) {
  reply.kind = Kind::kArray;
  for (RespValue& item : reply.items) item = as_map(std::move(item));
  return reply;
}

RespValue as_map_of_maps(RespValue reply) {
  reply.kind = Kind::kMap;
  for (size_t i = 1; i < reply.items.size(); i += 2) {
    reply.items[i] = as_map(std::move(reply.items[i]));
  }
  return reply;
}

RespValue as_events(RespValue reply) {
  constexpr std::array<Bytes, 5> kNames = {"seq", "time", "type", "id", "fields"};
  reply.kind = Kind::kArray;
  for (RespValue& event : reply.items) {
    RespValue line;
    line.kind = Kind::kMap;
    for (size_t i = 0; i < kNames.size() && i < event.items.size(); ++i) {
      line.items.push_back(text_value(std::string(kNames[i])));
      line.items.push_back(std::move(event.items[i]));
    }
    if (event.items.size() >= kNames.size()) line.items.back().kind = Kind::kMap;
    event = std::move(line);
  }
  return reply;
}

std::string text_of(const RespValue& map, Bytes name) {
  const RespValue* value = map.find(name);
  return value == nullptr ? std::string() : value->text;
}

int64_t integer_of(const RespValue& map, Bytes name, int64_t otherwise) {
  const RespValue* value = map.find(name);
  const bool counts =
      value != nullptr && (value->kind == Kind::kInteger || value->kind == Kind::kBoolean);
  return counts ? value->integer : otherwise;
}

double number_of(const RespValue& map, Bytes name, Bytes member) {
  const RespValue* inner = map.find(name);
  const RespValue* value = inner == nullptr ? nullptr : inner->find(member);
  return value == nullptr ? 0 : value->as_number();
}

std::string info_field(const std::string& info, const std::string& name) {
  const size_t begin = info.find("\n" + name + ":");
  if (begin == std::string::npos) return {};
  const size_t from = begin + name.size() + 2;
  return info.substr(from, info.find_first_of("\r\n", from) - from);
}

}  // namespace sluice::cli

// The fields of a queue's configuration: the table of their names, levels and defaults, and the
// parsers of their texts.
//
// Pure functions of their arguments; the table is constant.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/queue/queue_config.h"

namespace sluice {

// A field that is being parsed: its text, and the values that receive it, which already hold the
// bands.
struct Reading {
  Bytes text;
  QueueValues& values;
  std::string canonical;  // the value as Q.CONFIG GET replies it
};

struct ConfigRow {
  Bytes name;
  unsigned levels;  // bits of ConfigLevel
  Bytes default_text;
  // Parses the text into the values and sets its canonical form. Returns false for an invalid
  // value.
  bool (*read)(Reading& reading);
  // Null for fields that only the queue has.
  void (*copy)(const GroupConfig& from, GroupConfig& to) = nullptr;

  bool stands_at(ConfigLevel level) const {
    return (levels & (1U << static_cast<unsigned>(level))) != 0;
  }
};

inline constexpr size_t kConfigFields = 30;
inline constexpr uint64_t kMaxPayload = 512ULL << 20;  // of any max_payload

// In the order of Q.CONFIG GET. `priority_order` and `bands` come first, since others may name
// bands.
std::span<const ConfigRow, kConfigFields> config_fields();
// Ignores case. Returns null if there is no such field at this level.
const ConfigRow* find_config_row(Bytes name, ConfigLevel level);
// At any level.
const ConfigRow* find_config_row(Bytes name);
// The text that applies while `field` is not set at the queue.
Bytes default_text(const ConfigRow& field, const QueueValues& values);

// Parses each field of a queue, from `given` or its default, and makes the given texts canonical.
// Returns an empty text, or the name of the first field with an invalid value, for which the
// default is used.
Bytes read_fields(std::vector<ConfigField>& given, QueueValues& values);

// The values that exist for groups and keys as well.
GroupConfig shared_values(const QueueValues& values);

struct NamedBand {
  uint8_t stored = 0;
  std::string canonical;  // its number, or its name as spelled in `bands`
};
// Parses a band as clients write it: its number, or its name in any case.
std::optional<NamedBand> read_band(Bytes text, const QueueValues& values);

}  // namespace sluice

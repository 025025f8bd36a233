// The fields of a queue's configuration: the one table of their names, where each may stand, their
// defaults, and how their texts are read. QueueConfig alone uses it.
//
// Pure functions of their arguments; the table is constant.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/queue/queue_config.h"

namespace sluice {

// A field being read: its text, and the values that it goes into; they hold the bands already.
struct Reading {
  Bytes text;
  QueueValues& values;
  std::string canonical;  // the same value as Q.CONFIG GET says it
};

struct ConfigRow {
  Bytes name;
  unsigned levels;  // bits of ConfigLevel
  Bytes default_text;
  // Reads the text into the values and says it in its canonical form. False: a bad value.
  bool (*read)(Reading& reading);
  // Null for fields of the queue alone.
  void (*copy)(const GroupConfig& from, GroupConfig& to) = nullptr;

  bool stands_at(ConfigLevel level) const {
    return (levels & (1U << static_cast<unsigned>(level))) != 0;
  }
};

inline constexpr size_t kConfigFields = 27;

// In the order of Q.CONFIG GET. `priority_order` and `bands` stand first, since others may name
// bands.
std::span<const ConfigRow, kConfigFields> config_fields();
// Without regard to case. Null: no such field, or not at this level.
const ConfigRow* find_config_row(Bytes name, ConfigLevel level);
// The text that counts where `field` was not set at the queue.
Bytes default_text(const ConfigRow& field, const QueueValues& values);

// Reads the default of each field of a queue and what `given` says in its place, and makes the
// given texts canonical. Empty, or the name of the first field with a bad value, whose default
// counts.
Bytes read_fields(std::vector<ConfigField>& given, QueueValues& values);

// The values that groups and keys have as well.
GroupConfig shared_values(const QueueValues& values);

// A band as callers write it: its number, or its name without regard to case. `canonical`: the
// number, or the name as `bands` spells it. False: no such band.
bool read_band(Bytes text, const QueueValues& values, uint8_t& band, std::string& canonical);

}  // namespace sluice

// The common part of the rows of EVAL and FCALL: commands that run Lua on a counted number of keys.
#pragma once

#include "engine/table/command.h"

namespace sluice {

inline constexpr uint32_t kRunsLua =
    kNoScript | kStale | kSkipMonitor | kNoMandatoryKeys | kMovableKeys | kScriptShards;

constexpr KeySpec with_note(KeySpec spec, const char* note) {
  spec.notes = note;
  return spec;
}

inline constexpr KeySpec kWrittenKeys = counted_keys_at(2, kKeyRw | kKeyAccess | kKeyUpdate);
inline constexpr KeySpec kReadKeys = counted_keys_at(2, kKeyRo | kKeyAccess);
// In Redis the rows of EVALSHA lack these notes.
inline constexpr KeySpec kNotedWrittenKeys = with_note(
    kWrittenKeys, "We cannot tell how the keys will be used so we assume the worst, RW and UPDATE");
inline constexpr KeySpec kNotedReadKeys = with_note(
    kReadKeys, "We cannot tell how the keys will be used so we assume the worst, RO and ACCESS");

}  // namespace sluice

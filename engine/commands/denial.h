// Why a command is refused, where scripts and EXEC say it in other words than dispatch does.
#pragma once

#include <string>

#include "engine/base/bytes.h"
#include "engine/engine.h"

namespace sluice {

enum class DeniedThing { kNothing, kCommand, kKey, kChannel };

// What an error of Acl::check is about.
inline DeniedThing denied_thing(Bytes error) {
  if (error.empty()) return DeniedThing::kNothing;
  if (error.find("of the keys") != Bytes::npos) return DeniedThing::kKey;
  if (error.find("of the channels") != Bytes::npos) return DeniedThing::kChannel;
  return DeniedThing::kCommand;
}

// The error for a command that grows the data, when there is no room. Empty: there is.
std::string refuse_growth(Engine& engine);

}  // namespace sluice

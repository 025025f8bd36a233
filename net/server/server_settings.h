// Applies the configuration: limits of the network side, options of the engine and of storage;
// users.
#pragma once

#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/execution/engine.h"
#include "net/config/settings.h"
#include "net/io/server_state.h"
#include "storage/store.h"

namespace sluice {

// Converts configuration values for storage.
SyncMode sync_mode(AppendFsync appendfsync);
std::vector<SaveRule> save_rules(const Settings& settings);

// At the start, and within CONFIG SET.
void apply_settings(const Settings& settings, ServerState& state, Engine& engine);

// At the start: the users of the ACL file or of the user lines.
Status load_users(Engine& engine, const Settings& settings);
// Loads only the ACL file.
Status load_users_file(Engine& engine, const std::string& path);

}  // namespace sluice

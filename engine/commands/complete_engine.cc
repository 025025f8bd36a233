#include "engine/commands/complete_engine.h"

#include <memory>

#include "engine/script/script_engine.h"

namespace sluice {

namespace {

std::unique_ptr<Scripts> make_scripts(Engine& engine) {
  return std::make_unique<ScriptEngine>(engine);
}

}  // namespace

CompleteEngine::CompleteEngine(ServerPort& server, uint64_t hash_seed)
    : Engine(server, hash_seed, make_scripts) {}

}  // namespace sluice

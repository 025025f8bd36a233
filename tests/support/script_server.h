// ScriptServer: an engine in this process with one connection that runs scripts. Tests add what
// they need by deriving from it. Used by one thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/commands/complete_engine.h"
#include "engine/execution/execution.h"
#include "tests/support/engine_session.h"
#include "tests/support/quiet_server.h"

namespace sluice::test {

struct ScriptServer {
  QuietServer port;
  CompleteEngine engine{port, 7};
  Execution execution{engine};
  EngineSession session{engine, execution};

  std::string eval(Bytes script, std::vector<Bytes> keys = {}, std::vector<Bytes> args = {}) {
    return session.eval(script, std::move(keys), std::move(args));
  }
};

}  // namespace sluice::test

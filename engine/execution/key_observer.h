// KeyObserver: reports changes of keys to subscribers of keyspace notifications, and to clients
// that track keys.
//
// Belongs to one Execution, whose unit uses it while Engine::observing is not 0. It is called under
// shard locks and takes the mutex of PubSub or of Tracking.
#pragma once

#include "engine/keyspace/events.h"

namespace sluice {

class Engine;

class KeyObserver final : public KeyspaceObserver {
 public:
  explicit KeyObserver(Engine& engine) : engine_(engine) {}

  void event(Unit& unit, KeyEvent event, int database, Bytes key) override;
  void changed(Unit& unit, Bytes key) override;

 private:
  Engine& engine_;
};

}  // namespace sluice

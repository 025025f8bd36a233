// KeyObserver: tells others what happens to keys: subscribers of keyspace notifications, and
// clients that track what they have read.
//
// Belongs to one Execution, which gives it to its unit while Engine::observing says that somebody
// wants to know. It is called under shard locks and takes the mutex of PubSub or of Tracking.
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

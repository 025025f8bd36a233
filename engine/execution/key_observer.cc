#include "engine/execution/key_observer.h"

#include <string>

#include "engine/clients/pubsub.h"
#include "engine/clients/tracking.h"
#include "engine/execution/engine.h"

namespace sluice {

void KeyObserver::event(Unit& unit, KeyEvent event, int database, Bytes key) {
  const uint32_t wanted = engine_.observing.load(std::memory_order_relaxed);
  if ((wanted & event_class(event)) == 0) return;
  PubSub& pubsub = engine_.pubsub();
  if (pubsub.empty()) return;
  const std::string number = std::to_string(database);
  const Bytes name = event_name(event);
  if ((wanted & kEventKeyspace) != 0) {
    pubsub.publish(unit, "__keyspace@" + number + "__:" + std::string(key), name, false);
  }
  if ((wanted & kEventKeyevent) != 0) {
    pubsub.publish(unit, "__keyevent@" + number + "__:" + std::string(name), key, false);
  }
}

void KeyObserver::changed(Unit& unit, Bytes key) {
  if ((engine_.observing.load(std::memory_order_relaxed) & kObserveTracking) == 0) return;
  engine_.tracking().changed(unit, key);
}

}  // namespace sluice

// libFuzzer target: arbitrary bytes as effects of one queue are applied or rejected; the result is
// a consistent queue that can be walked, described and walked again.
#include <cstddef>
#include <cstdint>

#include "engine/base/check.h"
#include "engine/keyspace/describe_effect.h"
#include "engine/queue/queue_records.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 4096) return 0;
  sluice::Bytes rest(reinterpret_cast<const char*>(data), size);
  sluice::Queue queue;
  sluice::Effect effect;
  while (!rest.empty() && sluice::decode_effect(rest, effect)) {
    if (!sluice::is_queue_effect(effect.type)) continue;
    CHECK(!sluice::describe_effect(effect).empty());
    sluice::apply_queue_effect(queue, effect);
  }
  queue.check();
  sluice::Queue copy;
  sluice::QueueCursor cursor;
  const sluice::EmitRecord emit = [&](sluice::EffectType type, sluice::Bytes field,
                                      sluice::Bytes value) {
    sluice::Effect written;
    written.type = type;
    written.field = field;
    written.value = value;
    CHECK(sluice::apply_queue_effect(copy, written));
  };
  while (sluice::walk_queue(queue, cursor, 1 + size % 64, emit)) {
  }
  copy.check();
  CHECK(copy.jobs.size() == queue.jobs.size());
  return 0;
}

// A walk over a queue holds its lock for a short time only, whatever the queue has much of.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/queue/queue.h"
#include "engine/queue/queue_records.h"
#include "tests/support/lossy_spill.h"
#include "tests/support/queue_dump.h"
#include "tests/support/test.h"

namespace sluice::test {

TEST_CASE("a step of a walk is short, however many rules and idle rates there are") {
  constexpr size_t kMany = 5000;
  constexpr size_t kLimit = 256;
  Queue queue;
  const std::vector<std::pair<Bytes, Bytes>> weight{{"weight", "2"}};
  const std::vector<std::pair<Bytes, Bytes>> rate{{"rate", "1/3600000"}};
  REQUIRE(queue.config.set(ConfigLevel::kGroup, "*", rate).bad.empty());
  for (size_t i = 0; i < kMany; ++i) {
    const std::string name = "g" + std::to_string(i);
    REQUIRE(queue.config.set(ConfigLevel::kGroup, name, weight).bad.empty());
    if (i % 100 == 0) REQUIRE(queue.config.set(ConfigLevel::kKey, name + "*", rate).bad.empty());
    queue.lanes.keep_idle_rate(i % 2 == 0 ? ConfigLevel::kGroup : ConfigLevel::kKey, name,
                               static_cast<int64_t>(i + 1));
  }
  Queue copy;
  copy.begin_replay();
  QueueCursor cursor;
  std::map<EffectType, size_t> counts;
  for (bool more = true; more;) {
    size_t in_step = 0;
    more = walk_queue(queue, cursor, kLimit, [&](EffectType type, Bytes field, Bytes value) {
      ++in_step;
      ++counts[type];
      Effect effect;
      effect.type = type;
      effect.key = "q";
      effect.field = field;
      effect.value = value;
      REQUIRE(apply_queue_effect(copy, effect));
    });
    CHECK(in_step <= kLimit + 16);
  }
  CHECK(counts[EffectType::kQueueConfig] == kMany + kMany / 100 + 1);
  CHECK(counts[EffectType::kQueueShare] == kMany);
  copy.end_replay([] {});
  CHECK(copy.lanes.idle_rates().size() == kMany);
  CHECK(dump_difference(dump_queue(queue), dump_queue(copy)) == "");
}

TEST_CASE("a walk goes on behind the events that the spill has lost") {
  LossySpill spill;
  Queue queue;
  queue.events.spill_to(&spill);
  for (uint64_t seq = 1; seq <= 5000; ++seq) {
    queue.events.append(seq, 1000, EventType::kAdded, "id", std::string(30, 'f'));
  }
  spill.lost = true;
  Queue copy;
  copy.begin_replay();
  QueueCursor cursor;
  for (bool more = true; more;) {
    more = walk_queue(queue, cursor, 256, [&](EffectType type, Bytes field, Bytes value) {
      Effect effect;
      effect.type = type;
      effect.key = "q";
      effect.field = field;
      effect.value = value;
      REQUIRE(apply_queue_effect(copy, effect));
    });
  }
  copy.end_replay([] {});
  CHECK(copy.events.last_seq() == 5000);
  CHECK(copy.events.count() > 1000);
}

}  // namespace sluice::test

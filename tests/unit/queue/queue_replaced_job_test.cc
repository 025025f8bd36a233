// The record of a whole job over the job that is there: each kind of job over each other one.
#include <memory>
#include <string>
#include <vector>

#include "engine/queue/queue.h"
#include "engine/queue/queue_records.h"
#include "tests/support/queue_dump.h"
#include "tests/support/test.h"

namespace sluice::test {

namespace {

struct Kind {
  Bytes name;
  Bytes payload = "one";
  Bytes group = "g";
  std::vector<Bytes> keys = {"k"};
  uint8_t band = 2;
  int64_t rank = 50;
  uint64_t seq = 7;
  uint32_t cost = 1;
  bool tagged = false;
};

// Each differs from the first one in one way.
std::vector<Kind> kinds() {
  return {{.name = "first"},
          {.name = "payload", .payload = "two"},
          {.name = "group", .group = "h"},
          {.name = "keys", .keys = {"k", "l"}},
          {.name = "band", .band = 1},
          {.name = "rank", .rank = 40},
          {.name = "seq", .seq = 8},
          {.name = "cost", .cost = 3},
          {.name = "tags", .tagged = true}};
}

// The value of the record of the job "id".
std::string record_of(const Kind& kind) {
  Queue queue;
  Job* job = Job::make("id", kind.payload);
  job->band = kind.band;
  job->rank = kind.rank;
  job->seq = kind.seq;
  job->lane = queue.join_lane(kind.band, kind.group, kind.keys, false);
  if (kind.cost != 1) job->extras().cost = kind.cost;
  if (kind.tagged) {
    job->extras().options = std::make_unique<JobOptions>();
    job->extras().options->tags = {{"lang", "c"}};
  }
  if (job->extras_if() != nullptr) job->extras().enqueued_ms = kind.rank;
  queue.insert(job);
  ByteBuffer out;
  encode_job(*job, {}, true, out);
  return std::string(out.view());
}

void put(Queue& queue, const Kind& kind) {
  const std::string value = record_of(kind);
  Effect effect;
  effect.type = EffectType::kJobPut;
  effect.key = "q";
  effect.field = "id";
  effect.value = value;
  REQUIRE(apply_queue_effect(queue, effect));
}

}  // namespace

TEST_CASE("the record of a whole job replaces the job that is there") {
  for (const bool replays : {true, false}) {
    for (const Kind& before : kinds()) {
      for (const Kind& after : kinds()) {
        INFO(before.name, ", then ", after.name, ", replays: ", replays);
        Queue queue;
        Queue expected;
        for (Queue* one : {&queue, &expected}) {
          if (replays) one->begin_replay();
        }
        put(queue, before);
        put(queue, after);
        put(expected, after);
        for (Queue* one : {&queue, &expected}) {
          one->end_replay([] {});
          one->check();
        }
        CHECK(dump_difference(dump_queue(expected), dump_queue(queue)) == "");
        queue.erase(queue.find("id"));
        CHECK(queue.lanes.find_group("g") == nullptr);
        CHECK(queue.lanes.find_group("h") == nullptr);
      }
    }
  }
}

}  // namespace sluice::test

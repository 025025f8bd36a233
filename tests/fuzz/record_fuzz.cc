// libFuzzer target: arbitrary bytes as records are rejected or applied to an engine, whose contents
// are then walked and loaded again, without a memory error. Cut at any place, they are rejected or
// are a shorter sequence of records.
#include <cstddef>
#include <cstdint>

#include "engine/commands/complete_engine.h"
#include "engine/keyspace/describe_effect.h"
#include "tests/support/fuzz_records.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice;
  if (size < 1 || size > 4096) return 0;
  const Bytes input(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (!test::small_enough(input)) return 0;
  test::QuietServer port;
  CompleteEngine engine(port, 7);
  {
    const std::unique_ptr<Replay> replay = engine.begin_replay();
    const uint64_t count = test::count_records(input);
    // Decodable records may still be invalid to the engine, which then reports it.
    const bool whole = replay->apply(input, count);
    if (whole) CHECK(test::count_records(input.substr(0, data[0] % size)) <= count);
    // A fuzzy checkpoint applies records twice, except moves.
    if (whole && !test::moves_keys(input)) CHECK(replay->apply(input, count));
    replay->finish();
  }
  test::check_walk(engine);
  Bytes rest = input;
  Effect effect;
  while (!rest.empty() && decode_effect(rest, effect)) CHECK(!describe_effect(effect).empty());
  return 0;
}

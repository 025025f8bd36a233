// Measures the seed's script: EVALSHA through dispatch, script, three commands and the reply,
// without sockets and journal. The cycle adds a job, takes it with the script, and releases its
// slot.
//
//   build/release/bin/lua_bench [cycles]
//
// Figures for the machine of ARCHITECTURE.md are in its section on scripts.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "engine/access/acl.h"
#include "engine/commands/complete_engine.h"
#include "engine/execution/execution.h"
#include "tests/support/quiet_server.h"

namespace {

using sluice::Bytes;

constexpr Bytes kSeedScript = R"(
local active_key  = KEYS[1]
local pending_key = KEYS[2]
local max_active  = tonumber(ARGV[1])

local current = redis.call('SCARD', active_key)
if current >= max_active then
    return nil
end

local result = redis.call('ZPOPMIN', pending_key, 1)
if #result == 0 then
    return nil
end

local exec_id = result[1]
redis.call('SADD', active_key, exec_id)
return exec_id
)";

constexpr Bytes kBandScript = R"(
local max_active = tonumber(ARGV[1])
if redis.call('SCARD', KEYS[1]) >= max_active then
    return nil
end
for i = 2, #KEYS do
    local result = redis.call('ZPOPMIN', KEYS[i], 1)
    if #result > 0 then
        redis.call('SADD', KEYS[1], result[1])
        return {result[1], result[2], i - 2}
    end
end
return nil
)";

class Bench {
 public:
  Bench() : engine_(server_, 42), execution_(engine_), reply_(out_, 2) {
    client_.user = engine_.acl().default_user();
    execution_.set_hold_shards(true);
    execution_.set_now_ms(1'700'000'000'000);
  }

  ~Bench() { execution_.finish(); }

  std::string load(Bytes script) {
    run({"SCRIPT", "LOAD", script});
    return std::string(out_.view().substr(5, 40));
  }

  void run(std::initializer_list<Bytes> args) {
    out_.clear();
    execution_.execute(client_, sluice::Request({args.begin(), args.size()}), reply_);
    // A batch of sixteen requests, as with a pipeline of that depth.
    if (++requests_ % 16 == 0) execution_.finish();
  }

  // Nanoseconds of one `step`, the minimum of five rounds.
  template <class Step>
  double measure(int count, Step step) {
    double least = 1e18;
    for (int round = 0; round < 5; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < count; ++i) step(i);
      const std::chrono::duration<double, std::nano> spent =
          std::chrono::steady_clock::now() - begin;
      least = std::min(least, spent.count() / count);
    }
    return least;
  }

  Bytes reply() const { return out_.view(); }

 private:
  sluice::test::QuietServer server_;
  sluice::CompleteEngine engine_;
  sluice::Execution execution_;
  sluice::Client client_;
  sluice::ByteBuffer out_;
  sluice::RespReply reply_;
  uint64_t requests_ = 0;
};

std::string job_name(int i) { return "execution-" + std::to_string(1000000 + i); }

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 200'000;
  Bench bench;
  const std::string seed = bench.load(kSeedScript);
  const std::string bands = bench.load(kBandScript);
  const std::string empty = bench.load("return 1");
  const std::string call = bench.load("return redis.call('SCARD', KEYS[1])");
  // Neither set becomes empty in the cycles below: creating and deleting a key costs as much as the
  // rest.
  for (int i = 0; i < 1000; ++i) {
    const std::string other = "waiting-" + std::to_string(i);
    bench.run({"ZADD", "exec_queue:pending", "1900000000000", other});
    bench.run({"ZADD", "exec_queue:pending:high", "1900000000", other});
  }
  for (const Bytes other : {"running-1", "running-2", "running-3"}) {
    bench.run({"SADD", "exec_queue:active", other});
  }
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(job_name(i));
  const auto name = [&](int i) { return Bytes(names[static_cast<size_t>(i)]); };

  std::printf("%-52s %7.0f ns\n", "SCARD of an absent key", bench.measure(count, [&](int) {
    bench.run({"SCARD", "active"});
  }));
  std::printf("%-52s %7.0f ns\n", "EVALSHA of `return 1`", bench.measure(count, [&](int) {
    bench.run({"EVALSHA", empty, "0"});
  }));
  std::printf("%-52s %7.0f ns\n", "EVALSHA of one SCARD", bench.measure(count, [&](int) {
    bench.run({"EVALSHA", call, "1", "active"});
  }));
  std::printf("%-52s %7.0f ns\n", "the seed's script, nothing pending",
              bench.measure(count, [&](int) {
                bench.run({"EVALSHA", seed, "2", "exec_queue:active", "nothing", "10"});
              }));
  const auto add = [&](int i) {
    bench.run({"ZADD", "exec_queue:pending", "1700000000000", name(i)});
  };
  const auto remove = [&](int i) { bench.run({"SREM", "exec_queue:active", name(i)}); };
  const double around = bench.measure(count, [&](int i) {
    add(i);
    bench.run({"SADD", "exec_queue:active", name(i)});
    bench.run({"ZREM", "exec_queue:pending", name(i)});
    remove(i);
  });
  const double cycle = bench.measure(count, [&](int i) {
    add(i);
    bench.run({"EVALSHA", seed, "2", "exec_queue:active", "exec_queue:pending", "10"});
    remove(i);
  });
  std::printf("%-52s %7.0f ns\n", "ZADD, SADD, ZREM, SREM as four requests", around);
  std::printf("%-52s %7.0f ns\n", "the seed's cycle: ZADD, EVALSHA, SREM", cycle);
  const double two = bench.measure(count, [&](int i) {
    add(i);
    remove(i);
    bench.run({"ZREM", "exec_queue:pending", name(i)});
  });
  std::printf("%-52s %7.0f ns\n", "the script in it, about (less ZADD, SREM)", cycle - two);
  std::printf(
      "%-52s %7.0f ns\n", "the five-set dialect: ZADD, EVALSHA, SREM",
      bench.measure(count, [&](int i) {
        bench.run({"ZADD", "exec_queue:pending:high", "1700000000.25", name(i)});
        bench.run({"EVALSHA", bands, "6", "exec_queue:active", "exec_queue:pending:critical",
                   "exec_queue:pending:high", "exec_queue:pending:normal", "exec_queue:pending:low",
                   "exec_queue:pending:background", "10"});
        remove(i);
      }));
  return 0;
}

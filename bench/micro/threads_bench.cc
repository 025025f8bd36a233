// Two I/O threads on one hot queue: the runs that chose one mutex a shard, taken once a batch.
//
//   threads_bench [operations [bare|served]]
//       default: 200000 for each I/O thread ("bare": ten times as many), both
//
// No server and no sockets: each I/O thread has eight sessions and serves them in turn. A turn
// consists of the thread's own work (read, parse, reply, write; simulated by arithmetic) and a
// batch of pop + push on the one OrderedIndex that all threads share. The models differ in how a
// batch reaches that index:
//
//   no lock      one thread does all; what the others are measured against
//   per batch    lock the shard's mutex, run the batch, unlock            (what the engine does)
//   per op       the same for each operation
//   combining    try the lock; when it is taken, hand the batch to its holder, who runs it
//   forwarding   thread 0 owns the index; the others hand it their batches
//   engine       a thread beside the I/O threads owns the index; all hand it their batches
//
// A thread that handed over a batch continues with its next session, and waits when it returns to
// one that has no reply yet. Waking a thread is a futex here; in a server it would be an eventfd
// and epoll, which costs more, so the hand-over models look better here than they are.
//
// Printed: wall time and the process's CPU time per operation, the best of the rounds each, in
// nanoseconds. In "bare" the threads have no other work, so that only the hand-over counts; in
// "served" they have about as much as a request costs. Only ratios within one run are meaningful.
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/mutex.h"
#include "engine/structures/ordered_index.h"

namespace sluice::bench {
namespace {

constexpr int kRounds = 5;
constexpr uint32_t kElements = 100000;
constexpr size_t kSessions = 8;

uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

// Stores results that nobody reads, so that the compiler does not remove the computation.
std::atomic<uint64_t> g_sink{0};

// About 3 ns a round, in sequence.
uint64_t burn(uint64_t seed, uint64_t rounds) {
  for (uint64_t i = 0; i < rounds; ++i) seed = mix(seed + i);
  return seed;
}

struct OwnWork {
  const char* name;
  uint64_t scale;         // of the number of operations, so that a round takes long enough
  uint64_t batch_rounds;  // the two system calls
  uint64_t op_rounds;     // parse and reply
};
constexpr OwnWork kOwnWork[] = {{"bare", 10, 0, 0}, {"served", 1, 1000, 50}};

double clock_ns(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

// The requests of one session from one read. `pending` is set by the session's thread when it hands
// the batch over, and cleared by the thread that has run it.
struct alignas(64) Batch {
  uint64_t random = 0;
  uint32_t size = 0;
  std::atomic<uint32_t> pending{0};
  Batch* next = nullptr;

  void finish() {
    pending.store(0, std::memory_order_release);
    pending.notify_one();
  }
  void wait() const {
    for (int i = 0; i < 100; ++i) {
      if (pending.load(std::memory_order_acquire) == 0) return;
    }
    pending.wait(1, std::memory_order_acquire);
  }
};

// The hot queue. The models ensure that one thread at a time uses it.
struct alignas(64) HotShard {
  Mutex mutex;
  OrderedIndex<> order;
  uint64_t operations = 0;

  HotShard() {
    for (uint32_t i = 0; i < kElements; ++i) order.insert(mix(i) >> 24, i);
  }
  void run_one(uint64_t& random) {
    const auto entry = order.pop_front();
    random = mix(random + 1);
    // Behind its old place, so that the front of the queue moves.
    order.insert(entry.major + (random >> 40), entry.minor);
    ++operations;
  }
  void run(Batch& batch) {
    for (uint32_t i = 0; i < batch.size; ++i) run_one(batch.random);
  }
};

// Batches handed to another thread: a stack that any thread pushes to and one takes as a whole.
class alignas(64) Inbox {
 public:
  void push(Batch* batch) {
    Batch* head = head_.load(std::memory_order_relaxed);
    do {
      batch->next = head;
    } while (!head_.compare_exchange_weak(head, batch));
  }
  bool empty() const { return head_.load() == nullptr; }
  void wake() { head_.notify_one(); }
  void wait_while_empty() const { head_.wait(nullptr); }
  // Runs the batches in the order in which they arrived.
  bool drain(HotShard& shard) {
    Batch* taken = head_.exchange(nullptr);
    if (taken == nullptr) return false;
    Batch* ordered = nullptr;
    while (taken != nullptr) {
      Batch* next = taken->next;
      taken->next = ordered;
      ordered = taken;
      taken = next;
    }
    while (ordered != nullptr) {
      Batch* next = ordered->next;  // a finished batch belongs to its session again
      shard.run(*ordered);
      ordered->finish();
      ordered = next;
    }
    return true;
  }

 private:
  std::atomic<Batch*> head_{nullptr};
};

// A model: submit() runs a batch or hands it over (`pending` then stays 1), help() runs batches
// that others wait for, await() returns when the batch has been run.
struct Model {
  explicit Model(HotShard& hot) : shard(hot) {}
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual void submit(unsigned thread, Batch& batch) = 0;
  virtual void help(unsigned /*thread*/) {}
  virtual void await(unsigned /*thread*/, Batch& batch) { batch.wait(); }
  // The I/O thread has no more work of its own.
  virtual void retire(unsigned /*thread*/) {}

  HotShard& shard;
};

struct NoLock final : Model {
  using Model::Model;
  void submit(unsigned, Batch& batch) override {
    shard.run(batch);
    batch.pending.store(0, std::memory_order_relaxed);
  }
};

struct PerBatch final : Model {
  using Model::Model;
  void submit(unsigned, Batch& batch) override {
    MutexLock lock(shard.mutex);
    shard.run(batch);
    batch.pending.store(0, std::memory_order_relaxed);
  }
};

struct PerOp final : Model {
  using Model::Model;
  void submit(unsigned, Batch& batch) override {
    for (uint32_t i = 0; i < batch.size; ++i) {
      MutexLock lock(shard.mutex);
      shard.run_one(batch.random);
    }
    batch.pending.store(0, std::memory_order_relaxed);
  }
};

struct Combining final : Model {
  using Model::Model;
  void submit(unsigned, Batch& batch) override {
    if (shard.mutex.try_lock()) {
      shard.run(batch);
      batch.pending.store(0, std::memory_order_relaxed);
      inbox.drain(shard);
      shard.mutex.unlock();
    } else {
      inbox.push(&batch);
    }
    // A thread that pushed while the lock was held relies on this check.
    while (!inbox.empty() && shard.mutex.try_lock()) {
      inbox.drain(shard);
      shard.mutex.unlock();
    }
  }

  Inbox inbox;
};

struct Forwarding final : Model {
  Forwarding(HotShard& hot, unsigned threads) : Model(hot), running(threads) {}
  void submit(unsigned thread, Batch& batch) override {
    if (thread != 0) {
      inbox.push(&batch);
      inbox.wake();
      return;
    }
    shard.run(batch);
    batch.pending.store(0, std::memory_order_relaxed);
  }
  void help(unsigned thread) override {
    if (thread == 0) inbox.drain(shard);
  }
  void retire(unsigned thread) override {
    running.fetch_sub(1);
    if (thread != 0) return;
    while (running.load() != 0 || !inbox.empty()) {
      if (!inbox.drain(shard)) std::this_thread::yield();
    }
  }

  Inbox inbox;
  std::atomic<unsigned> running;
};

struct EngineThread final : Model {
  explicit EngineThread(HotShard& hot) : Model(hot), owner([this] { run(); }) {}
  ~EngineThread() override {
    stopping.store(true);
    Batch last;  // without requests: it only wakes the owner
    last.pending.store(1);
    submit(0, last);
    owner.join();
  }
  void submit(unsigned, Batch& batch) override {
    inbox.push(&batch);
    inbox.wake();
  }
  void run() {
    while (!stopping.load() || !inbox.empty()) {
      if (!inbox.drain(shard)) inbox.wait_while_empty();
    }
  }

  Inbox inbox;
  std::atomic<bool> stopping{false};
  std::thread owner;
};

// --- the measurement ---

void run_io_thread(Model& model, unsigned thread, uint64_t operations, uint32_t batch_size,
                   const OwnWork& work) {
  std::array<Batch, kSessions> sessions;
  for (size_t i = 0; i < kSessions; ++i) {
    sessions[i].random = mix(thread * kSessions + i);
    sessions[i].size = batch_size;
  }
  uint64_t sink = 0;
  for (uint64_t batch = 0; batch < operations / batch_size; ++batch) {
    Batch& session = sessions[batch % kSessions];
    model.help(thread);
    model.await(thread, session);
    sink += burn(batch, work.batch_rounds + work.op_rounds * batch_size);
    session.pending.store(1, std::memory_order_relaxed);
    model.submit(thread, session);
  }
  for (Batch& session : sessions) model.await(thread, session);
  model.retire(thread);
  g_sink.fetch_add(sink, std::memory_order_relaxed);
}

struct Figures {
  double wall_ns = 0;
  double cpu_ns = 0;
};

void keep_least(double& best, double value) { best = best == 0 ? value : std::min(best, value); }

template <class MakeModel>
Figures measure(unsigned threads, uint64_t operations, uint32_t batch_size, const OwnWork& work,
                MakeModel make_model) {
  Figures best;
  operations -= operations % batch_size;
  for (int round = 0; round < kRounds; ++round) {
    HotShard shard;
    const double total = static_cast<double>(operations) * threads;
    const double wall = clock_ns(CLOCK_MONOTONIC);
    const double cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    {
      auto model = make_model(shard, threads);
      std::vector<std::thread> others;
      for (unsigned i = 1; i < threads; ++i) {
        others.emplace_back([&, i] { run_io_thread(*model, i, operations, batch_size, work); });
      }
      run_io_thread(*model, 0, operations, batch_size, work);
      for (std::thread& other : others) other.join();
    }
    keep_least(best.wall_ns, (clock_ns(CLOCK_MONOTONIC) - wall) / total);
    keep_least(best.cpu_ns, (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) / total);
    CHECK(shard.operations == operations * threads);
    CHECK(shard.order.size() == kElements);
  }
  return best;
}

template <class M>
std::unique_ptr<Model> make(HotShard& shard, unsigned threads) {
  if constexpr (std::is_constructible_v<M, HotShard&, unsigned>) {
    return std::make_unique<M>(shard, threads);
  } else {
    return std::make_unique<M>(shard);
  }
}

struct Row {
  const char* name;
  unsigned threads;
  std::unique_ptr<Model> (*make)(HotShard&, unsigned);
};

constexpr Row kRows[] = {
    {"no lock", 1, make<NoLock>},        {"per batch", 1, make<PerBatch>},
    {"per op", 1, make<PerOp>},          {"combining", 1, make<Combining>},
    {"engine", 1, make<EngineThread>},   {"per batch", 2, make<PerBatch>},
    {"per op", 2, make<PerOp>},          {"combining", 2, make<Combining>},
    {"forwarding", 2, make<Forwarding>}, {"engine", 2, make<EngineThread>},
};

int run(int argc, char** argv) {
  const uint64_t operations = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 200000;
  if (operations < 1000) {
    std::fprintf(stderr, "usage: threads_bench [operations >= 1000 [bare|served]]\n");
    return 2;
  }
  std::printf("one hot queue of %u elements, pop + push, ns per operation: wall / CPU\n\n",
              kElements);
  for (const OwnWork& work : kOwnWork) {
    if (argc > 2 && std::strcmp(argv[2], work.name) != 0) continue;
    std::printf("%-7s %-11s %11s %20s %20s\n", work.name, "model", "I/O threads", "batch 1",
                "batch 16");
    for (const Row& row : kRows) {
      std::printf("%-7s %-11s %11u", "", row.name, row.threads);
      for (const uint32_t batch_size : {1U, 16U}) {
        const Figures figures =
            measure(row.threads, operations * work.scale, batch_size, work, row.make);
        std::printf("     %6.0f / %6.0f", figures.wall_ns, figures.cpu_ns);
        std::fflush(stdout);
      }
      std::printf("\n");
    }
    std::printf("\n");
  }
  return 0;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::run(argc, argv); }

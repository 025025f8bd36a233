// The records of the native queue: contents round-trip, damage is detected, and a recovered queue
// equals the original.
#include "engine/queue/queue_records.h"
#include "engine/keyspace/describe_effect.h"

#include <random>
#include <string>
#include <vector>

#include "engine/execution/engine.h"
#include "engine/execution/execution.h"
#include "engine/queue/job_record.h"
#include "engine/queue/queue.h"
#include "tests/support/engine_session.h"
#include "tests/support/memory_journal.h"
#include "tests/support/queue_dump.h"
#include "tests/support/quiet_server.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

namespace sluice::test {

namespace {

constexpr int64_t kNow = 1'700'000'000'000;

struct Record {
  EffectType type{};
  std::string field;
  std::string value;

  Effect effect() const {
    Effect effect;
    effect.type = type;
    effect.key = "q";
    effect.field = field;
    effect.value = value;
    return effect;
  }
};

// Returns what `encode(ByteBuffer&)` appends.
template <class Encode>
std::string encoded(Encode encode) {
  ByteBuffer out;
  encode(out);
  return std::string(out.view());
}

std::string encoded_gone(const RecordedEvent& event) {
  return encoded([&](ByteBuffer& out) { encode_event(event, out); });
}

std::vector<Record> walk(const Queue& queue, size_t limit) {
  std::vector<Record> records;
  QueueCursor cursor;
  const EmitRecord emit = [&](EffectType type, Bytes field, Bytes value) {
    records.push_back({type, std::string(field), std::string(value)});
  };
  while (walk_queue(queue, cursor, limit, emit)) {
  }
  return records;
}

void apply_all(Queue& queue, const std::vector<Record>& records) {
  for (const Record& record : records) {
    INFO(describe_queue_effect(record.effect()));
    REQUIRE(apply_queue_effect(queue, record.effect()));
  }
}

Job* make_job(Queue& queue, Bytes id, Bytes payload, JobState state, uint8_t band, Bytes group,
              std::vector<Bytes> keys) {
  Job* job = Job::make(id, payload);
  job->rank = kNow - 5;
  job->seq = queue.next_seq++;
  job->state = state;
  job->band = band;
  job->lane = queue.join_lane(band, group, keys, false);
  return job;
}

JobOptions all_options() {
  JobOptions options;
  options.lease_ms = 12000;
  options.max_run_ms = 90000;
  options.retry = 7;
  options.backoff_base_ms = 10;
  options.backoff_max_ms = 1000;
  options.needs = {"other", "an earlier one", "followed", "followed and released"};
  options.after_count = 2;
  options.tags = {{"lang", "python"}, {"empty", ""}};
  return options;
}

// Sets every field of JobExtras that any state may have.
void fill_extras(JobExtras& extras) {
  extras.cost = 3;
  extras.attempts = 4;
  extras.crashes = 2;
  extras.retries_used = 1;
  extras.bound = true;
  extras.arrival = 77;
  extras.enqueued_ms = kNow - 1000;
  extras.release_ms = kNow - 900;
  extras.boost_ms = -60000;
  extras.ttl_ms = 5000;
  extras.ttl_left_ms = 4321;
  extras.at_ms = kNow + 70000;
  extras.acknowledged = 321;
  extras.error = "it broke";
  extras.progress = std::string("50%\0of it", 9);
  extras.options = std::make_unique<JobOptions>(all_options());
  extras.log = std::make_unique<JobLog>(JobLog{5, std::string("lines\0\n", 7)});
}

void fill_run(Queue& queue, JobExtras& extras, uint64_t token) {
  extras.run = std::make_unique<JobRun>();
  JobRun& run = *extras.run;
  run.token = token;
  run.worker = queue.workers.join("worker 1");
  run.request_token = "req-9";
  run.worker->request_token = run.request_token;
  run.started_ms = kNow - 20;
  run.lease_ms = 12000;
  run.deadline_steady = run.lease_ms;
  run.run_deadline_steady = 90000;
  run.charged_ms = 1234.5;
  run.cancelled = true;
  run.cancel_reason = "not wanted";
}

void configure(Queue& queue) {
  const std::vector<std::pair<Bytes, Bytes>> fields{{"max_active", "10"}, {"fair", "on"}};
  const std::vector<std::pair<Bytes, Bytes>> limits{{"max_active", "4"}};
  const auto set = [&](ConfigLevel level, Bytes pattern, const auto& values) {
    const ConfigChange change = queue.config.set(level, pattern, values);
    REQUIRE(change.bad.empty());
    queue.reconfigure(change, SIZE_MAX, nullptr);
  };
  set(ConfigLevel::kQueue, {}, fields);
  set(ConfigLevel::kGroup, "team.*", limits);
  set(ConfigLevel::kKey, "lang:*", limits);
}

// Releases of what the job with this arrival needs.
void fill_releases(Queue& queue, uint64_t arrival) {
  queue.add_release(arrival + 1, "released", false, true);
  queue.add_release(arrival + 2, "released and there again", false, false);
  queue.add_release(arrival + 3, "released and there again", false, true);
  queue.add_release(arrival + 4, "followed and released", true, true);
}

void fill(Queue& queue) {
  configure(queue);
  queue.queue_ms = kNow;
  queue.next_token = 500;
  queue.next_finish = 40;
  queue.stats.all.totals.added = 11;
  queue.stats.all.totals.reclaimed = 3;
  const std::vector<Bytes> keys{"lang:c", "lang:python"};
  Job* job = make_job(queue, "plain", "payload", JobState::kPending, 2, {}, {});
  queue.insert(job);
  job = make_job(queue, "blocked", "", JobState::kBlocked, 1, "team.1", keys);
  fill_extras(job->extras());
  job->extras().unmet = {"other", "released", "released and there again", "followed",
                         "followed and released"};
  fill_releases(queue, job->seq);
  queue.insert(job);
  job = make_job(queue, "delayed", "later", JobState::kDelayed, 255, "team.1", {});
  fill_extras(job->extras());
  job->extras().gate_ms = kNow + 60000;
  queue.insert(job);
  job = make_job(queue, "pending", "now", JobState::kPending, 0, "team.2", keys);
  fill_extras(job->extras());
  job->extras().ttl_due_ms = kNow + 4321;
  job->rank = kFrontRanks - 3;
  queue.insert(job);
  job = make_job(queue, "active", "runs", JobState::kActive, 2, "team.2", keys);
  fill_extras(job->extras());
  fill_run(queue, job->extras(), 499);
  auto successor = std::make_unique<JobSuccessor>();
  successor->payload = "the next one";
  successor->replaces = true;
  successor->band = 3;
  successor->ttl_ms = 99;
  successor->options = all_options();
  successor->group = "team.9";
  successor->keys = {"lang:c"};
  successor->cost = 2;
  successor->boost_ms = -5;
  successor->gate_ms = kNow + 1;
  successor->at_ms = kNow + 2;
  job->extras().successor = std::move(successor);
  queue.insert(job);
  for (const JobState state :
       {JobState::kCompleted, JobState::kFailed, JobState::kCancelled, JobState::kExpired}) {
    job = make_job(queue, job_state_name(state), "done", state, 2, "team.3", {});
    fill_extras(job->extras());
    job->extras().end = std::make_unique<JobEnd>();
    JobEnd& end = *job->extras().end;
    end.finished_ms = kNow - 1;
    end.finish_order = queue.next_finish++;
    end.last_token = 321;
    end.run_ms = 17;
    end.result = "42";
    queue.insert(job);
  }
  queue.lanes.set_virtual_ms(queue.lanes.find_group("team.2"), 777.25, kNow);
  queue.lanes.raise_virtual_ms(888.5);
  queue.lanes.find_group("team.1")->limiter.arrival_us = kNow * 1000 + 5;
  queue.lanes.find_key("lang:c")->limiter.arrival_us = kNow * 1000 + 6;
  queue.limiter.arrival_us = kNow * 1000 + 7;
  EventFields event_fields;
  event_fields.add("worker", "worker 1");
  for (uint64_t seq = 100; seq < 110; ++seq) {
    const auto type = static_cast<EventType>(1 + seq % (kEventTypes - 1));
    queue.events.append(seq, kNow + static_cast<int64_t>(seq), type, "plain", event_fields.bytes());
  }
}

}  // namespace

TEST_CASE("a walk over a queue gives all of it, in steps of any size, and again on itself") {
  Queue queue;
  fill(queue);
  queue.check();
  for (const size_t limit : {size_t{1}, size_t{3}, size_t{1000}}) {
    const std::vector<Record> records = walk(queue, limit);
    // A record may be applied again, and to a later state.
    for (const int times : {1, 2}) {
      Queue copy;
      copy.begin_replay();
      for (int i = 0; i < times; ++i) apply_all(copy, records);
      copy.end_replay([] {});
      copy.check();
      CHECK(dump_difference(dump_queue(queue), dump_queue(copy)) == "");
    }
  }
}

TEST_CASE("the state of a job replaces what may change and keeps the rest") {
  Queue queue;
  fill(queue);
  const RecordedEvent event{EventType::kMoved, 110, kNow + 500, {}};
  queue.jobs.for_each([&](const Job* job) {
    INFO(std::string(job->id()));
    const std::string put = encoded([&](ByteBuffer& out) { encode_job(*job, event, true, out); });
    const std::string state =
        encoded([&](ByteBuffer& out) { encode_job(*job, event, false, out); });
    Queue copy;
    // As it was when added: in another band, pending, with the fields that never change.
    std::vector<Bytes> keys;
    for (const Key* key : job->lane->keys->keys) keys.emplace_back(key->name);
    Job* before = make_job(copy, job->id(), job->payload(), JobState::kPending, 9,
                           job->lane->group->name, keys);
    before->extras().cost = job->cost();
    before->extras().enqueued_ms = job->enqueued_ms();
    if (job->options() != nullptr) {
      before->extras().options = std::make_unique<JobOptions>(*job->options());
    }
    copy.insert(before);
    apply_all(copy, {{EffectType::kJobState, std::string(job->id()), state}});
    copy.check();
    CHECK(dump_job(*copy.find(job->id())) == dump_job(*job));
    CHECK(copy.events.last_seq() == 110);
    // The same with the whole job's record, where there was none or a different job.
    for (int i = 0; i < 2; ++i) {
      apply_all(copy, {{EffectType::kJobPut, std::string(job->id()), put}});
      CHECK(dump_job(*copy.find(job->id())) == dump_job(*job));
      if (i == 1) break;
      apply_all(copy, {{EffectType::kJobGone, std::string(job->id()), encoded_gone({})}});
      CHECK(copy.find(job->id()) == nullptr);
    }
    copy.check();
  });
}

TEST_CASE("AFTER is one byte more than NEED, and without it a record is as before") {
  Queue queue;
  Job* job = make_job(queue, "a", "x", JobState::kPending, 2, "", {});
  JobExtras& extras = job->extras();
  extras.options = std::make_unique<JobOptions>();
  extras.options->needs = {"b", "c"};
  const auto record = [&] {
    return encoded([&](ByteBuffer& out) { encode_job(*job, {}, true, out); });
  };
  const std::string needs_both = record();
  CHECK(needs_both.substr(needs_both.size() - 8) == std::string("\x10\x02\x01"
                                                                "b\x01"
                                                                "c\x01x"));
  extras.options->after_count = 1;
  const std::string needs_one = record();
  CHECK(needs_one.substr(needs_one.size() - 9) == std::string("\x50\x02\x01"
                                                              "b\x01"
                                                              "c\x01\x01x"));
  queue.insert(job);
  Queue copy;
  apply_all(copy, {{EffectType::kJobPut, "a", needs_one}});
  const JobOptions& read = *copy.find("a")->options();
  CHECK(read.by_need().size() == 1);
  CHECK(read.by_after().front() == "c");
  // More of them than there are ids.
  std::string damaged = needs_one;
  damaged[damaged.size() - 3] = 3;
  const Record bad{EffectType::kJobPut, "b", damaged};
  CHECK(!apply_queue_effect(copy, bad.effect()));
}

TEST_CASE("a lease that is replayed has its whole term again, and its run its whole limit") {
  Queue queue;
  fill(queue);
  JobRun& run = *queue.find("active")->run();
  queue.unplace(queue.find("active"));
  run.started_steady = 5'000'000;
  run.deadline_steady = 5'000'100;  // shortened, because its connection is lost
  run.run_deadline_steady = 5'090'000;
  queue.place(queue.find("active"));
  Queue copy;
  apply_all(copy, walk(queue, 100));
  const JobRun& replayed = *copy.find("active")->run();
  CHECK(replayed.started_steady == 0);
  CHECK(replayed.deadline_steady == 12000);
  CHECK(replayed.run_deadline_steady == 90000);
  CHECK(replayed.cancelled);
  CHECK(copy.next_due_steady() == 12000);
}

// A lowered limit may be replayed on the result of a checkpoint's walk after it was raised again.
TEST_CASE("the greatest time that was ever taken, counted from now, is read") {
  constexpr int64_t kGreatest = (int64_t{1} << 53) - 1;
  Queue queue;
  Job* job = make_job(queue, "a", "x", JobState::kPending, 2, "", {});
  job->extras().ttl_ms = kGreatest;
  job->extras().ttl_due_ms = kNow + kGreatest;
  queue.insert(job);
  Queue copy;
  apply_all(copy, walk(queue, 100));
  CHECK(dump_job(*copy.find("a")) == dump_job(*job));
}

TEST_CASE("the head says which events are kept, whatever the bounds of the state are") {
  Queue queue;
  fill(queue);
  const std::vector<Record> records = walk(queue, 100);
  Queue copy;
  apply_all(copy, records);
  const auto encoded_head = [&] {
    return encoded([&](ByteBuffer& out) { encode_head(queue, out); });
  };
  const std::string older = encoded_head();
  queue.events.trim({4, 0, 0}, kNow, 100);
  const std::string head = encoded_head();
  const std::string first_format = head.substr(0, head.size() - 1);
  const std::vector<ConfigField> fields{{"events", "2"}};
  const std::string bound =
      encoded([&](ByteBuffer& out) { encode_config(ConfigLevel::kQueue, {}, fields, out); });
  apply_all(copy, {{EffectType::kQueueConfig, {}, bound}});
  CHECK(copy.events.count() == 10);
  apply_all(copy, {{EffectType::kQueueHead, {}, head}});
  CHECK(copy.events.count() == 4);
  CHECK(copy.events.oldest_seq() == 106);
  // An older head record applied to a later state removes nothing.
  apply_all(copy, {{EffectType::kQueueHead, {}, older}});
  CHECK(copy.events.count() == 4);
  // Removed events do not return with what a walk has written before.
  apply_all(copy, {{EffectType::kQueueEvents, {}, records.back().value}});
  CHECK(copy.events.oldest_seq() == 106);
  apply_all(copy, {{EffectType::kQueueHead, {}, first_format}});
  CHECK(copy.events.count() == 2);
}

TEST_CASE("a worker keeps the request token of its last pop") {
  Queue queue;
  fill(queue);
  const std::vector<Record> records = walk(queue, 100);
  for (const bool newer_first : {false, true}) {
    Queue copy;
    const auto put = [&](Bytes id, uint64_t token, Bytes request) {
      Job* job = make_job(queue, id, "", JobState::kActive, 2, {}, {});
      fill_run(queue, job->extras(), token);
      job->extras().run->request_token = request;
      const std::string value = encoded([&](ByteBuffer& out) { encode_job(*job, {}, true, out); });
      queue.lanes.leave(job->lane);
      Job::destroy(job);
      apply_all(copy, {{EffectType::kJobPut, std::string(id), value}});
    };
    if (newer_first) put("new", 12, "second");
    put("old", 11, "first");
    if (!newer_first) put("new", 12, "second");
    CHECK(copy.workers.find("worker 1")->request_token == "second");
    CHECK(copy.workers.find("worker 1")->active.size() == 2);
    apply_all(copy, {{EffectType::kJobGone, "old", encoded_gone({})},
                     {EffectType::kJobGone, "new", encoded_gone({})}});
    CHECK(copy.workers.find("worker 1") == nullptr);
  }
}

TEST_CASE("a worker's runs are in the order of their starts, also when one is placed anew") {
  Queue queue;
  std::vector<Job*> runs;
  for (const Bytes id : {"a", "b", "c"}) {
    Job* job = make_job(queue, id, "", JobState::kActive, 2, {}, {});
    fill_run(queue, job->extras(), 11 + runs.size());
    queue.insert(job);
    runs.push_back(job);
  }
  for (const size_t anew : {1, 0}) {
    queue.unplace(runs[anew]);
    queue.place(runs[anew]);
    std::vector<Job*> active;
    const Worker* worker = queue.workers.find("worker 1");
    for (auto at = worker->active.begin(); at.valid(); at.next()) active.push_back(at.value());
    CHECK(active == runs);
  }
}

TEST_CASE("the log of a job stays with its states and goes with the first that has none") {
  Queue queue;
  fill(queue);
  const Job* job = queue.find("delayed");
  const auto record = [&](bool whole) {
    return Record{whole ? EffectType::kJobPut : EffectType::kJobState, "delayed",
                  encoded([&](ByteBuffer& out) { encode_job(*job, {}, whole, out); })};
  };
  const auto piece = [&](uint64_t at, Bytes bytes) {
    return Record{EffectType::kJobLog, "delayed",
                  encoded([&](ByteBuffer& out) { encode_log(*job, at, bytes, out); })};
  };
  const auto log = [](Queue& of) { return dump_log(*of.find("delayed")); };
  Queue copy;
  apply_all(copy, {piece(5, "x"), record(true)});
  CHECK(log(copy) == "");
  apply_all(copy, {piece(5, Bytes("lines\0\n", 7)), record(false), record(true)});
  copy.check();
  CHECK(log(copy) == log(queue));
  // This one belongs to another job that had the id.
  const_cast<Job*>(job)->extras().arrival = 78;
  apply_all(copy, {piece(12, "no")});
  CHECK(log(copy) == log(queue));
  const_cast<Job*>(job)->extras().arrival = 77;
  std::unique_ptr<JobLog> taken = std::move(const_cast<Job*>(job)->extras().log);
  for (const bool whole : {false, true}) {
    Queue other;
    apply_all(other, walk(copy, 1000));
    CHECK(log(other) != "");
    apply_all(other, {record(whole)});
    CHECK(log(other) == "");
    other.check();
  }
  const_cast<Job*>(job)->extras().log = std::move(taken);
}

TEST_CASE("a damaged record is refused or harmless: every prefix, every flipped bit") {
  Queue queue;
  fill(queue);
  const RecordedEvent event{EventType::kStarted, 110, kNow, {}};
  std::vector<Record> records = walk(queue, 1000);
  const std::vector<Record> whole = records;
  queue.jobs.for_each([&](const Job* job) {
    records.push_back({EffectType::kJobState, std::string(job->id()),
                       encoded([&](ByteBuffer& out) { encode_job(*job, event, false, out); })});
  });
  records.push_back({EffectType::kJobGone, "plain", encoded_gone(event)});
  size_t refused = 0;
  for (const Record& record : records) {
    INFO(describe_queue_effect(record.effect()));
    Queue target;
    target.begin_replay();
    apply_all(target, whole);
    for (size_t size = 0; size < record.value.size(); ++size) {
      Record cut = record;
      cut.value.resize(size);
      describe_queue_effect(cut.effect());
      const bool applied = apply_queue_effect(target, cut.effect());
      // Configuration and events are lists: their prefixes are complete records as well.
      if (record.type == EffectType::kQueueConfig || record.type == EffectType::kQueueEvents) {
        continue;
      }
      // Directories of format 1 have heads without the number of kept events.
      if (record.type == EffectType::kQueueHead && size + 1 == record.value.size()) continue;
      CHECK_FALSE(applied);
    }
    for (size_t bit = 0; bit < record.value.size() * 8; ++bit) {
      Record flipped = record;
      flipped.value[bit / 8] = static_cast<char>(flipped.value[bit / 8] ^ (1 << (bit % 8)));
      describe_queue_effect(flipped.effect());
      if (!apply_queue_effect(target, flipped.effect())) ++refused;
      target.next_due_ms();
      target.next_due_steady();
    }
    target.end_replay([] {});
    target.check();
    walk(target, 10);
  }
  CHECK(refused > 1000);
}

TEST_CASE("a record that says what no job can be is refused") {
  Queue queue;
  fill(queue);
  const auto applies = [&](void (*change)(Job&)) {
    Job* job = Job::make("plain", "");
    change(*job);
    const std::string value = encoded([&](ByteBuffer& out) { encode_job(*job, {}, false, out); });
    Job::destroy(job);
    const Record record{EffectType::kJobState, "plain", value};
    return apply_queue_effect(queue, record.effect());
  };
  CHECK(applies([](Job& job) { job.rank = kNow; }));
  // A state without its own fields, or with those of another state.
  CHECK_FALSE(applies([](Job& job) { job.state = JobState::kActive; }));
  CHECK_FALSE(applies([](Job& job) { job.state = JobState::kFailed; }));
  CHECK_FALSE(applies([](Job& job) { job.extras().end = std::make_unique<JobEnd>(); }));
  CHECK_FALSE(applies([](Job& job) { job.extras().successor = std::make_unique<JobSuccessor>(); }));
  // Times and numbers that would overflow.
  CHECK_FALSE(applies([](Job& job) { job.rank = INT64_MIN + 1; }));
  CHECK_FALSE(applies([](Job& job) { job.seq = uint64_t{1} << 60; }));
  CHECK_FALSE(applies([](Job& job) { job.extras().ttl_due_ms = INT64_MAX; }));
  CHECK_FALSE(applies([](Job& job) { job.extras().gate_ms = -1; }));
  CHECK(applies([](Job& job) {
    job.state = JobState::kBlocked;
    job.extras().unmet = {"a", "b"};
  }));
  CHECK_FALSE(applies([](Job& job) {
    job.state = JobState::kBlocked;
    job.extras().unmet = {"a", "b", "a"};
  }));
  CHECK_FALSE(applies([](Job& job) {
    job.state = JobState::kBlocked;
    for (int i = 0; i < 65; ++i) job.extras().unmet.push_back(std::to_string(i));
  }));
  queue.check();
}

TEST_CASE("random bytes in place of a record change nothing that cannot be walked") {
  for (const uint64_t seed : testing::seeds(50, 7)) {
    testing::use_seed(seed);
    std::mt19937_64 random(seed);
    Queue source;
    fill(source);
    const std::vector<Record> records = walk(source, 1000);
    Queue queue;
    queue.begin_replay();
    apply_all(queue, records);
    for (int i = 0; i < 300; ++i) {
      Record record = records[random() % records.size()];
      for (uint64_t count = random() % 4; count != 0 && !record.value.empty(); --count) {
        record.value[random() % record.value.size()] = static_cast<char>(random());
      }
      if (random() % 4 == 0) record.value.resize(random() % (record.value.size() + 1));
      if (random() % 8 == 0) record.field = "other";
      apply_queue_effect(queue, record.effect());
    }
    queue.end_replay([] {});
    queue.check();
    walk(queue, 10);
  }
}

TEST_CASE("effects of queues are encoded, decoded and described") {
  Queue queue;
  fill(queue);
  for (const Record& record : walk(queue, 1000)) {
    ByteBuffer buffer;
    EffectEncoder(buffer).queue_record(record.type, 3, "the key", record.field, record.value);
    const std::string bytes(buffer.view());
    for (size_t size = 0; size < bytes.size(); ++size) {
      Bytes rest = Bytes(bytes).substr(0, size);
      Effect effect;
      CHECK_FALSE(decode_effect(rest, effect));
    }
    Bytes rest = bytes;
    Effect effect;
    REQUIRE(decode_effect(rest, effect));
    CHECK(rest.empty());
    CHECK(effect.type == record.type);
    CHECK(effect.database == 3);
    CHECK(effect.key == "the key");
    CHECK(effect.field == record.field);
    CHECK(effect.value == record.value);
    CHECK(describe_effect(effect).find("damaged") == std::string::npos);
    CHECK(describe_effect(effect).find("the key") != std::string::npos);
  }
  ByteBuffer buffer;
  EffectEncoder(buffer).token_floor(12345);
  Bytes rest = buffer.view();
  Effect effect;
  REQUIRE(decode_effect(rest, effect));
  CHECK(effect.number == 12345);
  CHECK(describe_effect(effect) == "token_floor 12345");
}

}  // namespace sluice::test

// A stream compared with a map of its entries, through its changes and through its records.
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/commands/complete_engine.h"
#include "engine/execution/execution.h"
#include "engine/keyspace/stream_records.h"
#include "engine/structures/stream.h"
#include "engine/unit/effects.h"
#include "tests/support/engine_session.h"
#include "tests/support/large_moves.h"
#include "tests/support/memory_journal.h"
#include "tests/support/quiet_server.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

namespace sluice::test {

namespace {

using Words = std::vector<std::string>;
using Model = std::map<StreamId, Words>;

Words words_of(const StreamEntry& entry) {
  Words words;
  entry.each_field([&](Bytes name, Bytes value) {
    words.emplace_back(name);
    words.emplace_back(value);
  });
  return words;
}

Words random_words(std::mt19937_64& random) {
  Words words;
  const size_t fields = 1 + random() % 3;
  for (size_t i = 0; i < fields; ++i) {
    words.push_back(random() % 3 == 0 ? "name" + std::to_string(random() % 4) : "n");
    words.push_back(random() % 2 == 0 ? std::to_string(random())
                                      : std::string(random() % 300, 'v'));
  }
  return words;
}

void check_range(const Stream& stream, const Model& model, const StreamId& from,
                 const StreamId& to) {
  std::vector<std::pair<StreamId, Words>> expected;
  for (auto at = model.lower_bound(from); at != model.end() && at->first <= to; ++at) {
    expected.emplace_back(*at);
  }
  std::vector<std::pair<StreamId, Words>> seen;
  const auto visit = [&](const StreamEntry& entry) {
    seen.emplace_back(entry.id(), words_of(entry));
    return true;
  };
  stream.each(from, to, visit);
  REQUIRE(seen == expected);
  seen.clear();
  stream.each_reverse(from, to, visit);
  REQUIRE(seen == std::vector(expected.rbegin(), expected.rend()));
}

void check_same(const Stream& stream, const Model& model) {
  REQUIRE(stream.length() == model.size());
  check_range(stream, model, {}, StreamId::max());
  CHECK(stream.first_entry_id() == (model.empty() ? StreamId{} : model.begin()->first));
  CHECK(stream.last_entry_id() == (model.empty() ? StreamId{} : model.rbegin()->first));
}

// The records of a whole stream, in pieces of `limit` elements, applied to another one.
std::unique_ptr<Stream> through_records(const Stream& stream, size_t limit) {
  auto made = std::make_unique<Stream>();
  StreamCursor cursor;
  const EmitStreamRecord emit = [&](EffectType type, Bytes field, Bytes value) {
    Effect effect;
    effect.type = type;
    effect.field = field;
    effect.value = value;
    REQUIRE(apply_stream_effect(*made, effect));
    CHECK(describe_stream_effect(effect).find("damaged") == std::string::npos);
  };
  while (walk_stream(stream, cursor, limit, emit)) {
  }
  return made;
}

}  // namespace

TEST_CASE("a stream is a map of entries") {
  for (const uint64_t seed : testing::seeds(4, 7)) {
    testing::use_seed(seed);
    INFO("seed ", seed);
    std::mt19937_64 random(seed);
    Stream stream;
    Model model;
    StreamId last;
    const auto some_id = [&] {
      StreamId id{random() % (last.ms + 2), random() % 3};
      const auto at = model.lower_bound(id);
      return at != model.end() && random() % 4 != 0 ? at->first : id;
    };
    for (int i = 0; i < 6000; ++i) {
      const uint64_t dice = random() % 100;
      if (dice < 60) {
        last = random() % 3 == 0 ? StreamId{last.ms, last.seq + 1}
                                 : StreamId{last.ms + 1 + random() % 3, random() % 2};
        const Words words = random_words(random);
        stream.append(last, std::vector<Bytes>(words.begin(), words.end()));
        model.emplace(last, words);
      } else if (dice < 95) {
        const StreamId id = some_id();
        StreamNode* node = stream.erase(id);
        CHECK((node != nullptr) == (model.erase(id) != 0));
        if (node != nullptr && node->live() == 0) stream.remove_node(node);
      } else if (dice < 96 && stream.nodes().size() > 20) {
        StreamNode* node = stream.node_from({});
        model.erase(model.begin(), model.upper_bound(node->last_id()));
        stream.remove_node(node);
      } else {
        StreamId from = some_id();
        StreamId to = some_id();
        if (random() % 8 != 0 && to < from) std::swap(from, to);
        check_range(stream, model, from, to);
        CHECK(stream.contains(from) == model.contains(from));
        // One after the other, as a consumer group reads.
        for (int step = 0; step < 5 && from != StreamId::max(); ++step) {
          check_range(stream, model, from, to);
          from.increment();
        }
      }
    }
    check_same(stream, model);
    CHECK(stream.last_id == last);
    for (const size_t limit : {size_t{1}, size_t{150}, SIZE_MAX}) {
      const std::unique_ptr<Stream> other = through_records(stream, limit);
      check_same(*other, model);
      CHECK(other->last_id == last);
      CHECK(other->entries_added == stream.entries_added);
      REQUIRE(other->nodes().size() == stream.nodes().size());
      CHECK(other->radix_tree_nodes() == stream.radix_tree_nodes());
    }
    Stream copied;
    copied.copy_from(stream);
    check_same(copied, model);
  }
}

TEST_CASE("a node is full when its listpack in Redis would be") {
  // Values and their bytes in a listpack: a kind, the value, and the length of both.
  const std::vector<std::pair<std::string, uint32_t>> values = {
      {"0", 2},
      {"127", 2},
      {"128", 3},
      {"-1", 3},
      {"4095", 3},
      {"-4096", 3},
      {"4096", 4},
      {"-4097", 4},
      {"32767", 4},
      {"-32768", 4},
      {"32768", 5},
      {"-32769", 5},
      {"8388607", 5},
      {"-8388608", 5},
      {"8388608", 6},
      {"-8388609", 6},
      {"2147483647", 6},
      {"-2147483648", 6},
      {"2147483648", 10},
      {"9223372036854775807", 10},
      {"9223372036854775808", 21},
      {"01", 4},
      {"", 2},
      {std::string(63, 'x'), 65},
      {std::string(64, 'x'), 67},
      {std::string(125, 'x'), 128},
      {std::string(126, 'x'), 130},
      {std::string(4095, 'x'), 4099},
      {std::string(4096, 'x'), 4103},
      {std::string(16'377, 'x'), 16'384},
      {std::string(16'378, 'x'), 16'386},
  };
  const Words first{"n", "v"};
  StreamNode* node = StreamNode::make({1, 0}, std::vector<Bytes>(first.begin(), first.end()));
  uint64_t seq = 0;
  for (const auto& each : values) {
    CAPTURE(each.first);
    const uint32_t before = node->listpack_bytes();
    const std::vector<Bytes> words{"n", each.first};
    node = StreamNode::append(node, {1, seq++}, words);
    // Besides the value: flags, both parts of the id and the number of elements.
    CHECK(node->listpack_bytes() - before == each.second + 8);
  }
  StreamNode::destroy(node);
}

TEST_CASE("XCLAIM takes no time of the future") {
  QuietServer server;
  CompleteEngine engine(server, 7);
  Execution execution(engine);
  EngineSession session(engine, execution);
  execution.set_now_ms(1'000'000);
  session.run({"XADD", "s", "1-1", "a", "b"});
  session.run({"XGROUP", "CREATE", "s", "g", "0"});
  session.run({"XREADGROUP", "GROUP", "g", "alice", "STREAMS", "s", ">"});
  session.run({"XCLAIM", "s", "g", "bob", "0", "1-1", "TIME", "99999999999999", "JUSTID"});
  execution.set_now_ms(1'001'000);
  CHECK(session.run({"XAUTOCLAIM", "s", "g", "carol", "1000", "0", "JUSTID"}) ==
        "*3\r\n$3\r\n0-0\r\n*1\r\n$3\r\n1-1\r\n*0\r\n");
}

TEST_CASE("records of streams that are not whole are refused") {
  Stream stream;
  const std::vector<Bytes> words{"a", "1", "b", "2"};
  const StreamNode* node = stream.append({5, 0}, words);
  const auto kept = [](const StreamAddRecord& record) {
    return StreamRecord{record.field, std::string(record.value)};
  };
  const StreamRecord first = kept(encode_stream_add(stream, *node));
  node = stream.append({6, 0}, words);
  const StreamRecord second = kept(encode_stream_add(stream, *node));
  const StreamRecord whole = encode_stream_node(*node);
  const auto applies = [](EffectType type, Bytes field, Bytes value) {
    Stream other;
    Effect effect;
    effect.type = type;
    effect.field = field;
    effect.value = value;
    return apply_stream_effect(other, effect);
  };
  CHECK(applies(EffectType::kStreamAdd, first.field, first.value));
  CHECK(applies(EffectType::kStreamAdd, second.field, second.value));
  CHECK(applies(EffectType::kStreamNode, whole.field, whole.value));
  for (size_t cut = 0; cut < whole.value.size(); ++cut) {
    CHECK_FALSE(applies(EffectType::kStreamNode, whole.field, Bytes(whole.value).substr(0, cut)));
  }
  for (size_t cut = 0; cut < second.value.size(); ++cut) {
    CHECK_FALSE(applies(EffectType::kStreamAdd, second.field, Bytes(second.value).substr(0, cut)));
  }
}

namespace {

// Everything that a client can read of a stream, except when consumers were seen, which is
// journaled only with what they receive.
std::string everything(EngineSession& session, const std::string& key) {
  std::string all = session.run({"XRANGE", key, "-", "+"}) + session.run({"XINFO", "STREAM", key});
  all += session.run({"XINFO", "STREAM", key, "FULL", "COUNT", "0"});
  for (const char* group : {"g", "h"}) {
    all += session.run({"XPENDING", key, group, "-", "+", "100000"});
  }
  const std::string seen = "seen-time\r\n:";
  for (size_t at = all.find(seen); at != std::string::npos; at = all.find(seen, at)) {
    at += seen.size();
    all.erase(at, all.find('\r', at) - at);
  }
  return all;
}

std::vector<std::string> random_command(std::mt19937_64& random, int step) {
  const std::string key = random() % 2 == 0 ? "s" : "t";
  const std::string group = random() % 2 == 0 ? "g" : "h";
  const std::string consumer = "c" + std::to_string(random() % 3);
  const auto id = [&] { return std::to_string(1 + random() % static_cast<uint64_t>(step + 2)); };
  switch (random() % 16) {
    case 0:
      return {"XGROUP", "CREATE", key, group, id(), "MKSTREAM"};
    case 1:
      return {"XREADGROUP", "GROUP", group, consumer, "COUNT", "5", "STREAMS", key, ">"};
    case 2:
      return {"XREADGROUP", "GROUP", group, consumer, "COUNT", "3", "STREAMS", key, "0"};
    case 3:
      return {"XACK", key, group, id(), id(), id()};
    case 4:
      return {"XCLAIM", key, group, consumer, "0", id(), id(), "FORCE"};
    case 5:
      return {"XAUTOCLAIM", key, group, consumer, "0", id(), "COUNT", "4"};
    case 6:
      return {"XDEL", key, id(), id()};
    case 7:
      return {"XTRIM", key, "MAXLEN", random() % 2 == 0 ? "~" : "=",
              std::to_string(random() % 300)};
    case 8:
      return {"XGROUP", "SETID", key, group, id()};
    default:
      break;
  }
  switch (random() % 60) {
    case 0:
      return {"DEL", key};
    case 1:
      return {"XGROUP", "DESTROY", key, group};
    case 2:
      return {"XGROUP", "DELCONSUMER", key, group, consumer};
    case 3:
      return {"RENAME", key, random() % 2 == 0 ? "s" : "t"};
    case 4:
      return {"XSETID", key, std::to_string(step + 5)};
    default:
      return {"XADD", key, std::to_string(step + 1), random() % 4 == 0 ? "other" : "name",
              std::string(random() % 60, 'v')};
  }
}

}  // namespace

TEST_CASE("streams are the same after replay, whatever part of it a fuzzy walk has seen before") {
  const LargeMoves large;
  for (const uint64_t seed : testing::seeds(6, 11)) {
    testing::use_seed(seed);
    INFO("seed ", seed);
    std::mt19937_64 random(seed);
    QuietServer port;
    MemoryJournal journal;
    CompleteEngine engine(port, 7);
    engine.attach_journal(&journal);
    Execution execution(engine);
    execution.set_now_ms(1'700'000'000'000);
    EngineSession session(engine, execution);
    const auto run = [&](const std::vector<std::string>& words) {
      session.run(std::vector<Bytes>(words.begin(), words.end()));
    };
    journal.take_moves(true);
    for (int step = 0; step < 2500; ++step) {
      if (step % 50 == 0) execution.set_now_ms(execution.now_ms() + 1000);
      run(random_command(random, step));
    }
    // The walk proceeds piece by piece between commands.
    journal.take_moves(false);
    const Lsn begin = journal.last_lsn();
    ByteBuffer walked;
    uint64_t count = 0;
    const std::unique_ptr<CheckpointWalk> walk = engine.begin_walk();
    int step = 2500;
    for (bool more = true; more;) {
      more = walk->step(walked, count);
      for (int i = 0; i < 6; ++i, ++step) run(random_command(random, step));
    }
    journal.take_moves(true);
    for (int i = 0; i < 500; ++i, ++step) run(random_command(random, step));
    CHECK(journal.last_move_lsn > 0);
    for (const bool from_checkpoint : {false, true}) {
      CompleteEngine other(port, 7);
      const std::unique_ptr<Replay> replay = other.begin_replay();
      if (from_checkpoint) REQUIRE(replay->apply(walked.view(), count));
      for (Lsn lsn = from_checkpoint ? begin + 1 : 1; lsn <= journal.last_lsn(); ++lsn) {
        const MemoryJournal::Unit unit = journal.unit(lsn);
        REQUIRE(replay->apply(unit.records, unit.count));
      }
      replay->finish();
      Execution other_execution(other);
      other_execution.set_now_ms(execution.now_ms());
      EngineSession other_session(other, other_execution);
      for (const char* key : {"s", "t"}) {
        CHECK(everything(other_session, key) == everything(session, key));
      }
    }
  }
}

}  // namespace sluice::test

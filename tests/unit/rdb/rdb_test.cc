// Values in RDB format: written by redis-server 7.0.15 and older servers, written here, and damaged
// at every position.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "engine/commands/complete_engine.h"
#include "engine/execution/execution.h"
#include "engine/keyspace/collections.h"
#include "engine/rdb/crc64.h"
#include "engine/rdb/format.h"
#include "engine/rdb/packed.h"
#include "engine/rdb/reader.h"
#include "engine/rdb/value.h"
#include "tests/support/engine_session.h"
#include "tests/support/quiet_server.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

namespace sluice::test {

namespace {

using Texts = std::vector<std::string>;
constexpr uint64_t kMaxString = 1 << 20;

std::string bytes_of(Bytes hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

// A payload with its footer.
std::string payload_of(const std::string& value, unsigned version = rdb::kVersion) {
  std::string payload = value;
  payload += static_cast<char>(version);
  payload += static_cast<char>(version >> 8);
  uint64_t crc = rdb::crc64(payload);
  for (int i = 0; i < 8; ++i, crc >>= 8) payload += static_cast<char>(crc);
  return payload;
}

OwnedEntry read(Bytes payload) {
  OwnedEntry value;
  REQUIRE(rdb::read_payload(payload, kMaxString, "k", value) == rdb::PayloadFault::kNone);
  return value;
}

double first_score(const OwnedEntry& value) {
  return value->object<SortedSet>().order.begin().value()->score();
}

// Collects what a reader of packed sequences returns.
using ReadPacked = bool (*)(Bytes packed, const rdb::TakeElement& take);
bool read_packed(ReadPacked reader, Bytes packed, Texts& out) {
  return reader(packed, [&](Bytes element) {
    out.emplace_back(element);
    return true;
  });
}

std::string bulk(Bytes reply) {
  const size_t end = reply.find("\r\n");
  return std::string(reply.substr(end + 2, reply.size() - end - 4));
}

// Small values of every type and encoding.
std::vector<Texts> small_values() {
  Texts large_hash{"HSET", "k"};
  Texts large_set{"SADD", "k"};
  Texts large_sorted{"ZADD", "k"};
  Texts large_list{"RPUSH", "k"};
  // One entry that fills more than a node.
  Texts large_stream{"XADD", "k", "18446744073709551615-18446744073709551614"};
  for (int i = 0; i < 600; ++i) {
    large_stream.insert(large_stream.end(), {"name" + std::to_string(i), std::string(9, 'x')});
    large_hash.insert(large_hash.end(), {"field" + std::to_string(i), std::to_string(i * 1000)});
    large_set.push_back("member" + std::to_string(i));
    large_sorted.insert(large_sorted.end(), {std::to_string(i) + ".5", "m" + std::to_string(i)});
    large_list.push_back(std::string(30, static_cast<char>('a' + i % 26)));
  }
  return {{"SET", "k", ""},
          {"SET", "k", "text"},
          {"SET", "k", "-129"},
          {"SET", "k", "70000"},
          {"SET", "k", "4294967296"},
          {"SET", "k", std::string(16383, 'x')},
          {"SET", "k", std::string(16384, 'x')},
          {"RPUSH",
           "k",
           "a",
           "",
           "127",
           "128",
           "-1",
           "-4096",
           "-4097",
           "4095",
           "4096",
           "32767",
           "-32769",
           "8388607",
           "8388608",
           "2147483648",
           "9223372036854775807",
           std::string(63, 'b'),
           std::string(64, 'c'),
           std::string(5000, 'd')},
          {"SADD", "k", "1", "-5", "70000"},
          {"SADD", "k", "5000000000", "3"},
          {"SADD", "k", "a", "1"},
          {"HSET", "k", "f", "v", "1", "2", "", ""},
          {"ZADD", "k", "1", "a", "-0.5", "b", "inf", "c", "-inf", "d", "1e300", "e"},
          {"XADD", "k", "5-1", "a", "1", "b", "-7"},
          large_stream,
          large_hash,
          large_set,
          large_sorted,
          large_list};
}

// A server in this process that holds the value.
struct Holder {
  explicit Holder(const Texts& command) : engine(port, 7), execution(engine) {
    EngineSession session(engine, execution);
    session.run(std::vector<Bytes>(command.begin(), command.end()));
  }
  std::string run(std::initializer_list<Bytes> words) {
    EngineSession session(engine, execution);
    return session.run(words);
  }

  QuietServer port;
  CompleteEngine engine;
  Execution execution;
};

}  // namespace

TEST_CASE("the checksum is that of RDB") {
  CHECK(rdb::crc64("123456789") == 0xe9c6d914c4b8d9ca);
  CHECK(rdb::crc64("") == 0);
}

TEST_CASE("LZF is unpacked, and damage is met") {
  std::string out;
  // Twelve literal bytes, then short and long references that overlap their own output.
  CHECK(rdb::lzf_decompress(bytes_of("026162632002"), 6, out));
  CHECK(out == "abcabc");
  CHECK(rdb::lzf_decompress(bytes_of("0061e00a00"), 20, out));
  CHECK(out == std::string(20, 'a'));
  CHECK_FALSE(rdb::lzf_decompress(bytes_of("0061e00a00"), 19, out));
  CHECK_FALSE(rdb::lzf_decompress(bytes_of("0061e00a00"), 21, out));
  CHECK_FALSE(rdb::lzf_decompress(bytes_of("0061e00a01"), 20, out));
  CHECK_FALSE(rdb::lzf_decompress(bytes_of("0061e00a"), 20, out));
  CHECK_FALSE(rdb::lzf_decompress(bytes_of("0061e0"), 20, out));
  CHECK_FALSE(rdb::lzf_decompress(bytes_of("0561"), 6, out));
}

TEST_CASE("older encodings are read") {
  // A ziplist with texts and integers of every width.
  const std::string ziplist = bytes_of(
      "29000000230000000900"
      "00"
      "0161"
      "03f1"
      "02fd"
      "02fe80"
      "03c00001"
      "04f0000001"
      "05d000000001"
      "06e00000000000000001"
      "0a026263"
      "ff");
  Texts texts;
  std::string sized = ziplist;
  sized[0] = static_cast<char>(sized.size());
  CHECK(read_packed(rdb::read_ziplist, sized, texts));
  CHECK(texts ==
        Texts{"a", "0", "12", "-128", "256", "65536", "16777216", "72057594037927936", "bc"});
  texts.clear();
  CHECK(read_packed(rdb::read_zipmap,
                    bytes_of("0203666f6f0300626172026869010178ffff").substr(0, 17),
                    texts) == false);
  texts.clear();
  CHECK(read_packed(rdb::read_zipmap, bytes_of("0203666f6f030062617202686901017878ff"), texts));
  CHECK(texts == Texts{"foo", "bar", "hi", "x"});
  texts.clear();
  CHECK(read_packed(rdb::read_intset, bytes_of("0200000003000000feff01000700"), texts));
  CHECK(texts == Texts{"-2", "1", "7"});

  const std::string packed(1, static_cast<char>(sized.size()));
  CHECK(read(payload_of("\x0a" + packed + sized))->object<List>().items.size() == 9);
  CHECK(
      read(payload_of(std::string("\x0e\x01", 2) + packed + sized))->object<List>().items.size() ==
      9);
  CHECK(first_score(read(payload_of(bytes_of("0c10"
                                             "10000000"
                                             "0d000000"
                                             "0200"
                                             "000161"
                                             "03f6"
                                             "ff")))) == 5);
  CHECK(first_score(read(payload_of(bytes_of("0301016103312e35"), 6))) == 1.5);
  CHECK(first_score(read(payload_of(bytes_of("03010161fe"), 6))) > 1e308);
  CHECK(first_score(read(payload_of(bytes_of("03010161ff"), 6))) < -1e308);
}

TEST_CASE("a ziplist with longer texts is read") {
  const std::string middle(250, 'm');  // its entry takes 253 bytes, the longest with a short length
  const std::string longer(300, 'n');
  const std::string longest(16384, 'o');
  std::string ziplist = bytes_of("000000000000000004000040fa") + middle;
  ziplist += bytes_of("fd412c") + longer + bytes_of("fe2f010000") + bytes_of("8000004000");
  ziplist += longest + bytes_of("fe0a400000") + bytes_of("0165ff");
  ziplist[0] = static_cast<char>(ziplist.size());
  ziplist[1] = static_cast<char>(ziplist.size() >> 8);
  Texts texts;
  CHECK(read_packed(rdb::read_ziplist, ziplist, texts));
  CHECK(texts == Texts{middle, longer, longest, "e"});
}

// As redis-server 7.0.15 writes them with `rdbcompression no`.
TEST_CASE("a length that just needs one more byte is written as Redis does") {
  const std::string text(16384, 'x');
  Holder holder({"SET", "k", text});
  CHECK((bulk(holder.run({"DUMP", "k"})) == payload_of(bytes_of("008000004000") + text)));
  // The entry in the listpack takes 16383 bytes.
  const std::string item(16378, 'i');
  holder.run({"RPUSH", "list", item});
  CHECK((bulk(holder.run({"DUMP", "list"})) == payload_of(bytes_of("120102"
                                                                   "8000004009"
                                                                   "09400000"
                                                                   "0100"
                                                                   "f0fa3f0000") +
                                                          item + bytes_of("00ffffff"))));
}

TEST_CASE("what is written is read, whatever the value") {
  for (const Texts& command : small_values()) {
    Holder from(command);
    Holder to({"PING"});
    const std::string payload = bulk(from.run({"DUMP", "k"}));
    CHECK(to.run({"RESTORE", "k", "0", payload}) == "+OK\r\n");
    CHECK(to.run({"OBJECT", "ENCODING", "k"}) == from.run({"OBJECT", "ENCODING", "k"}));
    CHECK(bulk(to.run({"DUMP", "k"})).size() == payload.size());
    for (const auto& question : std::vector<std::vector<Bytes>>{{"TYPE", "k"},
                                                                {"GET", "k"},
                                                                {"LRANGE", "k", "0", "-1"},
                                                                {"SORT", "k", "ALPHA"},
                                                                {"ZRANGE", "k", "0", "-1"},
                                                                {"HLEN", "k"},
                                                                {"HGET", "k", "field77"},
                                                                {"HGET", "k", ""},
                                                                {"XRANGE", "k", "-", "+"},
                                                                {"XINFO", "STREAM", "k"}}) {
      EngineSession one(from.engine, from.execution);
      EngineSession other(to.engine, to.execution);
      CHECK(one.run(question) == other.run(question));
    }
  }
}

TEST_CASE("payloads that are cut or changed anywhere are refused, or are another value") {
  for (const Texts& command : small_values()) {
    Holder from(command);
    const std::string payload = bulk(from.run({"DUMP", "k"}));
    if (payload.size() > 2000) continue;
    Holder to({"PING"});
    for (size_t size = 0; size < payload.size(); ++size) {
      CHECK(to.run({"RESTORE", "cut", "0", Bytes(payload).substr(0, size)}) ==
            "-ERR DUMP payload version or checksum are wrong\r\n");
    }
    const std::string value = payload.substr(0, payload.size() - 10);
    for (size_t at = 0; at < value.size(); ++at) {
      for (const int flip : {0x01, 0x80, 0xff, 0x40}) {
        std::string changed = value;
        changed[at] = static_cast<char>(changed[at] ^ flip);
        const std::string reply = to.run({"RESTORE", "k", "0", payload_of(changed), "REPLACE"});
        CHECK((reply == "+OK\r\n" || reply == "-ERR Bad data format\r\n"));
        if (reply == "+OK\r\n") CHECK(bulk(to.run({"DUMP", "k"})).size() > 10);
      }
      const std::string reply =
          to.run({"RESTORE", "k", "0", payload_of(value.substr(0, at)), "REPLACE"});
      CHECK((reply == "+OK\r\n" || reply == "-ERR Bad data format\r\n"));
    }
  }
}

TEST_CASE("bytes of any kind behind a right checksum are survived") {
  for (const uint64_t seed : testing::seeds(10, 91)) {
    testing::use_seed(seed);
    std::mt19937_64 random(seed);
    for (int i = 0; i < 2000; ++i) {
      std::string value(1, static_cast<char>(random() % 20));
      for (uint64_t left = random() % 60; left != 0; --left) {
        value += static_cast<char>(random() % 3 == 0 ? random() % 4 : random());
      }
      OwnedEntry decoded;
      const rdb::PayloadFault fault =
          rdb::read_payload(payload_of(value), kMaxString, "k", decoded);
      CHECK(fault != rdb::PayloadFault::kFooter);
    }
  }
}

TEST_CASE("sizes that a payload only claims cost no memory") {
  for (const char* value :
       {"0081ffffffffffffffff", "0180ffffffff", "02c37fffffff0161", "00c30580fffffff00061e00a00",
        "0480ffffffff", "0580ffffffff", "1281ffffffffffffffff",
        "0b08"
        "0800000000000020"}) {
    OwnedEntry decoded;
    CHECK(rdb::read_payload(payload_of(bytes_of(value)), kMaxString, "k", decoded) ==
          rdb::PayloadFault::kData);
  }
  OwnedEntry decoded;
  CHECK(rdb::read_payload(payload_of(bytes_of("000161"), 11), kMaxString, "k", decoded) ==
        rdb::PayloadFault::kFooter);
}

TEST_CASE("a compressed text may be as long as others, and no longer") {
  const std::string twenty = payload_of(bytes_of("00c305140061e00a00"));
  OwnedEntry decoded;
  CHECK(rdb::read_payload(twenty, 20, "k", decoded) == rdb::PayloadFault::kNone);
  CHECK(rdb::read_payload(twenty, 19, "k", decoded) == rdb::PayloadFault::kData);
}

TEST_CASE("a packed hash or sorted set with an element that has no partner is refused") {
  for (const int type : {rdb::kHashListpack, rdb::kSortedListpack}) {
    for (int elements = 2; elements <= 5; ++elements) {
      rdb::ListpackWriter writer;
      for (int64_t element = 0; element < elements; ++element) writer.append(element);
      const std::string packed = writer.take();
      const std::string value{static_cast<char>(type), static_cast<char>(packed.size())};
      OwnedEntry decoded;
      CHECK((rdb::read_payload(payload_of(value + packed), kMaxString, "k", decoded) ==
             rdb::PayloadFault::kNone) == (elements % 2 == 0));
    }
  }
}

// A stream with deleted entries, several nodes and groups in every state.
std::vector<Texts> stream_commands() {
  std::vector<Texts> commands;
  for (int i = 1; i <= 250; ++i) {
    commands.push_back({"XADD", "k", std::to_string(i / 3 + 1) + "-" + std::to_string(i), "name",
                        std::to_string(i), i % 7 == 0 ? "other" : "same", "value"});
  }
  for (const int gone : {1, 2, 3, 40, 99, 100, 101, 249, 250}) {
    commands.push_back({"XDEL", "k", std::to_string(gone / 3 + 1) + "-" + std::to_string(gone)});
  }
  commands.insert(commands.end(),
                  {{"XGROUP", "CREATE", "k", "g", "0"},
                   {"XGROUP", "CREATE", "k", "idle", "$"},
                   {"XGROUP", "CREATE", "k", "", "20-60", "ENTRIESREAD", "60"},
                   {"XGROUP", "CREATECONSUMER", "k", "g", "nobody"},
                   {"XREADGROUP", "GROUP", "g", "ann", "COUNT", "10", "STREAMS", "k", ">"},
                   {"XREADGROUP", "GROUP", "g", "bob", "COUNT", "5", "STREAMS", "k", ">"},
                   {"XREADGROUP", "GROUP", "", "", "COUNT", "3", "STREAMS", "k", ">"},
                   {"XACK", "k", "g", "3-6", "3-7"},
                   {"XCLAIM", "k", "g", "bob", "0", "2-4", "2-5"}});
  return commands;
}

void run_all(Holder& holder, const std::vector<Texts>& commands) {
  EngineSession session(holder.engine, holder.execution);
  for (const Texts& command : commands) {
    const std::string reply = session.run(std::vector<Bytes>(command.begin(), command.end()));
    REQUIRE(reply[0] != '-');
  }
}

TEST_CASE("a stream is carried with what it remembers and its groups") {
  Holder from({"PING"});
  Holder to({"PING"});
  from.execution.set_now_ms(1'700'000'000'000);
  to.execution.set_now_ms(1'700'000'000'000);
  run_all(from, stream_commands());
  const std::string payload = bulk(from.run({"DUMP", "k"}));
  CHECK(to.run({"RESTORE", "k", "0", payload}) == "+OK\r\n");
  CHECK(bulk(to.run({"DUMP", "k"})) == payload);
  const std::vector<std::vector<Bytes>> questions = {{"XINFO", "STREAM", "k", "FULL", "COUNT", "0"},
                                                     {"XINFO", "GROUPS", "k"},
                                                     {"XRANGE", "k", "-", "+"},
                                                     {"XREVRANGE", "k", "+", "-"},
                                                     {"XPENDING", "k", "g", "-", "+", "100"}};
  for (const auto& question : questions) {
    EngineSession one(from.engine, from.execution);
    EngineSession other(to.engine, to.execution);
    CHECK(one.run(question) == other.run(question));
  }
  // It also continues alike, up to trimming by whole nodes.
  const std::vector<Texts> further = {{"XADD", "k", "90-1", "name", "1", "same", "value"},
                                      {"XTRIM", "k", "MINID", "~", "34-101"},
                                      {"XTRIM", "k", "MAXLEN", "3"},
                                      {"XREADGROUP", "GROUP", "g", "bob", "STREAMS", "k", ">"},
                                      {"XTRIM", "k", "MAXLEN", "0"}};
  for (const Texts& command : further) {
    run_all(from, {command});
    run_all(to, {command});
    for (const auto& question : questions) {
      EngineSession one(from.engine, from.execution);
      EngineSession other(to.engine, to.execution);
      CHECK(one.run(question) == other.run(question));
    }
  }
  const std::string empty = bulk(from.run({"DUMP", "k"}));
  CHECK(to.run({"RESTORE", "k", "0", empty, "REPLACE"}) == "+OK\r\n");
  CHECK(bulk(to.run({"DUMP", "k"})) == empty);
}

TEST_CASE("a stream of Redis 5 and 6, which has no counters, is read with its groups") {
  Holder from({"PING"});
  run_all(from, {{"XADD", "k", "5-1", "a", "1"},
                 {"XADD", "k", "5-2", "a", "2"},
                 {"XGROUP", "CREATE", "k", "g", "0"},
                 {"XREADGROUP", "GROUP", "g", "c", "COUNT", "1", "STREAMS", "k", ">"}});
  std::string value = bulk(from.run({"DUMP", "k"}));
  value.resize(value.size() - 10);
  // Length, last id, first id, highest deleted id, entries added; groups: name, last id, read.
  const std::string counted = bytes_of(
      "020502"
      "050100000201"
      "0167"
      "0501"
      "01");
  const size_t at = value.rfind(counted);
  REQUIRE(at != std::string::npos);
  value.replace(at, counted.size(),
                bytes_of("020502"
                         "01"
                         "0167"
                         "0501"));
  value[0] = 15;
  Holder to({"PING"});
  CHECK(to.run({"RESTORE", "k", "0", payload_of(value, 9)}) == "+OK\r\n");
  for (const auto& question : std::vector<std::vector<Bytes>>{
           {"XINFO", "GROUPS", "k"}, {"XRANGE", "k", "-", "+"}, {"XPENDING", "k", "g"}}) {
    EngineSession one(from.engine, from.execution);
    EngineSession other(to.engine, to.execution);
    CHECK(one.run(question) == other.run(question));
  }
}

TEST_CASE("a stream that makes no sense is refused") {
  Holder from({"PING"});
  run_all(from, {{"XADD", "k", "5-1", "a", "1"},
                 {"XADD", "k", "5-2", "a", "2"},
                 {"XGROUP", "CREATE", "k", "g", "0"},
                 {"XREADGROUP", "GROUP", "g", "c", "STREAMS", "k", ">"}});
  const std::string payload = bulk(from.run({"DUMP", "k"}));
  const std::string value = payload.substr(0, payload.size() - 10);
  Holder to({"PING"});
  for (size_t at = 1; at < value.size(); ++at) {
    for (unsigned byte = 0; byte < 256; ++byte) {
      std::string changed = value;
      changed[at] = static_cast<char>(byte);
      const std::string reply = to.run({"RESTORE", "k", "0", payload_of(changed), "REPLACE"});
      if (reply != "+OK\r\n") continue;
      // Accepted values are usable.
      CHECK(bulk(to.run({"DUMP", "k"})).size() > 10);
      to.run({"XINFO", "STREAM", "k", "FULL"});
      to.run({"XAUTOCLAIM", "k", "g", "d", "0", "0"});
      to.run({"XADD", "k", "*", "a", "3"});
      to.run({"XREADGROUP", "GROUP", "g", "c", "STREAMS", "k", ">"});
      to.run({"XTRIM", "k", "MAXLEN", "1"});
    }
  }
  const auto refused = [&](std::string bytes) {
    return to.run({"RESTORE", "r", "0", payload_of(bytes)}) == "-ERR Bad data format\r\n";
  };
  CHECK_FALSE(refused(value));
  to.run({"DEL", "r"});
  // After the one node: length, last id, first id, highest deleted id, entries added, groups.
  const size_t tail = value.rfind(bytes_of("0205020501000002010167"));
  REQUIRE(tail != std::string::npos);
  std::string changed = value;
  changed[tail] = 3;  // the length
  CHECK(refused(changed));
  changed = value;
  changed[tail + 2] = 1;  // the last id
  CHECK(refused(changed));
  // Two pending entries, and no consumer that owns them.
  CHECK(refused(value.substr(0, value.size() - 44) + std::string(1, '\0')));
}

// A node with the entry `ms`-1, which has one field.
std::string stream_node(int ms, bool is_deleted) {
  rdb::ListpackWriter writer;
  // The entries that are there and those that are not, the names, a mark.
  for (const int64_t number : {is_deleted ? 0 : 1, is_deleted ? 1 : 0, 1}) writer.append(number);
  writer.append("name");
  writer.append(int64_t{0});
  // Flags, what the id has beyond the node's, the value, the number of these elements.
  for (const int64_t number : {is_deleted ? 3 : 2, 0, 0}) writer.append(number);
  writer.append("value");
  writer.append(int64_t{4});
  const std::string packed = writer.take();
  return bytes_of("1000000000000000") + static_cast<char>(ms) + bytes_of("0000000000000001") +
         static_cast<char>(packed.size()) + packed;
}

TEST_CASE("a stream whose last id was set back to before deleted entries goes on from there") {
  Holder to({"PING"});
  // Length, last id, first id, highest deleted id, entries added, groups.
  const std::string value = bytes_of("1302") + stream_node(5, false) + stream_node(9, true) +
                            bytes_of("010501050109010200");
  CHECK(to.run({"RESTORE", "k", "0", payload_of(value)}) == "+OK\r\n");
  CHECK(to.run({"XADD", "k", "6-1", "name", "new"}) == "$3\r\n6-1\r\n");
  CHECK(to.run({"XADD", "k", "10-1", "name", "newest"}) == "$4\r\n10-1\r\n");
  for (const char* id : {"5-1", "6-1", "10-1"}) {
    CHECK(to.run({"XRANGE", "k", id, id}).substr(0, 2) == "*1");
    CHECK(to.run({"XDEL", "k", id}) == ":1\r\n");
  }
}

TEST_CASE("a queue cannot be dumped") {
  Holder holder({"Q.ADD", "k", "id", "payload"});
  CHECK(holder.run({"DUMP", "k"}) == "-ERR RDB has no form for a value of type queue\r\n");
  CHECK(holder.run({"OBJECT", "ENCODING", "k"}) == "$5\r\nqueue\r\n");
}

TEST_CASE("a key's idle time goes from its last use, and RESTORE sets it") {
  Holder holder({"SET", "k", "1"});
  const std::string payload = bulk(holder.run({"DUMP", "k"}));
  const auto idle = [&](Bytes key) { return holder.run({"OBJECT", "IDLETIME", key}); };
  holder.execution.set_times(Times::agreeing(0, 5000));
  CHECK(idle("k") == ":5\r\n");
  holder.run({"TTL", "k"});
  holder.run({"EXISTS", "k"});
  holder.run({"TYPE", "k"});
  CHECK(idle("k") == ":5\r\n");
  holder.run({"GET", "k"});
  CHECK(idle("k") == ":0\r\n");
  CHECK(holder.run({"RESTORE", "r", "0", payload, "IDLETIME", "1000"}) == "+OK\r\n");
  CHECK(idle("r") == ":1000\r\n");
  holder.execution.set_times(Times::agreeing(0, 8000));
  CHECK(idle("r") == ":1003\r\n");
  holder.run({"TOUCH", "r"});
  CHECK(idle("r") == ":0\r\n");
  CHECK(idle("k") == ":3\r\n");
}

}  // namespace sluice::test

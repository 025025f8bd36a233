// KeyHistory: random commands on few keys of all types, and the keys as replies. Used by one
// thread. Include it before doctest.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine/execution/execution.h"
#include "tests/support/engine_session.h"

namespace sluice::test {

inline constexpr int64_t kNowMs = 1'700'000'000'000;
using Words = std::vector<std::string>;

inline std::string run(EngineSession& session, const Words& words) {
  return session.run(std::vector<Bytes>(words.begin(), words.end()));
}

// Every key of every database with its type, its expiry and its value, as replies.
inline std::map<std::string, std::string> all_keys(Engine& engine, const Words& names) {
  Execution execution(engine);
  execution.set_now_ms(kNowMs);
  EngineSession session(engine, execution);
  std::map<std::string, std::string> shown;
  for (int database = 0; database < kDatabases; ++database) {
    run(session, {"SELECT", std::to_string(database)});
    shown[std::to_string(database)] = run(session, {"DBSIZE"});
    for (const std::string& name : names) {
      std::string& text = shown[std::to_string(database) + " " + name];
      for (const Words& question : std::vector<Words>{{"TYPE", name},
                                                      {"PEXPIRETIME", name},
                                                      {"GET", name},
                                                      {"LRANGE", name, "0", "-1"},
                                                      {"ZRANGE", name, "0", "-1", "WITHSCORES"},
                                                      {"SCARD", name},
                                                      {"SMISMEMBER", name, "1", "2", "a", "b"},
                                                      {"HGETALL", name},
                                                      {"XRANGE", name, "-", "+"},
                                                      {"XINFO", "STREAM", name, "FULL"},
                                                      {"Q.LIST", name, "BY", "AGE", "COUNT", "999"},
                                                      {"Q.EVENTS", name, "-", "COUNT", "999"}}) {
        const std::string reply = run(session, question);
        if (reply[0] != '-') text += reply;
      }
    }
  }
  return shown;
}

// Random commands on the keys `names` in a few databases: all that changes whole keys, parts of
// strings, and some of each other type.
class KeyHistory {
 public:
  explicit KeyHistory(uint64_t seed) : random_(seed) {}

  std::string key() { return names[random_() % names.size()]; }
  std::string number(unsigned limit) { return std::to_string(random_() % limit); }
  std::string database() { return pick({"0", "1", std::to_string(kDatabases - 1)}); }
  std::string value() { return pick({"a", "b", "1", "2", "", "a longer text"}); }
  std::string pick(const Words& choices) { return choices[random_() % choices.size()]; }

  // A checkpoint's walk writes the longer one in parts.
  std::string long_text() {
    const size_t size = random_() % 2 == 0 ? 3000 : 150'000;
    return std::string(size, static_cast<char>('a' + random_() % 26));
  }

  Words next() {
    switch (random_() % 26) {
      case 0:
        return {"SET", key(), value(), "PX", std::to_string(1000 + random_() % 1000)};
      case 1:
        return {"RPUSH", key(), value(), value()};
      case 2:
        return {"SADD", key(), value(), value()};
      case 3:
        return {"ZADD", key(), number(5), value(), number(5), value()};
      case 4:
        return {"HSET", key(), value(), value()};
      case 5:
        return {"DEL", key()};
      case 6:
        return {"SELECT", database()};
      case 7:
        if (number(2) == "0") return {"SETRANGE", key(), number(200'000), value()};
        return {"SETBIT", key(), number(100), number(2)};
      case 8:
        return {"BITOP", pick({"AND", "OR", "XOR"}), key(), key(), key()};
      case 9:
        return {"BITFIELD", key(), "OVERFLOW", "FAIL", "INCRBY", "u" + number(9), number(200), "3"};
      case 10:
        return {"COPY", key(), key(), "DB", database(), "REPLACE"};
      case 11:
        return {"MOVE", key(), database()};
      case 12:
        return {"SWAPDB", database(), pick({"0", "1", "2", "3"})};
      case 13:
        return {"RENAME", key(), key()};
      case 14:
        return {"SORT", key(), "ALPHA", "BY", pick({"*", "nothing"}), "STORE", key()};
      case 15:
        return {"EVAL",
                "local p = redis.call('DUMP', KEYS[1]) if p then redis.call('RESTORE', KEYS[2], "
                "ARGV[1], p, 'REPLACE') end",
                "2",
                key(),
                key(),
                pick({"0", "5000"})};
      case 16:
        return {number(8) == "0" ? "FLUSHDB" : "DBSIZE"};
      case 17:
        return {"RENAME", key(), key()};
      case 18:
        return {"SET", key(), long_text(), "PX", "70000"};
      case 19:
        return many("SADD");
      case 20:
        return many("RPUSH");
      case 21:
        return {"XADD", key(), "*", "field", value()};
      case 22:
        return {"XGROUP", "CREATE", key(), "readers", "0"};
      case 23:
        return {"EVAL",
                "for i = 1, ARGV[1] do redis.call('Q.ADD', KEYS[1], 'j' .. i, 'payload') end", "1",
                key(), pick({"1", "5", "400"})};
      case 24:
        return {"Q.POP", "1", key(), "WORKER", "w"};
      default:
        return {"SET", key(), value()};
    }
  }

  // More than a step of a checkpoint's walk processes.
  Words many(const std::string& command) {
    Words words{command, key()};
    for (int i = 0; i < 600; ++i) words.push_back(std::to_string(i));
    return words;
  }

  const Words names = {"a", "b", "c", "d", "e", "{a}f"};

 private:
  std::mt19937_64 random_;
};

// The commands that KeyHistory lacks: what else is recorded in another way.
class WholeHistory : public KeyHistory {
 public:
  explicit WholeHistory(uint64_t seed) : KeyHistory(seed), random_(seed + 1) {}

  std::vector<Words> next_commands() {
    if (random_() % 2 == 0) return {next()};
    switch (random_() % 20) {
      case 0:
        return {{"XREADGROUP", "GROUP", "readers", pick({"x", "y"}), "STREAMS", key(), ">"}};
      case 1:
        return {{"XCLAIM", key(), "readers", "x", "0", number(9) + "-0"},
                {"XTRIM", key(), "MAXLEN", "3"}};
      case 2:
        return {{"XGROUP", "DELCONSUMER", key(), "readers", "x"}, {"XDEL", key(), "1-1"}};
      case 3:
        return {{"LPOP", key()}, {"LINSERT", key(), "BEFORE", "a", "b"}, {"LREM", key(), "1", "a"}};
      case 4:
        return {{"SREM", key(), value()}, {"HDEL", key(), value()}, {"ZREM", key(), value()}};
      case 5:
        return {{"ZINCRBY", key(), "-0", value()}, {"ZADD", key(), "-0", "z"}};
      case 6:
        return {{"PEXPIRE", key(), number(400)}, {"PERSIST", key()}};
      case 7:
        return {{"APPEND", key(), value()}, {"SETRANGE", key(), number(50), value()}};
      case 8:
        return {{"FUNCTION", "LOAD", "REPLACE", library()}};
      case 9:
        return {random_() % 2 == 0 ? Words{"FUNCTION", "DELETE", "lib"}
                                   : Words{"FUNCTION", "FLUSH"}};
      case 10:
        return {random_() % 6 == 0 ? Words{"FLUSHALL"} : Words{"PFADD", key(), value()}};
      case 11:
        return {{"MULTI"},
                {"SET", key(), value()},
                {"RENAME", key(), key()},
                {"SWAPDB", "0", database()},
                {"Q.ADD", key(), "*", "p"},
                {"EXEC"}};
      case 12:
        return {{"Q.ADD", key(), "j" + number(5), "p", "GROUP", value(), "KEY", "k" + number(2),
                 "IFDUP", pick({"UPDATE", "REPLACE"})}};
      case 13:
        return {{"Q.CONFIG", key(), "SET", "max_active", number(4), "fair", pick({"on", "off"})}};
      case 14:
        return {{"Q.CONFIG", key(), "GROUP", pick({"*", "a"}), "SET", "rate", number(3) + "/1000"}};
      case 15:
        return {{"Q.ACK", key(), "j" + number(5), number(9)}, {"Q.CANCEL", key(), "j" + number(5)}};
      case 16:
        return {{"Q.ADOPT", key(), "PENDING", key(), "ACTIVE", key()}};
      case 17:
        return {{"Q.ADOPT", key(), "OFF"}, {"Q.MOVE", key(), "a", "FRONT"}};
      case 18:
        return {{"Q.PURGE", key(), "WHERE", "STATE", "completed"},
                {"Q.RETRY", key(), "j" + number(5)}};
      default:
        return {
            {"Q.ADD", key(), "j" + number(9), "p", "NEED", "j" + number(5), "DELAY", number(50)}};
    }
  }

 private:
  std::string library() {
    return "#!lua name=lib\nredis.register_function('f" + number(3) + "', function() end)";
  }

  std::mt19937_64 random_;
};

}  // namespace sluice::test

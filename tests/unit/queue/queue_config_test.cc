// QueueConfig: every field's texts, all or nothing, levels and globs, bands, the journal's view.
#include "engine/queue/queue_config.h"

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/glob_literal.h"
#include "tests/support/test.h"

namespace {

using sluice::Bytes;
using sluice::ConfigField;
using sluice::ConfigLevel;
using sluice::GroupConfig;
using sluice::kBands;
using sluice::Paused;
using sluice::QueueConfig;

using Pairs = std::vector<std::pair<Bytes, Bytes>>;

std::string set(QueueConfig& config, const Pairs& fields) {
  return config.set(ConfigLevel::kQueue, {}, fields).bad;
}
std::string set_group(QueueConfig& config, Bytes glob, const Pairs& fields) {
  return config.set(ConfigLevel::kGroup, glob, fields).bad;
}

std::map<std::string, std::string> all(const QueueConfig& config,
                                       ConfigLevel level = ConfigLevel::kQueue,
                                       Bytes pattern = {}) {
  std::string bad;
  std::map<std::string, std::string> found;
  for (auto& [name, text] : config.get(level, pattern, {}, bad)) found[name] = text;
  CHECK(bad.empty());
  return found;
}

std::string get(const QueueConfig& config, Bytes name, ConfigLevel level = ConfigLevel::kQueue,
                Bytes pattern = {}) {
  std::string bad;
  const Bytes names[] = {name};
  const std::vector<ConfigField> found = config.get(level, pattern, names, bad);
  if (!bad.empty()) return "bad " + bad;
  return found.empty() ? "unset" : found[0].second;
}

TEST_CASE("defaults are those of the contract") {
  const QueueConfig config;
  const std::map<std::string, std::string> expected = {
      {"max_active", "0"},
      {"max_waiting", "0"},
      {"max_total", "0"},
      {"full", "reject"},
      {"ttl_ms", "0"},
      {"order", "fifo"},
      {"weight", "1"},
      {"fair", "off"},
      {"aging_ms", "0"},
      {"reserve", "none"},
      {"adaptive", "off"},
      {"rate", "none"},
      {"bands", "CRITICAL,HIGH,NORMAL,LOW,BACKGROUND"},
      {"priority_order", "asc"},
      {"default_pri", "2"},
      {"lease_ms", "30000"},
      {"max_run_ms", "0"},
      {"disconnect_grace_ms", "5000"},
      {"retry", "0"},
      {"crash_limit", "3"},
      {"backoff", "1000:300000"},
      {"paused", "none"},
      {"retain_completed", "1000:3600000"},
      {"retain_failed", "10000:604800000:67108864"},
      {"events", "100000:86400000"},
      {"max_payload", "1048576"},
      {"log_bytes", "16384"},
      {"fencing", "on"},
      {"worker_ttl_ms", "60000"}};
  CHECK(all(config) == expected);
  CHECK(config.values().default_band == 2);
  CHECK(config.values().bands.size() == 5);
  CHECK(config.values().retain_completed.age_ms == 3'600'000);
  CHECK(config.values().order.lifo_from == kBands);
  CHECK(config.values().fencing);
  CHECK(config.rules().empty());
}

TEST_CASE("good values, as they are replied") {
  const std::vector<std::array<Bytes, 3>> cases = {
      {"max_active", "12", "12"},
      {"max_active", "0", "0"},
      {"full", "DISPLACE", "displace"},
      {"order", "LIFO", "lifo"},
      {"order", "lifo:1", "lifo:1"},
      {"order", "lifo:low", "lifo:LOW"},
      {"weight", "2.50", "2.5"},
      {"weight", "1e3", "1000"},
      {"weight", "1e6", "1000000"},
      {"fair", "ON", "on"},
      {"reserve", "high:2", "HIGH:2"},
      {"reserve", "0:2", "0:2"},
      {"reserve", "NONE", "none"},
      {"adaptive", "20:100:500:5000", "20:100:500:5000"},
      {"adaptive", "20:100:500:5000:5", "20:100:500:5000"},
      {"adaptive", "20:100:500:5000:1", "20:100:500:5000:1"},
      {"adaptive", "Off", "off"},
      {"rate", "10/1000", "10/1000"},
      {"rate", "10/1000:10", "10/1000"},
      {"rate", "10/1000:25", "10/1000:25"},
      {"rate", "none", "none"},
      {"rate", "0", "none"},
      {"lease_ms", "100", "100"},
      {"lease_ms", "604800000", "604800000"},
      {"backoff", "0:0", "0:0"},
      {"backoff", "50:60", "50:60"},
      {"paused", "IN", "in"},
      {"paused", "all", "all"},
      {"retain_completed", "5", "5"},
      {"retain_completed", "5:0", "5"},
      {"retain_failed", "5", "5"},
      {"retain_failed", "5:1000", "5:1000"},
      {"retain_failed", "5:1000:0", "5:1000"},
      {"retain_failed", "5:0:4096", "5:0:4096"},
      {"events", "0", "0"},
      {"events", "50:60", "50:60"},
      {"default_pri", "high", "HIGH"},
      {"default_pri", "200", "200"},
      {"bands", "urgent,normal", "urgent,normal"},
      {"bands", "a=0,b=1", "a,b"},
      {"bands", "a,b=10,c,d=255", "a,b=10,c,d=255"},
      {"bands", "b=7,a=3", "b=7,a=3"},
      {"max_payload", "536870912", "536870912"},
      {"fencing", "off", "off"},
      {"retry", "10000", "10000"}};
  for (const auto& [name, text, canonical] : cases) {
    INFO(std::string(name), " ", std::string(text));
    QueueConfig config;
    CHECK(set(config, {{name, text}}) == "");
    CHECK(get(config, name) == canonical);
    // The canonical text yields itself when read.
    QueueConfig again;
    CHECK(set(again, {{name, canonical}}) == "");
    CHECK(all(again) == all(config));
  }
}

const std::vector<std::pair<Bytes, Bytes>> kBadValues = {{"max_active", "-1"},
                                                         {"max_active", ""},
                                                         {"max_active", "1.5"},
                                                         {"max_active", "99999999999999999999"},
                                                         {"max_waiting", "9999999999999999"},
                                                         {"full", "maybe"},
                                                         {"ttl_ms", "99999999999999"},
                                                         {"order", "fifo:1"},
                                                         {"order", "lifo:"},
                                                         {"order", "lifo:nobody"},
                                                         {"order", "lifo:256"},
                                                         {"order", "stack"},
                                                         {"weight", "0"},
                                                         {"weight", "-1"},
                                                         {"weight", "inf"},
                                                         {"weight", "nan"},
                                                         {"weight", "1e-300"},
                                                         {"fair", "yes"},
                                                         {"reserve", "high"},
                                                         {"reserve", "high:0"},
                                                         {"reserve", "nobody:1"},
                                                         {"adaptive", "20:10:1:2"},
                                                         {"adaptive", "0:10:1:2"},
                                                         {"adaptive", "1:10:3:2"},
                                                         {"adaptive", "1:10:1"},
                                                         {"adaptive", "1:10:1:2:0"},
                                                         {"adaptive", "1:10:1:2:3:4"},
                                                         {"rate", "10"},
                                                         {"rate", "0/10"},
                                                         {"rate", "10/0"},
                                                         {"rate", "10/1000:0"},
                                                         {"rate", "1001/1"},
                                                         {"rate", "1/604800000:1000000000"},
                                                         {"lease_ms", "99"},
                                                         {"lease_ms", "604800001"},
                                                         {"backoff", "10"},
                                                         {"backoff", "10:5"},
                                                         {"paused", "yes"},
                                                         {"retain_completed", ""},
                                                         {"retain_completed", "1:2:3:4"},
                                                         {"retain_completed", ":5"},
                                                         {"events", "1:2:3"},
                                                         {"default_pri", "nobody"},
                                                         {"default_pri", "256"},
                                                         {"bands", ""},
                                                         {"bands", "a,a"},
                                                         {"bands", "a,A"},
                                                         {"bands", "a,"},
                                                         {"bands", ",a"},
                                                         {"bands", "a,,b"},
                                                         {"bands", "a=1,b=1"},
                                                         {"bands", "a=255,b"},
                                                         {"bands", "a=256"},
                                                         {"bands", "a="},
                                                         {"bands", "1a"},
                                                         {"bands", "7"},
                                                         {"bands", "a b"},
                                                         {"bands", "a:b"},
                                                         {"priority_order", "up"},
                                                         {"retry", "10001"},
                                                         {"max_payload", "536870913"},
                                                         {"fencing", "1"},
                                                         {"nothing", "1"}};

TEST_CASE("bad values are refused, and nothing changes") {
  QueueConfig config;
  CHECK(set(config, {{"max_total", "77"}}) == "");
  const auto before = all(config);
  for (const auto& [name, text] : kBadValues) {
    INFO(std::string(name), " ", std::string(text));
    CHECK(set(config, {{"max_active", "5"}, {"max_waiting", "6"}}) == "");
    CHECK(set(config, {{"max_total", "78"}, {name, text}}) == name);
    CHECK(get(config, "max_total") == "77");
    CHECK(get(config, "max_active") == "5");
    config.reset(ConfigLevel::kQueue, {});
    CHECK(set(config, {{"max_total", "77"}}) == "");
    CHECK(all(config) == before);
  }
  CHECK(set(config, {{"max_active", "1"}, {"MAX_ACTIVE", "2"}}) == "MAX_ACTIVE");
  CHECK(all(config) == before);
  CHECK(set(config, {{"max_total", "78"}, {"", ""}}) == "\"\"");
  CHECK(get(config, "max_total") == "77");
}

TEST_CASE("names of fields are read without regard to case") {
  QueueConfig config;
  CHECK(set(config, {{"Max_Active", "3"}}) == "");
  CHECK(get(config, "MAX_ACTIVE") == "3");
  CHECK(config.values().limits.max_active == 3);
}

TEST_CASE("a change is checked as a whole") {
  QueueConfig config;
  // The order does not matter: the new bands apply to the other fields.
  CHECK(set(config, {{"default_pri", "slow"}, {"bands", "fast,slow"}, {"reserve", "fast:1"}}) ==
        "");
  CHECK(config.values().default_band == 1);
  CHECK(config.values().reserve.band == 0);
  // Removing a name that is in use is reported for `bands`.
  CHECK(set(config, {{"max_active", "3"}, {"bands", "fast"}}) == "bands");
  CHECK(get(config, "bands") == "fast,slow");
  CHECK(get(config, "max_active") == "0");
  CHECK(set(config, {{"bands", "fast"}, {"default_pri", "fast"}}) == "");
  CHECK(get(config, "default_pri") == "fast");
  // Likewise for a group's rule.
  CHECK(set_group(config, "g", {{"order", "lifo:fast"}}) == "");
  CHECK(set(config, {{"bands", "quick"}, {"default_pri", "0"}, {"reserve", "none"}}) == "bands");
  CHECK(set(config, {{"max_active", "4"}}) == "");
}

TEST_CASE("with desc, larger numbers are more urgent") {
  QueueConfig config;
  CHECK(set(config, {{"priority_order", "desc"}}) == "");
  CHECK(get(config, "default_pri") == "0");
  CHECK(config.values().default_band == 255);
  CHECK(get(config, "bands") == "CRITICAL,HIGH,NORMAL,LOW,BACKGROUND");
  CHECK(config.parse_band("critical") == 255 - 4);
  CHECK(config.parse_band("7") == 248);
  CHECK(config.band_number(248) == 7);
  CHECK(config.band_name(248) == "7");
  CHECK(config.band_name(255) == "BACKGROUND");
  CHECK(config.values().bands.front().first == "CRITICAL");
  CHECK(set(config, {{"bands", "top=10,high,low"}}) == "");
  CHECK(get(config, "bands") == "top=10,high,low");
  CHECK(config.parse_band("high") == 255 - 1);
  CHECK(set(config, {{"order", "lifo:high"}}) == "");
  CHECK(config.values().order.is_lifo(255 - 1));
  CHECK(config.values().order.is_lifo(255));
  CHECK_FALSE(config.values().order.is_lifo(255 - 10));
  // An explicitly set default stays.
  CHECK(set(config, {{"default_pri", "2"}}) == "");
  CHECK(config.values().default_band == 253);
  CHECK(set(config, {{"priority_order", "asc"}}) == "");
  CHECK(config.values().default_band == 2);
}

TEST_CASE("bands by name and number") {
  QueueConfig config;
  CHECK(set(config, {{"bands", "b=7,a=3"}}) == "");
  CHECK(config.parse_band("B") == 7);
  CHECK(config.parse_band("255") == 255);
  CHECK_FALSE(config.parse_band("256"));
  CHECK_FALSE(config.parse_band("CRITICAL"));
  CHECK_FALSE(config.parse_band(""));
  CHECK(config.band_name(3) == "a");
  CHECK(config.band_name(4) == "4");
  CHECK(config.values().bands.front().first == "a");
}

TEST_CASE("fields stand only where they may") {
  QueueConfig config;
  CHECK(set_group(config, "g", {{"lease_ms", "1000"}}) == "lease_ms");
  CHECK(config.set(ConfigLevel::kKey, "k", Pairs{{"max_waiting", "1"}}).bad == "max_waiting");
  CHECK(config.set(ConfigLevel::kKey, "k", Pairs{{"paused", "all"}}).bad == "paused");
  CHECK(config.set(ConfigLevel::kKey, "k", Pairs{{"max_active", "1"}, {"rate", "1/5"}}).bad == "");
  CHECK(set_group(config, "g", {{"paused", "out"}, {"max_total", "9"}, {"weight", "2"}}) == "");
  CHECK(all(config, ConfigLevel::kKey, "k") ==
        std::map<std::string, std::string>{{"max_active", "1"}, {"rate", "1/5"}});
  CHECK(get(config, "rate", ConfigLevel::kGroup, "g") == "unset");
  CHECK(get(config, "fair", ConfigLevel::kGroup, "g") == "bad fair");
  CHECK(get(config, "weight", ConfigLevel::kGroup, "nobody") == "unset");
  CHECK(get(config, "nothing") == "bad nothing");
}

TEST_CASE("values come from the nearest level, limits do not") {
  QueueConfig config;
  CHECK(set(config, {{"ttl_ms", "500"}, {"order", "lifo"}, {"weight", "3"}, {"max_active", "5"}}) ==
        "");
  GroupConfig group = config.group("g");
  CHECK(group.ttl_ms == 500);
  CHECK(group.order.is_lifo(0));
  CHECK(group.weight == 3);
  CHECK(group.limits.max_active == 0);
  CHECK(set_group(config, "*", {{"ttl_ms", "0"}, {"order", "fifo"}, {"max_active", "1"}}) == "");
  group = config.group("g");
  CHECK(group.ttl_ms == 0);
  CHECK_FALSE(group.order.is_lifo(200));
  CHECK(group.weight == 3);
  CHECK(group.limits.max_active == 1);
  // The empty group belongs to nobody and has no limits.
  CHECK(config.group("").limits.max_active == 0);
  CHECK(config.group("").ttl_ms == 500);
  CHECK(config.key("g").max_active == 0);
}

TEST_CASE("the exact name wins, then the most literal glob, then the later one") {
  QueueConfig config;
  CHECK(set_group(config, "team.*", {{"max_active", "1"}, {"max_waiting", "10"}}) == "");
  CHECK(set_group(config, "*", {{"max_active", "2"}, {"max_total", "20"}}) == "");
  CHECK(set_group(config, "team.7", {{"max_active", "3"}}) == "");
  CHECK(set_group(config, "t*7", {{"max_active", "4"}, {"paused", "out"}}) == "");
  const GroupConfig seven = config.group("team.7");
  CHECK(seven.limits.max_active == 3);
  CHECK(seven.limits.max_waiting == 10);
  CHECK(seven.limits.max_total == 20);
  CHECK(seven.limits.paused == Paused::kOut);
  CHECK(config.group("team.8").limits.max_active == 1);
  CHECK(config.group("x").limits.max_active == 2);
  // With the same number of literal bytes the later one applies.
  CHECK(set_group(config, "a*c", {{"max_active", "6"}}) == "");
  CHECK(set_group(config, "a?c", {{"max_active", "7"}}) == "");
  CHECK(config.group("abc").limits.max_active == 7);
  CHECK(set_group(config, "a*c", {{"max_waiting", "1"}}) == "");
  CHECK(config.group("abc").limits.max_active == 6);
  // A character class counts as no literal byte, an escaped byte as one.
  CHECK(set_group(config, "b[abc]d", {{"max_active", "8"}}) == "");
  CHECK(set_group(config, "\\b\\a*", {{"max_active", "9"}}) == "");
  CHECK(config.group("bad").limits.max_active == 9);
  CHECK(set_group(config, "b*d", {{"max_active", "10"}}) == "");
  CHECK(config.group("bbd").limits.max_active == 10);
  // A name may look like a glob.
  CHECK(set_group(config, "x*", {{"max_active", "11"}}) == "");
  CHECK(set_group(config, "x[*]y", {{"max_active", "12"}}) == "");
  CHECK(config.group("x*").limits.max_active == 11);
  CHECK(config.group("x*y").limits.max_active == 12);
  CHECK(config.reset(ConfigLevel::kGroup, "team.7").bad == "");
  CHECK(config.group("team.7").limits.max_active == 1);
  CHECK(config.reset(ConfigLevel::kGroup, "never set").bad == "");
}

TEST_CASE("an escaped name is a glob of this text alone") {
  constexpr Bytes kAlphabet = "*?[]\\^-a";
  std::vector<std::string> texts = {""};
  for (size_t begin = 0, length = 1; length <= 3; ++length) {
    const size_t end = texts.size();
    for (size_t i = begin; i < end; ++i) {
      for (const char c : kAlphabet) texts.push_back(texts[i] + c);
    }
    begin = end;
  }
  size_t matches = 0;
  for (const std::string& text : texts) {
    const std::string glob = sluice::glob_escape(text);
    CHECK(sluice::glob_literal(glob) == text);
    for (const std::string& other : texts) matches += sluice::glob_match(glob, other) ? 1 : 0;
    CHECK(sluice::glob_match(glob, text));
  }
  CHECK(matches == texts.size());
  for (const char* glob : {"*", "a?", "[", "\\", "a\\", "\\a", "\\]", "\\-", "\\\\*"}) {
    CHECK_FALSE(sluice::glob_literal(glob).has_value());
  }
}

TEST_CASE("an escaped name is an exact name") {
  QueueConfig config;
  CHECK(set_group(config, "a\\*", {{"max_active", "1"}}) == "");
  CHECK(set_group(config, "a*", {{"max_active", "2"}, {"max_waiting", "3"}}) == "");
  CHECK(set_group(config, "[a]\\*", {{"max_active", "4"}}) == "");
  // It takes precedence over globs with as many literal bytes that were changed later.
  CHECK(config.group("a*").limits.max_active == 1);
  CHECK(config.group("a*").limits.max_waiting == 3);
  CHECK(config.group("ab").limits.max_active == 2);
  CHECK(get(config, "max_active", ConfigLevel::kGroup, "a\\*") == "1");
  CHECK(get(config, "max_active", ConfigLevel::kGroup, "a*") == "2");
  // A glob does not name the group that is spelled like it.
  CHECK(set_group(config, "b**", {{"max_active", "5"}}) == "");
  CHECK(set_group(config, "b\\*?", {{"max_active", "6"}}) == "");
  CHECK(config.group("b**").limits.max_active == 6);
  QueueConfig copy;
  for (const auto& [level, pattern] : config.rules()) {
    copy.apply(level, pattern, config.recorded(level, pattern));
  }
  for (const char* name : {"a*", "ab", "b**", "bc"}) {
    CHECK(copy.group(name).limits.max_active == config.group(name).limits.max_active);
  }
  CHECK(config.reset(ConfigLevel::kGroup, "a\\*").bad == "");
  CHECK(config.group("a*").limits.max_active == 4);
  CHECK(get(config, "max_active", ConfigLevel::kGroup, "a*") == "2");
}

TEST_CASE("RESET of the queue leaves the rules") {
  QueueConfig config;
  CHECK(set(config, {{"max_active", "5"}, {"bands", "a,low"}, {"default_pri", "a"}}) == "");
  CHECK(set_group(config, "g", {{"max_active", "2"}, {"order", "lifo:low"}}) == "");
  CHECK(config.group("g").order.is_lifo(1));
  CHECK(config.reset(ConfigLevel::kQueue, {}).bad == "");
  CHECK(all(config) == all(QueueConfig()));
  CHECK(config.group("g").limits.max_active == 2);
  // The name is also one of the defaults.
  CHECK_FALSE(config.group("g").order.is_lifo(1));
  CHECK(config.group("g").order.is_lifo(3));
}

TEST_CASE("RESET of the queue is refused where a rule names a band that would go") {
  QueueConfig config;
  CHECK(set(config, {{"max_active", "5"}, {"bands", "a,b"}, {"default_pri", "a"}}) == "");
  CHECK(set_group(config, "g", {{"order", "lifo:b"}}) == "");
  const auto before = all(config);
  CHECK(config.reset(ConfigLevel::kQueue, {}).bad == "bands");
  CHECK(all(config) == before);
  CHECK(config.group("g").order.is_lifo(1));
  CHECK(config.reset(ConfigLevel::kGroup, "g").bad == "");
  CHECK(config.reset(ConfigLevel::kQueue, {}).bad == "");
  CHECK(all(config) == all(QueueConfig()));
}

TEST_CASE("a rule whose band went before that was refused is as if it did not set the order") {
  QueueConfig config;
  CHECK(set(config, {{"bands", "a,b"}}) == "");
  CHECK(set_group(config, "g", {{"max_active", "2"}, {"order", "lifo:b"}}) == "");
  config.apply(ConfigLevel::kQueue, {}, {});
  CHECK(config.group("g").limits.max_active == 2);
  CHECK_FALSE(config.group("g").order.is_lifo(255));
  CHECK(set(config, {{"max_active", "6"}}) == "");
  CHECK(config.reset(ConfigLevel::kQueue, {}).bad == "");
}

TEST_CASE("what is recorded makes the same configuration") {
  QueueConfig config;
  CHECK(set(config, {{"max_active", "5"}, {"bands", "x,y"}, {"default_pri", "Y"}}) == "");
  CHECK(set_group(config, "a*", {{"max_active", "1"}}) == "");
  CHECK(set_group(config, "*a", {{"max_active", "2"}}) == "");
  CHECK(set_group(config, "aa", {{"order", "lifo:y"}}) == "");
  CHECK(set_group(config, "a*", {{"max_active", "3"}}) == "");
  // The glob that was changed last wins among equals, whatever their order by name.
  for (const auto& [glob, most] : Pairs{{"*b", "7"}, {"b*", "8"}, {"*b", "9"}}) {
    CHECK(set_group(config, glob, {{"max_active", most}}) == "");
  }
  CHECK(config.set(ConfigLevel::kKey, "k", Pairs{{"rate", "5/10"}}).bad == "");
  QueueConfig copy;
  for (const auto& [level, pattern] : config.rules()) {
    copy.apply(level, pattern, config.recorded(level, pattern));
  }
  CHECK(all(copy) == all(config));
  CHECK(copy.rules() == config.rules());
  CHECK(copy.group("aa").limits.max_active == 3);
  CHECK(copy.group("bb").limits.max_active == 9);
  CHECK(copy.group("aa").order.is_lifo(1));
  CHECK(copy.key("k").rate == config.key("k").rate);
  CHECK(copy.memory_bytes() == config.memory_bytes());
  // The memory counted for rules is that of the existing rules, however they were created.
  const size_t before = config.memory_bytes();
  CHECK(set_group(config, "more", {{"max_active", "3"}}) == "");
  CHECK(set_group(config, "more", {{"max_active", "3"}, {"rate", "5/10"}}) == "");
  CHECK(config.memory_bytes() > before + 32);
  config.reset(ConfigLevel::kGroup, "more");
  CHECK(config.memory_bytes() == before);
  // Applying a rule twice changes nothing; without fields the rule is removed.
  copy.apply(ConfigLevel::kGroup, "*a", config.recorded(ConfigLevel::kGroup, "*a"));
  CHECK(copy.group("aa").limits.max_active == 2);
  copy.apply(ConfigLevel::kGroup, "*a", {});
  copy.apply(ConfigLevel::kQueue, {}, {});
  CHECK(copy.group("aa").limits.max_active == 3);
  CHECK(get(copy, "max_active") == "0");
  // A field of a later version is ignored.
  copy.apply(ConfigLevel::kGroup, "z", std::vector<ConfigField>{{"colour", "red"}});
  CHECK(copy.group("z").limits.max_active == 0);
}

TEST_CASE("records on top of a checkpoint that has them already end in the same order of rules") {
  const auto rule = [](QueueConfig& config, Bytes glob, const char* value) {
    config.apply(ConfigLevel::kGroup, glob, std::vector<ConfigField>{{"max_active", value}});
  };
  const auto replay = [&](QueueConfig& config) {
    rule(config, "a*", "2");
    rule(config, "a*", "3");
    rule(config, "*a", "4");
  };
  QueueConfig config;
  replay(config);
  CHECK(config.group("aa").limits.max_active == 4);
  replay(config);
  CHECK(config.group("aa").limits.max_active == 4);
  // Setting a field to its present value keeps its place in the order.
  CHECK(set_group(config, "a*", {{"max_active", "3"}}) == "");
  CHECK(config.group("aa").limits.max_active == 4);
}

}  // namespace

// Selectors of the native queue: results compared with a naive filter over random queues, orders,
// cursors while the queue changes, and changes by selector.
#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/base/glob_literal.h"
#include "engine/queue/job_texts.h"
#include "tests/support/random_queue.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

namespace {

using namespace sluice::test;

const Words kStates = {"blocked",   "delayed", "pending",   "active",
                       "completed", "failed",  "cancelled", "expired"};

// A selector, and the equivalent naive filter over the maps of Q.GET.
struct NaiveSelector {
  std::set<std::string> states;
  std::optional<std::string> group;  // exact, or with one `*` at the end
  std::optional<std::string> band;
  std::optional<std::string> tag_value;  // of the tag "t"
  std::optional<std::string> key;
  std::optional<std::string> worker;
  std::optional<int64_t> older_ms;
  std::optional<int64_t> since_ms;
  std::optional<int64_t> until_ms;
  std::optional<std::string> id_part;
  std::optional<std::string> error;
  std::optional<std::string> pattern;
  std::optional<std::string> payload;

  Words words() const {
    Words out;
    for (const std::string& state : states) out = out + Words{"STATE", state};
    if (group) out = out + Words{"GROUP", *group};
    if (band) out = out + Words{"PRI", *band};
    if (tag_value) out = out + Words{"TAG", "t", *tag_value};
    if (key) out = out + Words{"KEY", *key};
    if (worker) out = out + Words{"WORKER", *worker};
    if (older_ms) out = out + Words{"OLDER", std::to_string(*older_ms)};
    if (since_ms) out = out + Words{"SINCE", std::to_string(*since_ms)};
    if (until_ms) out = out + Words{"UNTIL", std::to_string(*until_ms)};
    if (id_part) out = out + Words{"IDPART", *id_part};
    if (error) out = out + Words{"ERROR", *error};
    if (pattern) out = out + Words{"PATTERN", *pattern};
    if (payload) out = out + Words{"PAYLOAD", *payload};
    return out.empty() ? Words{"ALL"} : out;
  }

  bool matches(const RespValue& job, int64_t now_ms) const {
    if (!states.empty() && states.count(job.field("state")) == 0) return false;
    if (group) {
      const std::string name = job.field("group");
      const bool glob = !group->empty() && group->back() == '*';
      const std::string start = group->substr(0, group->size() - (glob ? 1 : 0));
      // Jobs without a group match no glob.
      if (glob && name.empty()) return false;
      if (glob ? name.rfind(start, 0) != 0 : name != start) return false;
    }
    if (band && job.field("pri") != *band) return false;
    if (tag_value && job.find("tags")->field("t") != *tag_value) return false;
    if (key) {
      const auto& keys = job.find("keys")->items;
      if (std::none_of(keys.begin(), keys.end(),
                       [&](const RespValue& held) { return held.text == *key; })) {
        return false;
      }
    }
    if (worker && job.field("worker") != *worker) return false;
    const char* since = !job.find("finished")->is_null()  ? "finished"
                        : !job.find("started")->is_null() ? "started"
                                                          : "enqueued";
    const int64_t time_ms = job.number(since);
    if (older_ms && now_ms - time_ms < *older_ms) return false;
    if (since_ms && time_ms < *since_ms) return false;
    if (until_ms && time_ms >= *until_ms) return false;
    return matches_texts(job);
  }

  // The parts are given in capital letters.
  bool matches_texts(const RespValue& job) const {
    const auto has = [](std::string text, const std::string& part) {
      for (char& c : text) c = static_cast<char>(std::toupper(c));
      return text.find(part) != std::string::npos;
    };
    const std::string told = job.find("error")->is_null() ? "" : job.field("error");
    if (id_part && !has(job.field("id"), *id_part)) return false;
    if (error && !has(told, *error)) return false;
    // As RandomQueue makes them.
    if (payload && !has("payload of " + job.field("id"), *payload)) return false;
    return !pattern || sluice::error_pattern(told) == *pattern;
  }
};

Words found_by(RandomQueue& queue, const NaiveSelector& selector) {
  Words found;
  for (const RespValue& job : queue.all()) {
    if (selector.matches(job, queue.server.now_ms())) found.push_back(job.field("id"));
  }
  std::sort(found.begin(), found.end());
  return found;
}

NaiveSelector random_selector(RandomQueue& queue) {
  NaiveSelector selector;
  for (uint64_t n = queue.random(4); n > 1; --n) selector.states.insert(queue.one_of(kStates));
  if (queue.random(3) == 0)
    selector.group = queue.one_of<std::string>({"", "g1", "g2", "g*", "*", "none"});
  if (queue.random(4) == 0) {
    selector.band = queue.one_of<std::string>({"CRITICAL", "HIGH", "NORMAL", "LOW", "BACKGROUND"});
  }
  if (queue.random(5) == 0) selector.tag_value = queue.one_of<std::string>({"x", "y"});
  if (queue.random(5) == 0) selector.key = queue.one_of<std::string>({"k1", "k2"});
  if (queue.random(6) == 0) selector.worker = queue.one_of<std::string>({"w1", "w2", "nobody"});
  if (queue.random(4) == 0) selector.older_ms = static_cast<int64_t>(queue.random(6000));
  const auto lately = [&] {
    return queue.server.now_ms() - static_cast<int64_t>(queue.random(6000));
  };
  if (queue.random(5) == 0) selector.since_ms = lately();
  if (queue.random(5) == 0) selector.until_ms = lately();
  if (queue.random(6) == 0) selector.id_part = queue.one_of<std::string>({"1", "J2", "X"});
  if (queue.random(6) == 0) selector.error = queue.one_of<std::string>({"NO ROOM", "LEASE", "?"});
  if (queue.random(6) == 0) {
    selector.pattern = queue.one_of<std::string>({"no room for j#", "no room", ""});
  }
  if (queue.random(6) == 0) selector.payload = queue.one_of<std::string>({"OF J1", "3", "Z"});
  return selector;
}

// All pages of a Q.LIST in sequence; `between` runs after each page.
template <class Between>
std::vector<RespValue> list_all(QueueClient& server, const Words& words, int count,
                                Between between) {
  std::vector<RespValue> jobs;
  std::string cursor = "0";
  do {
    const RespValue page = server.run(Words{"Q.LIST", "q"} + words +
                                      Words{"CURSOR", cursor, "COUNT", std::to_string(count)});
    INFO(page.show());
    REQUIRE(page.items.size() == 2);
    REQUIRE(page.items[1].items.size() <= static_cast<size_t>(count));
    cursor = page.items[0].text;
    jobs.insert(jobs.end(), page.items[1].items.begin(), page.items[1].items.end());
    between();
  } while (cursor != "0");
  return jobs;
}

std::vector<RespValue> list_all(QueueClient& server, const Words& words, int count = 7) {
  return list_all(server, words, count, [] {});
}

Words ids_of(const std::vector<RespValue>& jobs) {
  Words ids;
  for (const RespValue& job : jobs) ids.push_back(job.field("id"));
  return ids;
}

Words sorted(Words words) {
  std::sort(words.begin(), words.end());
  return words;
}

std::string shown(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += word + ' ';
  return text;
}

TEST_CASE("Q.LIST finds what a naive filter finds") {
  for (const uint64_t seed : sluice::testing::seeds(12, 7919)) {
    sluice::testing::use_seed(seed);
    RandomQueue queue(seed, {.lifo = seed % 2 == 0, .needs = true});
    for (int round = 0; round < 6; ++round) {
      for (int i = 0; i < 60; ++i) queue.step();
      for (int i = 0; i < 12; ++i) {
        const NaiveSelector selector = random_selector(queue);
        INFO("seed " << seed << ": " << shown(selector.words()));
        const Words found = ids_of(list_all(queue.server, Words{"WHERE"} + selector.words()));
        CHECK(sorted(found) == found_by(queue, selector));
      }
      const Words found = ids_of(list_all(queue.server, {}));
      CHECK(sorted(found) == found_by(queue, {}));
    }
  }
}

TEST_CASE("what Q.LIST shows is what Q.GET shows") {
  RandomQueue queue(5, {.needs = true});
  for (int i = 0; i < 200; ++i) queue.step();
  const std::vector<RespValue> jobs = list_all(queue.server, {"WITH", "payload", "WITH", "result"});
  CHECK(jobs.size() > 50);
  for (const RespValue& job : jobs) {
    const RespValue got =
        queue.server.run({"Q.GET", "q", job.field("id"), "WITH", "PAYLOAD", "WITH", "RESULT"});
    CHECK(job.show() == got.show());
    CHECK(got.field("payload") == "payload of " + job.field("id"));
  }
}

TEST_CASE("BRIEF leaves out all but a few fields") {
  RandomQueue queue(5, {.needs = true});
  for (int i = 0; i < 200; ++i) queue.step();
  const std::vector<RespValue> whole = list_all(queue.server, {});
  const std::vector<RespValue> brief = list_all(queue.server, {"BRIEF", "WITH", "payload"});
  REQUIRE(brief.size() == whole.size());
  for (size_t i = 0; i < brief.size(); ++i) {
    for (const char* field : {"id", "state", "enqueued"}) {
      CHECK(brief[i].field(field) == whole[i].field(field));
    }
    CHECK(brief[i].field("payload") == "payload of " + brief[i].field("id"));
    CHECK(brief[i].items.size() == 8);
  }
}

// BY AGE DESC returns each part of BY AGE in reverse.
void check_newest_first(RandomQueue& queue, const Words& where,
                        const std::vector<RespValue>& by_age) {
  const auto newest_first = list_all(queue.server, where + Words{"BY", "AGE", "DESC"});
  for (const Words& states : {Words{"active"}, Words{"pending"}, Words{"delayed"},
                              Words{"completed", "failed", "cancelled", "expired"}, Words{"failed"},
                              Words{"cancelled", "completed"}}) {
    const auto of_states = [&](const std::vector<RespValue>& jobs) {
      Words ids;
      for (const RespValue& job : jobs) {
        const bool is_one = std::count(states.begin(), states.end(), job.field("state")) != 0;
        if (is_one) ids.push_back(job.field("id"));
      }
      return ids;
    };
    Words forward = of_states(by_age);
    std::reverse(forward.begin(), forward.end());
    CHECK(of_states(newest_first) == forward);
    Words named = where.empty() ? Words{"WHERE"} : where;
    for (const std::string& state : states) named = named + Words{"STATE", state};
    CHECK(ids_of(list_all(queue.server, named + Words{"BY", "AGE", "DESC"}, 3)) == forward);
  }
}

TEST_CASE("orders") {
  for (const uint64_t seed : sluice::testing::seeds(8, 104729)) {
    sluice::testing::use_seed(seed);
    const bool lifo = seed % 2 == 0;
    RandomQueue queue(seed, {.lifo = lifo});
    for (int i = 0; i < 250; ++i) queue.step();
    NaiveSelector selector;
    if (seed % 3 == 0) selector.group = "g1";
    const Words where = selector.group ? Words{"WHERE"} + selector.words() : Words{};
    INFO("seed " << seed);

    selector.states = {"pending"};
    const auto by_rank = list_all(queue.server, where + Words{"BY", "RANK"});
    CHECK(sorted(ids_of(by_rank)) == found_by(queue, selector));
    for (size_t i = 1; i < by_rank.size(); ++i) {
      CHECK(by_rank[i - 1].number("position") < by_rank[i].number("position"));
    }

    const auto in_order = [](const std::vector<RespValue>& jobs, const char* state,
                             const char* field) {
      int64_t last = INT64_MIN;
      bool ordered = true;
      for (const RespValue& job : jobs) {
        if (job.field("state") != state) continue;
        ordered = ordered && job.number(field) >= last;
        last = job.number(field);
      }
      return ordered;
    };
    selector.states = {"pending", "active",    "delayed", "completed",
                       "failed",  "cancelled", "expired"};
    const auto by_age = list_all(queue.server, where + Words{"BY", "AGE"});
    CHECK(sorted(ids_of(by_age)) == found_by(queue, selector));
    CHECK(in_order(by_age, "active", "started"));
    CHECK(in_order(by_age, "delayed", "not_before"));
    for (const char* state : {"completed", "failed", "cancelled", "expired"}) {
      CHECK(in_order(by_age, state, "finished"));
    }

    check_newest_first(queue, where, by_age);
    const auto by_deadline = list_all(queue.server, where + Words{"BY", "DEADLINE"});
    CHECK(in_order(by_deadline, "active", "deadline"));
    CHECK(in_order(by_deadline, "delayed", "not_before"));
    CHECK(in_order(by_deadline, "pending", "ttl_left_ms"));
    selector.states = {"active", "delayed"};
    Words expected = found_by(queue, selector);
    selector.states = {"pending"};
    for (const RespValue& job : queue.all()) {
      const bool expires = !job.find("ttl_left_ms")->is_null();
      if (expires && selector.matches(job, 0)) expected.push_back(job.field("id"));
    }
    CHECK(sorted(ids_of(by_deadline)) == sorted(expected));
  }
}

TEST_CASE("what keeps its place is found exactly once while all else changes") {
  const std::vector<Words> walks = {{},
                                    {"WHERE", "STATE", "pending"},
                                    {"WHERE", "GROUP", "steady"},
                                    {"WHERE", "GROUP", "st*", "STATE", "pending"},
                                    {"WHERE", "PRI", "NORMAL", "STATE", "pending"},
                                    {"BY", "RANK"},
                                    {"WHERE", "GROUP", "steady", "BY", "RANK"},
                                    {"BY", "AGE"},
                                    {"BY", "AGE", "DESC"},
                                    {"WHERE", "STATE", "pending", "BY", "DEADLINE"}};
  for (const uint64_t seed : sluice::testing::seeds(6, 15485863)) {
    sluice::testing::use_seed(seed);
    RandomQueue queue(seed, {.lifo = seed % 2 == 0});
    queue.server.run({"Q.CONFIG", "q", "GROUP", "steady", "SET", "paused", "out"});
    Words steady;
    for (int i = 0; i < 40; ++i) {
      for (int j = 0; j < 4; ++j) queue.step();
      steady.push_back("s" + std::to_string(i));
      queue.server.run({"Q.ADD", "q", steady.back(), "", "GROUP", "steady", "PRI", "NORMAL", "TTL",
                        "100000000"});
    }
    std::sort(steady.begin(), steady.end());
    for (const Words& walk : walks) {
      INFO("seed " << seed << ": " << shown(walk));
      const auto jobs = list_all(queue.server, walk, 5, [&] {
        for (int i = 0; i < 6; ++i) queue.step();
      });
      Words found;
      for (const RespValue& job : jobs) {
        if (job.field("group") == "steady") found.push_back(job.field("id"));
      }
      CHECK(sorted(found) == steady);
    }
  }
}

TEST_CASE("one step looks at ten thousand jobs at most") {
  QueueClient server;
  for (int i = 0; i < 25000; ++i) {
    Words add = {"Q.ADD", "q", "j" + std::to_string(i), ""};
    if (i == 24000) add = add + Words{"TAG", "t", "x"};
    server.run(add);
  }
  for (const Words& walk : std::vector<Words>{{"WHERE", "TAG", "t", "x"},
                                              {"WHERE", "TAG", "t", "x", "BY", "RANK"},
                                              {"WHERE", "TAG", "t", "x", "STATE", "pending"}}) {
    int pages = 0;
    const auto jobs = list_all(server, walk, 1000, [&] { ++pages; });
    CHECK(ids_of(jobs) == Words{"j24000"});
    CHECK(pages == 3);
  }
  const RespValue step =
      server.run({"Q.CANCEL", "q", "WHERE", "TAG", "t", "x", "STATE", "pending"});
  CHECK(step.items[0].text != "0");
  CHECK(step.items[1].text == "0");
}

TEST_CASE("a page ends at four megabytes of what its jobs carry") {
  QueueClient server;
  const std::string large(900'000, 'x');
  for (int i = 0; i < 12; ++i) server.run({"Q.ADD", "q", "j" + std::to_string(i), large});
  for (const Words& walk : std::vector<Words>{{},
                                              {"BY", "RANK"},
                                              {"BY", "AGE"},
                                              {"WHERE", "STATE", "pending"},
                                              {"WHERE", "PRI", "2"}}) {
    INFO(shown(walk));
    int pages = 0;
    const auto with = list_all(server, walk + Words{"WITH", "payload"}, 1000, [&] { ++pages; });
    CHECK(with.size() == 12);
    CHECK(pages == 3);
    pages = 0;
    const auto without = list_all(server, walk, 1000, [&] { ++pages; });
    CHECK(without.size() == 12);
    CHECK(pages == 1);
  }
  const auto ahead = [&](const Words& with) {
    return server.run(Words{"Q.LIST", "q", "BY", "DISPATCH"} + with).items[1].items.size();
  };
  CHECK(ahead({}) == 12);
  CHECK(ahead({"WITH", "payload"}) == 5);
  // Results and progress also count.
  const RespValue popped = server.run({"Q.POP", "1", "q", "COUNT", "6"});
  for (const RespValue& job : popped.items) {
    server.run({"Q.TOUCH", "q", job.field("id"), job.field("lease"), "PROGRESS", large});
  }
  int pages = 0;
  CHECK(list_all(server, {"WHERE", "STATE", "active"}, 1000, [&] { ++pages; }).size() == 6);
  CHECK(pages == 2);
}

// Runs the command until its cursor is 0; returns the number of changed jobs.
int64_t change_all(QueueClient& server, const std::string& command, const Words& where,
                   const Words& options = {}) {
  int64_t changed = 0;
  std::string cursor = "0";
  do {
    const RespValue reply = server.run(Words{command, "q", "WHERE"} + where +
                                       Words{"LIMIT", "7", "CURSOR", cursor} + options);
    INFO(reply.show());
    REQUIRE(reply.items.size() == 2);
    cursor = reply.items[0].text;
    CHECK(std::stoll(reply.items[1].text) <= 7);
    changed += std::stoll(reply.items[1].text);
  } while (cursor != "0");
  return changed;
}

std::set<std::string> only(const std::set<std::string>& states, const std::set<std::string>& of) {
  if (of.empty()) return states;
  std::set<std::string> both;
  for (const std::string& state : of) {
    if (states.count(state) != 0) both.insert(state);
  }
  return both;
}

TEST_CASE("cancel, retry and purge change what a naive filter finds") {
  const std::set<std::string> live = {"blocked", "delayed", "pending", "active"};
  const std::set<std::string> ended = {"completed", "failed", "cancelled", "expired"};
  for (const uint64_t seed : sluice::testing::seeds(10, 32452843)) {
    sluice::testing::use_seed(seed);
    RandomQueue queue(seed, {.lifo = seed % 2 == 0});
    for (int round = 0; round < 6; ++round) {
      for (int i = 0; i < 120; ++i) queue.step();
      const NaiveSelector given = random_selector(queue);
      INFO("seed " << seed << ": " << shown(given.words()));
      NaiveSelector meant = given;
      const auto expected = [&](const std::set<std::string>& states) -> Words {
        meant.states = states;
        return states.empty() ? Words{} : found_by(queue, meant);
      };

      // A job that was signalled before is not counted again, so signal these first.
      Words told = expected(only({"active"}, given.states));
      for (const std::string& id : told) queue.server.run({"Q.CANCEL", "q", id});
      const Words cancelled = expected(only({"delayed", "pending"}, given.states));
      CHECK(change_all(queue.server, "Q.CANCEL", given.words(), {"REASON", "a test"}) ==
            static_cast<int64_t>(cancelled.size()));
      for (const std::string& id : cancelled) {
        const RespValue job = queue.server.run({"Q.GET", "q", id});
        CHECK(job.field("state") == "cancelled");
        CHECK(job.field("error") == "a test");
      }
      CHECK(expected(only({"delayed", "pending"}, given.states)).empty());

      const std::set<std::string> failed =
          given.states.empty() ? std::set<std::string>{"failed"} : only(ended, given.states);
      const Words retried = expected(failed);
      CHECK(change_all(queue.server, "Q.RETRY", given.words()) ==
            static_cast<int64_t>(retried.size()));
      for (const std::string& id : retried) {
        CHECK(live.count(queue.server.run({"Q.GET", "q", id}).field("state")) == 1);
      }

      const Words purged = expected(only(ended, given.states));
      CHECK(change_all(queue.server, "Q.PURGE", given.words()) ==
            static_cast<int64_t>(purged.size()));
      for (const std::string& id : purged) {
        CHECK(queue.server.run({"Q.GET", "q", id}).is_null());
      }
    }
  }
}

TEST_CASE("a cancelled need takes its dependents along, and each is counted once") {
  QueueClient server;
  server.run({"Q.ADD", "q", "a", ""});
  server.run({"Q.ADD", "q", "b", "", "NEED", "a"});
  server.run({"Q.ADD", "q", "c", "", "NEED", "b"});
  CHECK(server.run({"Q.CANCEL", "q", "WHERE", "STATE", "pending"}).show() == "[0 1]");
  for (const char* id : {"a", "b", "c"}) {
    CHECK(server.run({"Q.GET", "q", id}).field("state") == "cancelled");
  }
  CHECK(server.run({"Q.GET", "q", "c"}).field("error") == "need b");
}

TEST_CASE("all jobs are meant only where ALL says so") {
  QueueClient server;
  for (int i = 0; i < 4; ++i) server.run({"Q.ADD", "q", "j" + std::to_string(i), ""});
  server.run({"Q.CANCEL", "q", "j3"});
  const std::string before = server.run({"Q.STATS", "q"}).find("by_priority")->show();
  const auto refused = [&](const Words& words) {
    const std::string reply = server.run(words).show();
    const std::string start = "-ERR syntax error, WHERE takes either ALL or at least one of ";
    CHECK_MESSAGE(reply.rfind(start, 0) == 0, shown(words) << reply);
  };
  for (const char* command : {"Q.CANCEL", "Q.RETRY", "Q.PURGE", "Q.LIST"}) {
    for (const char* where : {"WHERE", "where", "Where"}) {
      const Words bare = {command, "q", where};
      refused(bare);
      refused(bare + Words{"LIMIT", "5"});
      refused(bare + Words{"CURSOR", "0"});
      refused(bare + Words{"LIMIT", "5", "CURSOR", "0"});
      refused(bare + Words{"ALL", "STATE", "pending"});
      refused(bare + Words{"GROUP", "*", "all"});
    }
    refused({command, "missing", "WHERE"});
  }
  refused({"Q.CANCEL", "q", "WHERE", "REASON", "ALL", "GRACE", "0"});
  CHECK(server.run({"Q.STATS", "q"}).find("by_priority")->show() == before);
  CHECK(server.run({"Q.GET", "q", "j3"}).field("state") == "cancelled");
  // One criterion is enough, even one that all jobs meet or one that is spelled like the keyword.
  for (const Words& where : std::vector<Words>{{"STATE", "pending"},
                                               {"PRI", "NORMAL"},
                                               {"OLDER", "0", "STATE", "pending"},
                                               {"GROUP", "", "STATE", "pending"}}) {
    CHECK(server.run(Words{"Q.CANCEL", "q", "WHERE"} + where + Words{"LIMIT", "1"}).items[1].text ==
          "1");
    CHECK(server.run({"Q.RETRY", "q", "WHERE", "ALL"}).show() == "[0 0]");
    for (int i = 0; i < 4; ++i) server.run({"Q.RETRY", "q", "j" + std::to_string(i)});
  }
  CHECK(server.run({"Q.CANCEL", "q", "WHERE", "GROUP", "ALL"}).show() == "[0 0]");
  CHECK(server.run({"Q.LIST", "q", "WHERE", "ALL", "LIMIT", "2"}).items[1].items.size() == 2);
  CHECK(server.run({"Q.CANCEL", "q", "where", "all", "LIMIT", "2"}).items[1].text == "2");
  CHECK(server.run({"Q.CANCEL", "q", "WHERE", "ALL"}).show() == "[0 2]");
  CHECK(server.run({"Q.PURGE", "q", "WHERE", "ALL"}).show() == "[0 4]");
}

TEST_CASE("GROUP means one group where each byte of its name stands for itself") {
  const std::string every(512, '*');
  const Words names = {"*",     "?",     "[",   "]",    "\\",    "\\*",
                       "*\\",   "a*",    "a?c", "abc",  "[abc]", "a[b]c",
                       "a",     "^",     "-",   "[^a]", "[a-c]", "a-c",
                       "a\\",   "a\\\\", "a]",  "ALL",  "WHERE", std::string("\0*", 2),
                       "\xff[", every};
  QueueClient server;
  for (const std::string& name : names) {
    server.run({"Q.ADD", "q", "of " + name.substr(0, 20), "", "GROUP", name, "IFDUP", "KEEP"});
  }
  for (const std::string& name : names) {
    INFO(name);
    const std::string glob = sluice::glob_escape(name);
    const Words mine = {"of " + name.substr(0, 20)};
    CHECK(ids_of(list_all(server, {"WHERE", "GROUP", glob})) == mine);
    CHECK(ids_of(list_all(server, {"WHERE", "GROUP", glob, "BY", "RANK"})) == mine);
    CHECK(server.run({"Q.CANCEL", "q", "WHERE", "GROUP", glob}).show() == "[0 1]");
    CHECK(server.run({"Q.GET", "q", mine[0]}).field("state") == "cancelled");
  }
  const RespValue longer = server.run({"Q.LIST", "q", "WHERE", "GROUP", std::string(513, 'a')});
  CHECK(longer.show() == "-BADFIELD field=group");
}

TEST_CASE("a walk over a group whose name is a glob's goes through its index") {
  QueueClient server;
  for (int i = 0; i < 12000; ++i) server.run({"Q.ADD", "q", "j" + std::to_string(i), ""});
  server.run({"Q.ADD", "q", "mine", "", "GROUP", "a*"});
  int pages = 0;
  const Words where = {"WHERE", "GROUP", "a\\*", "STATE", "pending"};
  CHECK(ids_of(list_all(server, where, 10, [&] { ++pages; })) == Words{"mine"});
  CHECK(pages == 1);
}

TEST_CASE("bad selectors and cursors") {
  QueueClient server;
  for (int i = 0; i < 3; ++i) server.run({"Q.ADD", "q", "j" + std::to_string(i), ""});
  const auto error = [&](const Words& words) { return server.run(words).show(); };
  CHECK(error({"Q.LIST", "q", "CURSOR", "x"}) == "-ERR invalid cursor");
  CHECK(error({"Q.LIST", "q", "CURSOR", ""}) == "-ERR invalid cursor");
  CHECK(error({"Q.LIST", "q", "CURSOR", "s"}) == "-ERR invalid cursor");
  CHECK(error({"Q.LIST", "q", "CURSOR", "s1-1"}) == "-ERR invalid cursor");
  CHECK(error({"Q.LIST", "q", "CURSOR", "p1-1"}) == "-ERR invalid cursor");
  CHECK(error({"Q.LIST", "q", "CURSOR", "p1-1-1-"}) == "-ERR invalid cursor");
  CHECK(error({"Q.LIST", "q", "CURSOR", "p100-1-1"}) == "-ERR invalid cursor");
  CHECK(error({"Q.LIST", "q", "BY", "RANK", "CURSOR", "s1"}) == "-ERR invalid cursor");
  CHECK(error({"Q.PURGE", "q", "WHERE", "ALL", "CURSOR", "12"}) == "-ERR invalid cursor");
  CHECK(error({"Q.LIST", "q", "BY", "NAME"}) == "-BADFIELD field=by");
  CHECK(error({"Q.LIST", "q", "STATE", "pending"}) == "-ERR syntax error");
  CHECK(error({"Q.LIST", "q", "WHERE", "COUNT", "1", "STATE", "pending"}) == "-ERR syntax error");
  CHECK(error({"Q.LIST", "q", "WHERE", "STATE"}) == "-ERR syntax error");
  CHECK(error({"Q.LIST", "q", "WHERE", "STATE", "asleep"}) == "-BADFIELD field=state");
  CHECK(error({"Q.LIST", "q", "WHERE", "PRI", "x"}) == "-BADFIELD field=pri");
  CHECK(error({"Q.LIST", "q", "WHERE", "OLDER", "-1"}) == "-BADFIELD field=older");
  CHECK(error({"Q.LIST", "q", "WHERE", "LIMIT", "1001"}) == "-BADFIELD field=limit");
  CHECK(error({"Q.LIST", "q", "COUNT", "0"}) == "-BADFIELD field=count");
  CHECK(error({"Q.LIST", "q", "WITH", "everything"}) == "-BADFIELD field=with");
  CHECK(error({"Q.PURGE", "q", "STATE", "failed"}) == "-ERR syntax error");
  CHECK(error({"Q.RETRY", "q", "WHERE", "REASON", "x"}) == "-ERR syntax error");
  // A missing queue reads as an empty one.
  CHECK(error({"Q.LIST", "missing"}) == "[0 []]");
  CHECK(error({"Q.PURGE", "missing", "WHERE", "ALL"}) == "[0 0]");
  server.run({"SET", "text", "x"});
  CHECK(error({"Q.LIST", "text"}).rfind("-WRONGTYPE", 0) == 0);
  CHECK(error({"Q.PURGE", "text", "WHERE", "ALL"}).rfind("-WRONGTYPE", 0) == 0);
}

}  // namespace

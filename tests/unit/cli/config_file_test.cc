// Files of configuration: what they say, what is wrong in them and where, and plans.
#include "tools/cli/config_file.h"

#include <optional>
#include <string>

#include "tools/cli/failure.h"

#include "tests/support/test.h"

namespace {

using sluice::ConfigLevel;
using sluice::QueueConfig;
using sluice::cli::change_text;
using sluice::cli::commands_of;
using sluice::cli::default_settings;
using sluice::cli::Failure;
using sluice::cli::plan_changes;
using sluice::cli::QueueSettings;
using sluice::cli::read_config_file;
using sluice::cli::SettingChange;
using sluice::cli::Words;
using sluice::cli::write_config_file;

QueueSettings queue_of(const std::string& members) {
  return read_config_file("f", R"({"queues": {"q": )" + members + "}}").at("q");
}

std::string error_of(const std::string& text) {
  try {
    read_config_file("f", text);
  } catch (const Failure& failure) {
    return failure.text;
  }
  return "none";
}

std::string plan_text(const std::optional<QueueSettings>& now, const QueueSettings& wanted) {
  std::string text;
  for (const SettingChange& change : plan_changes("q", now, wanted)) {
    text += change_text(change) + "\n";
  }
  return text;
}

std::string command_texts(const std::optional<QueueSettings>& now, const QueueSettings& wanted) {
  std::string text;
  for (const Words& words : commands_of(plan_changes("q", now, wanted), now, wanted)) {
    for (size_t i = 2; i < words.size(); ++i) text += (i == 2 ? "" : " ") + words[i];
    text += "\n";
  }
  return text;
}

TEST_CASE("values are those of Q.CONFIG, in whatever form they are given") {
  const QueueSettings q = queue_of(R"({"max_active": 8, "LEASE_ms": "1m", "rate": "20/1s",
      "weight": 2.50, "groups": {"team.*": {"max_active": "3"}}, "workers": {}})");
  CHECK(q.fields.at("max_active") == "8");
  CHECK(q.fields.at("lease_ms") == "60000");
  CHECK(q.fields.at("rate") == "20/1000");
  CHECK(q.fields.at("weight") == "2.5");
  CHECK(q.fields.at("retry") == "0");
  CHECK(q.rules.at({ConfigLevel::kGroup, "team.*"}).at("max_active") == "3");
  CHECK(q.has_workers);
  CHECK_FALSE(q.has_paused);
}

TEST_CASE("errors name the line, the field and what it takes") {
  const auto in_queue = [](const std::string& line) {
    return error_of("{\"queues\": {\n \"q\": {\n  \"max_active\": 1,\n  " + line + "\n}}}");
  };
  CHECK(in_queue(R"("max_activ": 3)")
            .starts_with("f:4: q: max_activ: there is no field max_activ; "
                         "did you mean max_active?"));
  CHECK(in_queue(R"("fair": "yes")") == "f:4: q: fair: fair takes off or on, not yes");
  CHECK(in_queue(R"("retry": -1)").starts_with("f:4: q: retry: "));
  CHECK(in_queue(R"("retry": true)") == "f:4: q: retry: retry takes a number up to 10000, not on");
  CHECK(in_queue(R"("retry": [1])") == "f:4: q: retry takes a text, a number, true or false");
  CHECK(in_queue(R"("retry": {"a": 1})") == "f:4: q: retry takes a text, a number, true or false");
  CHECK(in_queue(R"("groups": 1)") == "f:4: q: groups takes an object");
  CHECK(in_queue(R"("groups": {"g": 1})") == "f:4: q: groups: g takes an object");
  CHECK(in_queue(R"("grups": {"g": {}})") ==
        "f:4: q: grups: there is no such member; did you mean groups?");
  CHECK(in_queue(R"("max_payload": "1m")") ==
        "f:4: q: max_payload: max_payload takes bytes, up to 536870912, not 1m");
  CHECK(in_queue(R"("groups": {"g": {"retry": 1}})") ==
        "f:4: q: groups: g: retry is a field of queues, and not of groups");
  CHECK(in_queue(R"("groups": {"g": {"order": "lifo:none"}})")
            .starts_with("f:4: q: groups: g: order: "));
  CHECK(in_queue(R"("groups": {"": {"weight": 2}})") == "f:4: q: a rule has a name or a glob");
  CHECK(in_queue(R"("max_active": 2)") == "f:4: q: max_active is given twice");
  CHECK(in_queue(R"("retry": 1,,)").starts_with("f:4: no JSON: "));
  CHECK(error_of("[]") == "f:1: the file takes an object");
  CHECK(error_of("1") == "f:1: the file takes an object");
  CHECK(error_of("").starts_with("f:1: no JSON: "));
  CHECK(error_of(R"({"queue": {}})") ==
        "f:1: queue: the file has one member, queues; did you mean queues?");
  CHECK(error_of(R"({"queues": {"q": 1}})") == "f:1: q takes an object");
  CHECK(error_of("{}") == "f:1: the file has one member, queues");
  CHECK(error_of("{\"queues\": {}}") == "none");
}

TEST_CASE("a plan says what is set, changed and reset") {
  const QueueSettings now = queue_of(R"({"max_active": 8, "retry": 3,
      "groups": {"a": {"max_active": 1, "weight": 2}, "b": {"weight": 3}},
      "keys": {"k": {"rate": "1/1s"}}})");
  const QueueSettings wanted = queue_of(R"({"max_active": 4, "fair": "on",
      "groups": {"a": {"max_active": 2}, "c*": {"max_waiting": 9}},
      "keys": {"k": {"rate": "1/1000"}}})");
  CHECK(plan_text(now, wanted) ==
        "+ q: fair off -> on\n~ q: max_active 8 -> 4\n- q: retry 3 -> 0\n"
        "~ q: group a: max_active 1 -> 2\n- q: group a: weight 2\n- q: group b: weight 3\n"
        "+ q: group c*: max_waiting 9\n");
  CHECK(plan_text(now, now).empty());
  CHECK(command_texts(now, wanted) ==
        "group a RESET\ngroup b RESET\nSET fair on max_active 4 retry 0\n"
        "group a SET max_active 2\ngroup c* SET max_waiting 9\n");
}

TEST_CASE("a queue that is not there is made, with all it needs") {
  CHECK(plan_text({}, queue_of("{}")) == "+ q: a new queue\n");
  CHECK(command_texts({}, queue_of("{}")) == "SET max_active 0\n");
  CHECK(command_texts({}, queue_of(R"({"max_active": 2})")) == "SET max_active 2\n");
  CHECK(command_texts({}, queue_of(R"({"keys": {"k": {"max_active": 2}}})")) ==
        "key k SET max_active 2\n");
}

TEST_CASE("a pause and rules of workers stay unless the file names them") {
  QueueSettings now = queue_of(R"({"paused": "out", "groups": {"g": {"paused": "in", "weight": 2}},
                                   "workers": {"w": {"quiet": "on"}}})");
  CHECK(plan_text(now, queue_of(R"({"groups": {"g": {"weight": 2}}})")).empty());
  CHECK(plan_text(now, queue_of("{}")) == "- q: group g: weight 2\n");
  CHECK(command_texts(now, queue_of("{}")) == "group g RESET\ngroup g SET paused in\n");
  CHECK(plan_text(now, queue_of(R"({"paused": "none", "workers": {}})")) ==
        "- q: paused out -> none\n- q: group g: weight 2\n- q: worker w: quiet on\n");
}

TEST_CASE("of globs of equal length the last one wins: their order is kept") {
  const auto rules = [](const std::string& members) {
    return queue_of("{\"groups\": {" + members + "}}");
  };
  const std::string a = R"("a*b": {"weight": 1})";
  const std::string b = R"("?bc*": {"weight": 2})";
  const std::string c = R"("c*c": {"weight": 3})";
  const std::string longer = R"("long*": {"weight": 4})";
  const QueueSettings now = rules(a + "," + longer + "," + b + "," + c);
  CHECK(plan_text(now, now).empty());
  CHECK(plan_text(now, rules(a + "," + b + "," + c + "," + longer)).empty());
  const QueueSettings moved = rules(b + "," + c + "," + a + "," + longer);
  CHECK(plan_text(now, moved) == "~ q: group a*b: moved to the end\n");
  CHECK(command_texts(now, moved) == "group a*b RESET\ngroup a*b SET weight 1\n");
  // One that is changed becomes the last, so those behind it are set again.
  const QueueSettings changed = rules(a + R"(,"?bc*": {"weight": 5},)" + c + "," + longer);
  CHECK(plan_text(now, changed) == "~ q: group ?bc*: weight 2 -> 5\n");
  CHECK(command_texts(now, changed) ==
        "group c*c RESET\ngroup ?bc* SET weight 5\ngroup c*c SET weight 3\n");
  // A new one amid the others, and one that is removed.
  const QueueSettings fresh = rules(a + R"(,"*dd": {"weight": 6},)" + c);
  CHECK(plan_text(now, fresh) ==
        "+ q: group *dd: weight 6\n- q: group ?bc*: weight 2\n- q: group long*: weight 4\n");
  CHECK(command_texts(now, fresh) ==
        "group ?bc* RESET\ngroup c*c RESET\ngroup long* RESET\n"
        "group *dd SET weight 6\ngroup c*c SET weight 3\n");
  // Both at once.
  const QueueSettings both = rules(R"("c*c": {"weight": 7},)" + b + "," + a);
  CHECK(plan_text(now, both) ==
        "~ q: group c*c: weight 3 -> 7\n- q: group long*: weight 4\n"
        "~ q: group ?bc*: moved to the end\n~ q: group a*b: moved to the end\n");
  CHECK(command_texts(now, both) ==
        "group ?bc* RESET\ngroup a*b RESET\ngroup long* RESET\n"
        "group c*c SET weight 7\ngroup ?bc* SET weight 2\ngroup a*b SET weight 1\n");
}

TEST_CASE("rules follow bands that are renamed") {
  const QueueSettings now =
      queue_of(R"({"bands": "old,low", "groups": {"g": {"order": "lifo:old"}}})");
  const QueueSettings wanted =
      queue_of(R"({"bands": "new,low", "groups": {"g": {"order": "lifo:new"}}})");
  CHECK(command_texts(now, wanted) ==
        "group g RESET\nSET bands new,low\ngroup g SET order lifo:new\n");
}

TEST_CASE("what is written is read as the same") {
  const std::string file = R"({"queues": {"a": {"max_active": 8, "bands": "a,b",
      "groups": {"z*b": {"weight": 2}, "a": {"weight": 3}, "b*z": {"weight": 4},
                 "team.*": {"max_active": 2, "order": "lifo"}}, "keys": {"k": {"rate": "5/1000"}}},
      "base64:/w==": {"retry": 3}}})";
  const auto queues = read_config_file("f", file);
  CHECK(queues.contains("\xff"));
  const auto again = read_config_file("g", write_config_file(queues));
  REQUIRE(again.size() == queues.size());
  for (const auto& [name, settings] : queues) {
    CHECK(again.at(name).fields == settings.fields);
    CHECK(again.at(name).rules == settings.rules);
    CHECK(again.at(name).globs == settings.globs);
  }
}

TEST_CASE("a name that looks like one in base64 is written so that it is read as the same") {
  const auto queues =
      read_config_file("f", R"({"queues": {"base64:YmFzZTY0Oi93PT0=": {"retry": 3}}})");
  REQUIRE(queues.contains("base64:/w=="));
  const auto again = read_config_file("g", write_config_file(queues));
  CHECK(again.size() == 1);
  CHECK(again.contains("base64:/w=="));
}

}  // namespace

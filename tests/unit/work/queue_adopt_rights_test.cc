// Q.ADOPT and users' rights: payloads are under keys that no command names, so each command and
// timer that accesses one checks the rights of its user. And the keys that prefix and member must
// never reach.
#include <string>
#include <vector>

#include "engine/access/acl.h"
#include "engine/access/acl_log.h"
#include "engine/queue/adopted_records.h"
#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace {

using sluice::Bytes;
using sluice::test::QueueTalk;
using sluice::test::QuietServer;

constexpr const char* kNoPermission =
    "-NOPERM this user has no permissions to access one of the keys used as arguments";
// eve's own keys, and payloads that may belong to others.
constexpr const char* kAdopt = "Q.ADOPT ok:q PENDING ok:w ACTIVE ok:act PAYLOAD sec: ";
constexpr const char* kMayAdopt = "on >pw ~ok:* ~sec:* +@all -@admin -@dangerous";
constexpr size_t kAdmin = 0;
constexpr size_t kEve = 1;

// Connection 0 is the default user, who may do everything; connection 1 is eve.
class Users : public QueueTalk {
 public:
  explicit Users(const std::string& rules = kMayAdopt) { set_user("eve", rules); }

  void set_user(const std::string& name, const std::string& rules) {
    const std::vector<std::string> given = words(rules);
    REQUIRE(engine().acl().set_user(name, std::vector<Bytes>(given.begin(), given.end())).ok());
    if (name == "eve") session(kEve).client.user = engine().acl().find(name);
  }
  std::string eve(const std::string& line) { return say_as(kEve, line); }
  std::string admin(const std::string& line) { return say_as(kAdmin, line); }
  // eve's waiting jobs, with a payload for each.
  void add_jobs(const std::string& ids) {
    for (const std::string& id : words(ids)) {
      admin("ZADD ok:w 1 " + id);
      admin("SET sec:" + id + " secret-" + id);
    }
  }
  // A lease that is lost for the second time.
  void lose(const std::string& id) {
    for (int round = 0; round < 2; ++round) {
      admin("MULTI");
      admin("ZREM ok:w " + id);
      admin("SADD ok:act " + id);
      admin("EXEC");
      pass(100);
    }
    CHECK(admin("ZSCORE ok:w " + id) == "null");
    CHECK(admin("SISMEMBER ok:act " + id) == "0");
  }
  std::vector<std::string>& warnings() {
    return static_cast<QuietServer&>(engine().server()).warnings;
  }
};

TEST_CASE("a search in payloads needs the right to read them") {
  Users users("on >pw %W~w:* ~rw:* +@all");
  for (const std::string queue : {"w:q", "rw:q"}) {
    users.admin("Q.ADD " + queue + " j1 secret-1");
    users.admin("Q.CANCEL " + queue + " j1");
    CHECK(users.eve("Q.PURGE " + queue + " WHERE STATE failed") == "[0 0]");
    const bool may = queue == "rw:q";
    for (const std::string command : {"Q.CANCEL ", "Q.RETRY ", "Q.PURGE "}) {
      const std::string reply = users.eve(command + queue + " WHERE STATE failed PAYLOAD secret");
      CHECK(reply == (may ? "[0 0]" : kNoPermission));
    }
  }
  CHECK(users.eve("Q.PURGE rw:q WHERE PAYLOAD SECRET-1") == "[0 1]");
  CHECK(users.admin("Q.PURGE w:q WHERE PAYLOAD secret-2") == "[0 0]");
}

TEST_CASE("payloads of adopted members are not searched") {
  Users users;
  users.add_jobs("a b");
  users.admin(kAdopt);
  CHECK(users.eve("Q.LIST ok:q WHERE PAYLOAD secret") == "-ADOPTED");
  CHECK(users.eve("Q.CANCEL ok:q WHERE PAYLOAD secret") == "-ADOPTED");
}

TEST_CASE("adopting needs a read and a write pattern that are beginnings of the prefix") {
  const std::vector<std::pair<std::string, bool>> users = {
      {"~*", true},
      {"~ok:* ~sec:*", true},
      {"~ok:* ~sec*", true},
      {"~ok:* ~s*", true},
      {"~ok:* %R~sec:* %W~s*", true},
      {"~ok:* %RW~sec:*", true},
      {"~ok:* ~sec\\:*", true},
      {"~ok:*", false},
      {"~ok:* %R~*", false},
      {"~ok:* %W~*", false},
      {"~ok:* ~sec:a*", false},
      {"~ok:* ~sec:", false},
      {"~ok:* ~sec:?", false},
      {"~ok:* ~sec:\\*", false},
      // They match every such key, but for globs this cannot be decided in general.
      {"~ok:* ~*:*", false},
      {"~ok:* ~s?c*", false},
      {"~ok:* ~[s]ec:*", false},
      {"~ok:* ~sec:**", false},
      // One set of permissions must allow all of it.
      {"~ok:* (~sec:* +@all)", false},
      {"~ok:* (~ok:* ~sec:* +q.adopt)", true},
      {"~ok:* (~ok:* %R~sec:* +q.adopt) (~ok:* %W~sec:* +q.adopt)", false},
      {"-q.adopt ~* (~ok:* +q.adopt)", false}};
  for (const auto& [rules, allowed] : users) {
    Users q("on >pw +@all -@admin " + rules);
    const std::string reply = q.eve(kAdopt);
    CHECK_MESSAGE((reply == "OK") == allowed, rules << ": " << reply);
    if (allowed) continue;
    CHECK_MESSAGE(reply.rfind("-NOPERM ", 0) == 0, reply);
    CHECK(q.admin("EXISTS ok:q") == "0");
    CHECK(q.engine().acl_log().newest(1).at(0).object == "sec:");
    // Without payloads there is nothing to check.
    CHECK(q.eve("Q.ADOPT ok:q PENDING ok:w ACTIVE ok:act") == "OK");
  }
}

TEST_CASE("a prefix with characters of globs needs them escaped in the pattern") {
  Users q("on >pw ~ok:* ~a[1]*:* +@all");
  CHECK(q.eve("Q.ADOPT ok:q PENDING ok:w ACTIVE ok:act PAYLOAD a[1]*:").rfind("-NOPERM", 0) == 0);
  q.set_user("eve", "resetkeys ~ok:* ~a[1]*");
  CHECK(q.eve("Q.ADOPT ok:q PENDING ok:w ACTIVE ok:act PAYLOAD a[1]").rfind("-NOPERM", 0) == 0);
  q.set_user("eve", "resetkeys ~ok:* ~a\\[1\\]\\*:*");
  CHECK(q.eve("Q.ADOPT ok:q PENDING ok:w ACTIVE ok:act PAYLOAD a[1]*:") == "OK");
}

TEST_CASE("Q.GET and Q.LIST show a payload to whoever may read its key now") {
  Users q;
  q.add_jobs("a b");
  CHECK(q.eve(kAdopt) == "OK");
  CHECK(q.eve("Q.LIST ok:q WITH payload").find("secret-b") != std::string::npos);
  for (const char* rules : {"resetkeys ~ok:*", "resetkeys ~ok:* %W~sec:*"}) {
    q.set_user("eve", rules);
    CHECK(q.eve("Q.GET ok:q a WITH payload") == kNoPermission);
    CHECK(q.eve("Q.LIST ok:q WITH payload") == kNoPermission);
    CHECK(q.eve("EVAL return{redis.call('Q.GET',KEYS[1],'a','WITH','payload')} 1 ok:q")
              .find("NOPERM") != std::string::npos);
    q.eve("MULTI");
    q.eve("Q.GET ok:q a WITH payload");
    CHECK(q.eve("EXEC") == "[" + std::string(kNoPermission) + "]");
    CHECK(q.eve("Q.GET ok:q a").find("secret") == std::string::npos);
    CHECK(q.eve("Q.GET ok:q nobody WITH payload") == "null");
  }
  CHECK(q.engine().acl_log().newest(1).at(0).object == "sec:a");
  q.set_user("eve", "%R~sec:a");
  CHECK(q.eve("Q.GET ok:q a WITH payload").find("secret-a") != std::string::npos);
  // A page is returned as a whole or not at all.
  CHECK(q.eve("Q.LIST ok:q WITH payload") == kNoPermission);
  CHECK(q.eve("Q.LIST ok:q COUNT 1 WITH payload").find("secret-a") != std::string::npos);
  // A selector counts as a whole: it must also allow the command.
  q.set_user("eve", "resetkeys ~ok:* (%R~sec:* +get)");
  CHECK(q.eve("Q.GET ok:q a WITH payload") == kNoPermission);
  q.set_user("eve", "(%R~sec:* %R~ok:* +q.get)");
  CHECK(q.eve("Q.GET ok:q a WITH payload").find("secret-a") != std::string::npos);
}

TEST_CASE("who waits in Q.GET is shown the payload by his rights when he is served") {
  Users q;
  q.add_jobs("a");
  CHECK(q.eve(kAdopt) == "OK");
  CHECK(q.eve("Q.GET ok:q a WITH payload WAIT 0") == "(waits)");
  q.set_user("eve", "resetkeys ~ok:*");
  // The job ends and returns within one unit.
  q.admin("MULTI");
  q.admin("Q.CANCEL ok:q a");
  q.admin("SET sec:a another");
  q.admin("ZADD ok:w 1 a");
  q.admin("EXEC");
  const auto told = q.take_deliveries();
  REQUIRE(told.count(kEve) == 1);
  CHECK(told.at(kEve).show() == kNoPermission);
}

TEST_CASE("Q.CANCEL without the right to write the payload changes nothing") {
  Users q;
  q.add_jobs("a b c");
  CHECK(q.eve(kAdopt) == "OK");
  for (const char* rules : {"resetkeys ~ok:*", "resetkeys ~ok:* %R~sec:*"}) {
    q.set_user("eve", rules);
    CHECK(q.eve("Q.CANCEL ok:q a") == kNoPermission);
    CHECK(q.eve("Q.CANCEL ok:q WHERE PRI 2") == kNoPermission);
    CHECK(q.eve("EVAL return{redis.call('Q.CANCEL',KEYS[1],'a')} 1 ok:q").find("NOPERM") !=
          std::string::npos);
    q.eve("MULTI");
    q.eve("Q.CANCEL ok:q a");
    CHECK(q.eve("EXEC") == "[" + std::string(kNoPermission) + "]");
    CHECK(q.admin("ZCARD ok:w") == "3");
    CHECK(q.admin("EXISTS sec:a sec:b sec:c") == "3");
    CHECK(q.admin("Q.STATS ok:q").find("cancelled=0") != std::string::npos);
  }
  // Either all jobs that a selector matches, or none.
  q.set_user("eve", "%W~sec:a");
  CHECK(q.eve("Q.CANCEL ok:q WHERE PRI 2") == kNoPermission);
  CHECK(q.admin("ZCARD ok:w") == "3");
  CHECK(q.eve("Q.CANCEL ok:q a") == "cancelled");
  CHECK(q.admin("EXISTS sec:a") == "0");
  q.set_user("eve", "%W~sec:*");
  CHECK(q.eve("Q.CANCEL ok:q WHERE PRI 2") == "[0 2]");
  CHECK(q.admin("EXISTS sec:b sec:c") == "0");
}

TEST_CASE("leases delete payloads by the present rights of who has adopted") {
  const std::vector<std::pair<std::string, bool>> changes = {
      {"on", true},
      {"resetkeys ~ok:* %W~sec:*", true},
      {"resetkeys ~ok:* ~sec:a", true},
      {"-@all +q.adopt", true},
      {"resetkeys ~ok:*", false},
      {"resetkeys ~ok:* %R~*", false},
      {"off", false},
      {"reset", false},
      {"-@all", false},
      {"resetkeys ~ok:* (~sec:* +del)", false},
      {"resetkeys ~ok:* (~sec:* ~ok:* +q.adopt)", true}};
  for (const auto& [rules, deletes] : changes) {
    Users q;
    q.add_jobs("a");
    CHECK(q.eve(std::string(kAdopt) + "LEASE 100") == "OK");
    q.set_user("eve", rules);
    q.lose("a");
    CHECK_MESSAGE(q.admin("EXISTS sec:a") == (deletes ? "0" : "1"), rules);
    bool told = false;
    for (const std::string& line : q.warnings()) {
      told = told || line.find("\"sec:a\"") != std::string::npos;
    }
    CHECK_MESSAGE(told == !deletes, rules);
    CHECK(q.admin("Q.STATS ok:q").find("failed=1") != std::string::npos);
  }
}

TEST_CASE("a user who is gone has no rights, and one of his name has his") {
  Users q;
  q.add_jobs("a b");
  CHECK(q.eve(std::string(kAdopt) + "LEASE 100") == "OK");
  q.engine().acl().delete_user("eve");
  q.lose("a");
  CHECK(q.admin("EXISTS sec:a") == "1");
  // ACL LOAD creates users anew.
  CHECK(q.engine().acl().load_text("user eve on nopass ~ok:* ~sec:* +@all\n", "file").ok());
  q.lose("b");
  CHECK(q.admin("EXISTS sec:b") == "0");
}

TEST_CASE("the adopter is the one who adopted last, and outlives a restart and a new name") {
  Users q;
  q.add_jobs("a b c");
  CHECK(q.admin(std::string(kAdopt) + "LEASE 100") == "OK");
  CHECK(q.eve(std::string(kAdopt) + "LEASE 100") == "OK");
  CHECK(q.find_queue("ok:q")->adopted->definition.adopter == "eve");
  q.admin("RENAME ok:q ok:other");
  q.admin("RENAME ok:other ok:q");
  q.restart(4);
  q.set_user("eve", kMayAdopt);
  CHECK(q.find_queue("ok:q")->adopted->definition.adopter == "eve");
  q.lose("a");
  CHECK(q.admin("EXISTS sec:a") == "0");
  q.set_user("eve", "resetkeys ~ok:*");
  q.lose("b");
  CHECK(q.admin("EXISTS sec:b") == "1");
  CHECK(q.admin(std::string(kAdopt) + "LEASE 100") == "OK");
  q.lose("c");
  CHECK(q.admin("EXISTS sec:c") == "0");
}

TEST_CASE("an adoption of an older directory has no adopter: its payloads stay") {
  sluice::AdoptedDefinition definition;
  definition.pending = {"ok:w"};
  definition.active = "ok:act";
  definition.payload_prefix = "sec:";
  definition.adopter = "eve";
  sluice::ByteBuffer value;
  sluice::encode_adopted(&definition, value);
  std::string old(value.view());
  old.erase(old.find(std::string("\3eve")), 4);

  sluice::Effect effect;
  effect.value = old;
  effect.type = sluice::EffectType::kQueueAdopted;
  sluice::Queue queue;
  REQUIRE(apply_adopted_effect(queue, effect));
  CHECK(queue.adopted->definition.adopter == "");
  CHECK(queue.adopted->definition.pending == std::vector<std::string>{"ok:w"});
  CHECK(describe_adopted_effect(effect).find("adopter=\"\"") != std::string::npos);
  effect.value = value.view();
  effect.type = sluice::EffectType::kQueueAdoption;
  REQUIRE(apply_adopted_effect(queue, effect));
  CHECK(queue.adopted->definition.adopter == "eve");
  CHECK(queue.adopted->definition.payload_prefix == "sec:");

  Users q;
  q.add_jobs("a");
  CHECK(q.eve(std::string(kAdopt) + "LEASE 100") == "OK");
  q.find_queue("ok:q")->adopted->definition.adopter = "";
  q.lose("a");
  CHECK(q.admin("EXISTS sec:a") == "1");
  REQUIRE(q.warnings().size() == 2);
  CHECK(q.warnings()[0].find("it is unknown which user adopted the keys") != std::string::npos);
}

TEST_CASE("only strings are payloads") {
  Users q;
  q.add_jobs("a b c d");
  CHECK(q.eve(std::string(kAdopt) + "LEASE 100") == "OK");
  q.admin("DEL sec:a sec:b sec:c");
  q.admin("RPUSH sec:a item");
  q.admin("Q.ADD sec:b job x");
  q.admin("HSET sec:c f v");
  CHECK(q.eve("Q.LIST ok:q WITH payload").find("secret-d") != std::string::npos);
  CHECK(q.eve("Q.CANCEL ok:q a") == "cancelled");
  CHECK(q.eve("Q.CANCEL ok:q b") == "cancelled");
  q.lose("c");
  CHECK(q.admin("TYPE sec:a") == "list");
  CHECK(q.admin("TYPE sec:b") == "queue");
  CHECK(q.admin("TYPE sec:c") == "hash");
}

// --- The queue's own keys ---

TEST_CASE("a queue never takes its own keys for payloads") {
  Users q;
  q.admin("ZADD ok:w 1 q 2 w 3 act");
  CHECK(q.eve("Q.ADOPT ok:q PENDING ok:w ACTIVE ok:act PAYLOAD ok: LEASE 100") == "OK");
  CHECK(q.eve("Q.CANCEL ok:q WHERE PRI 2") == "[0 3]");
  CHECK(q.admin("TYPE ok:q") == "queue");
  // A key that temporarily holds another type is still the queue's key.
  q.admin("SET ok:act text");
  q.admin("ZADD ok:w 1 act");
  CHECK(q.say("Q.GET ok:q act WITH payload", "payload") == "null");
  CHECK(q.eve("Q.CANCEL ok:q act") == "cancelled");
  CHECK(q.admin("GET ok:act") == "text");
}

TEST_CASE("leases that end in a queue whose prefix and member are its own key") {
  Users q;
  CHECK(q.eve("Q.ADOPT ok:q PENDING ok:w ACTIVE ok:act PAYLOAD ok: LEASE 100") == "OK");
  std::string members = "q w act";
  for (int i = 0; i < 60; ++i) members += " m" + std::to_string(i);
  for (int round = 0; round < 2; ++round) {
    q.admin("MULTI");
    q.admin("DEL ok:w");
    q.admin("SADD ok:act " + members);
    q.admin("EXEC");
    q.pass(350);
  }
  CHECK(q.admin("TYPE ok:q") == "queue");
  CHECK(q.admin("Q.STATS ok:q").find("failed=63") != std::string::npos);
  q.restart(4);
  q.pass(350);
  CHECK(q.admin("TYPE ok:q") == "queue");
}

// --- Commands whose queue disappears in the meantime ---

TEST_CASE("a change of a shown key and a new name of its queue may come in one unit") {
  Users q;
  // The queue's new names are in many shards.
  for (int name = 0; name < 20; ++name) {
    const std::string renamed = "r" + std::to_string(name);
    for (const std::string change : {"DEL w", "ZREM w a", "SADD act a", "ZADD w 5 c"}) {
      for (const bool in_script : {false, true}) {
        q.say("FLUSHALL");
        q.say("ZADD w 1 a 2 b");
        q.say("Q.ADOPT q PENDING w ACTIVE act LEASE 1000");
        if (in_script) {
          std::string script;
          for (const std::string& line : {change, "RENAME q " + renamed}) {
            script += "redis.call(";
            for (const std::string& word : QueueTalk::words(line)) script += "'" + word + "',";
            script.back() = ')';
            script += " ";
          }
          q.run(0, {"EVAL", script, "0"});
        } else {
          q.say("MULTI");
          q.say(change);
          q.say("RENAME q " + renamed);
          q.say("EXEC");
        }
        q.pass(1000);
        q.say("DEL w");
        CHECK(q.say("TYPE " + renamed) == "queue");
      }
    }
    q.say("FLUSHALL");
    q.say("ZADD w 1 a");
    q.say("Q.ADOPT q" + renamed + " PENDING w ACTIVE act");
    CHECK(q.say("RENAME q" + renamed + " w") == "OK");
    q.pass(1000);
    CHECK(q.say("TYPE w") == "queue");
  }
}

TEST_CASE("a queue outlives the unit that deletes it") {
  Users q;
  const std::vector<std::string> ends = {
      "DEL q",        "UNLINK q",           "EXPIRE q -1",       "SET q x",
      "RENAME src q", "COPY src q REPLACE", "SUNIONSTORE q src", "SORT src ALPHA STORE q",
      "FLUSHDB",      "FLUSHALL",           "RENAME q r",        "MOVE q 1",
      "SWAPDB 0 1",   "RENAME q act",       "RENAME act q",      "RENAME q q"};
  const std::vector<std::string> verbs = {"Q.CANCEL q a",
                                          "Q.CANCEL q WHERE PRI 2",
                                          "Q.MOVE q a FRONT",
                                          "Q.GET q a WITH payload",
                                          "Q.LIST q WITH payload",
                                          "Q.STATS q",
                                          "Q.ADOPT q OFF",
                                          "Q.ADD q j x",
                                          "Q.ADOPT q PENDING pend ACTIVE act PAYLOAD ev:"};
  for (const std::string& end : ends) {
    for (const bool in_script : {false, true}) {
      q.say("FLUSHALL");
      q.say("SADD src a b");
      q.say("ZADD pend 1 a 2 b");
      q.say("SADD act c d");
      q.say("Q.ADOPT q PENDING pend ACTIVE act PAYLOAD ev: LEASE 100");
      // Something to settle, the end, what happens then, and again.
      std::vector<std::string> lines = {"ZADD pend 3 e", "SREM act c", end, "ZREM pend a"};
      lines.insert(lines.end(), verbs.begin(), verbs.end());
      lines.insert(lines.end(), {end, "DEL pend", "SADD act e"});
      if (in_script) {
        std::string script;
        for (const std::string& line : lines) {
          script += "redis.pcall(";
          for (const std::string& word : QueueTalk::words(line)) script += "'" + word + "',";
          script.back() = ')';
          script += " ";
        }
        q.run(0, {"EVAL", script, "0"});
      } else {
        q.say("MULTI");
        for (const std::string& line : lines) q.say(line);
        q.say("EXEC");
      }
      q.pass(100);
      q.pass(100);
      const std::vector<std::string> queues = {"q", "r"};
      const std::vector<std::string> ids = {"a", "b", "c", "e"};
      CHECK_MESSAGE(q.describe_replayed(q.units(), queues, ids) == q.describe(queues, ids), end);
    }
  }
}

TEST_CASE("a queue that has moved to where another one shows its keys shows nothing any longer") {
  QueueTalk q;
  for (const char* line :
       {"Q.ADOPT q PENDING p ACTIVE a", "SELECT 1", "Q.ADOPT other PENDING p ACTIVE a",
        "ZADD p 1 x", "SELECT 0", "MULTI", "MOVE q 1", "SELECT 1"}) {
    q.say(line);
  }
  q.say("Q.CANCEL q x");
  q.say("Q.MOVE q x FRONT");
  q.say("Q.CANCEL q WHERE PRI 2");
  const std::string done = q.say("EXEC");
  CHECK(done == "[1 OK gone null [0 0]]");
  CHECK(q.say("ZCARD p") == "1");
}

TEST_CASE("what was noted of a queue's keys before it moved there, or adopted others") {
  for (const char* end : {"MOVE q 1", "Q.ADOPT q PENDING p2 PENDING p3 ACTIVE a2", "Q.ADOPT q OFF",
                          "Q.ADOPT q PENDING p2 ACTIVE a"}) {
    QueueTalk q;
    for (const char* line :
         {"SELECT 1", "Q.ADOPT other PENDING p ACTIVE a", "SELECT 0",
          "Q.ADOPT q PENDING p0 PENDING p ACTIVE a LEASE 100", "ZADD p 1 x 2 y", "SADD a z w",
          "MULTI", "ZREM p x", "SREM a z", end, "DEL p", "SET p text", "DEL a", "SET a text"}) {
      q.say(line);
    }
    CHECK_MESSAGE(q.say("EXEC").find("[1 1 ") == 0, end);
    q.pass(100);
    q.say("SELECT 1");
    CHECK(q.say("Q.STATS other", "pending") == "0");
    CHECK(q.describe_replayed(q.units(), {"q", "other"}, {"x", "y", "z", "w"}) ==
          q.describe({"q", "other"}, {"x", "y", "z", "w"}));
  }
}

// --- Lines of the log ---

TEST_CASE("a name in the log is quoted, and there is one line of a kind a minute") {
  Users q;
  const std::string forged = "ok:act\n1:M 01 Jan 2026 00:00:00.000 * Ready";
  q.run(0, {"Q.ADOPT", "ok:q", "PENDING", "ok:w", "ACTIVE", forged});
  for (int i = 0; i < 10; ++i) {
    q.run(0, {"RPUSH", forged, "x"});
    q.run(0, {"DEL", forged});
    q.say("ZADD ok:w 1 a");
    q.say("DEL ok:w");
  }
  REQUIRE(q.warnings().size() == 2);
  CHECK(q.warnings()[0].find("\"ok:act\\x0a1:M 01 Jan") != std::string::npos);
  for (const std::string& line : q.warnings()) CHECK(line.find('\n') == std::string::npos);
  CHECK(q.ask("Q.STATS ok:q").field("adopted").find("warnings=[]") != std::string::npos);
  q.pass(60'000);
  q.say("ZADD ok:w 1 a");
  q.say("DEL ok:w");
  REQUIRE(q.warnings().size() == 3);
  CHECK(q.warnings()[2].find(" (9 others since the last such line)") != std::string::npos);
  for (int i = 0; i < 10; ++i) {
    q.say("Q.ADOPT ok:q PENDING ok:w ACTIVE ok:act");
    q.say("DEL ok:q");
  }
  CHECK(q.warnings().size() == 4);
}

}  // namespace

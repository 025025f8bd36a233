// The greatest accepted times, durations and other values: all of them can be recorded, recovered
// and copied.
#include <string>
#include <vector>

#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace {

using sluice::test::QueueTalk;
using sluice::test::RespValue;

using Words = std::vector<std::string>;

const std::string kMost = "3162240000000";       // 100 years
const std::string kLatest = "9007199254740991";  // 2^53 - 1

void check_kept(QueueTalk& q, const Words& queues, const Words& ids) {
  for (const std::string& name : queues) q.find_queue(name)->check();
  const Words live = q.describe(queues, ids);
  CHECK(q.describe_replayed(q.units(), queues, ids) == live);
  CHECK(q.describe_walked(queues, ids) == live);
}

TEST_CASE("with every duration and time at its greatest a queue is recovered and copied") {
  QueueTalk q;
  const std::string count = "1125899906842624";  // 2^50
  const std::string kept = count + ":" + kMost + ":" + count;
  const auto set = [&](const std::string& fields) {
    CHECK_MESSAGE(q.say("Q.CONFIG q " + fields) == "OK", fields);
  };
  set("SET ttl_ms " + kMost + " aging_ms " + kMost + " max_run_ms " + kMost);
  set("SET disconnect_grace_ms " + kMost + " backoff " + kMost + ":" + kMost);
  set("SET lease_ms 604800000 retry 10000 crash_limit 10000 fair on");
  set("SET retain_completed " + kept + " retain_failed " + kept);
  set("SET events " + count + ":" + kMost);
  set("SET adaptive 1000:" + count + ":" + kMost + ":" + kMost + ":" + count);
  set("GROUP g SET ttl_ms " + kMost + " weight 0.000001 max_active " + count);
  set("KEY k SET rate 1/604800000:1000000");

  const std::string all = " TTL " + kMost + " MAXRUN " + kMost + " BACKOFF " + kMost + " " + kMost +
                          " LEASE 604800000 RETRY 65535 MAXWAIT " + kMost + " GROUP g KEY k";
  const auto add = [&](const std::string& id, const std::string& options) {
    const RespValue reply = q.ask("Q.ADD q " + id + " x" + options);
    CHECK_MESSAGE(reply.find("result") != nullptr, (options + reply.show()));
  };
  add("failed", all);
  add("retried", all);
  add("run", all + " BOOST " + kMost);
  CHECK(q.pop("COUNT 3 WORKER w TIED LEASE 604800000") == "run failed retried");
  CHECK(q.nack("failed", "FATAL").find("failed") != std::string::npos);
  CHECK(q.nack("retried", "DELAY " + kMost).find("delayed") != std::string::npos);
  add("run", all + " IFDUP REPLACE AT " + kLatest + " BOOST -" + kMost);
  add("spent", all);
  CHECK(q.pop() == "spent");
  q.pass(5);
  CHECK(q.nack("spent", "SILENT").find("pending") != std::string::npos);
  add("pending", all + " BOOST " + kMost);
  add("behind", all + " BOOST -" + kMost);
  add("delayed", all + " DELAY " + kMost + " BOOST -" + kMost);
  add("late", all + " AT " + kLatest + " BOOST -" + kMost);
  add("moved", all);
  add("moved-late", all);
  add("blocked", all + " NEED late AT " + kLatest);
  q.say("Q.MOVE q moved DELAY " + kMost + " BOOST -" + kMost);
  q.say("Q.MOVE q moved-late AT " + kLatest + " BOOST " + kMost);
  CHECK(q.say("Q.CANCEL q run GRACE " + kMost) == "signalled");

  const Words ids{"failed",  "retried", "run",   "spent",      "pending", "behind",
                  "delayed", "late",    "moved", "moved-late", "blocked"};
  CHECK(q.say("COPY q copy") == "1");
  check_kept(q, {"q", "copy"}, ids);
  Words before;
  for (const std::string& id : ids)
    before.push_back(q.job(id, {"state", "ttl_left_ms", "not_before"}));
  q.restart(4);
  for (size_t i = 0; i < ids.size(); ++i) {
    CHECK(q.job(ids[i], {"state", "ttl_left_ms", "not_before"}) == before[i]);
  }
  CHECK(q.say("COPY q again") == "1");
  check_kept(q, {"q", "copy", "again"}, ids);
}

TEST_CASE("a job has at most 16 tags, of which the last value counts; a pop has 64 keys") {
  QueueTalk q;
  std::string tags;
  for (int i = 0; i < 16; ++i) tags += " TAG t" + std::to_string(i) + " first";
  CHECK(q.say("Q.ADD q a x" + tags + " TAG more x") == "-BADFIELD field=tag");
  CHECK(q.say("Q.ADD q a x" + tags + " TAG t3 last", "result") == "added");
  CHECK(q.ask("Q.LIST q WHERE TAG t3 last").items.at(1).size() == 1);
  CHECK(q.ask("Q.LIST q WHERE TAG t4 first").items.at(1).size() == 1);
  std::string keys;
  for (int i = 0; i < 64; ++i) keys += " MATCH k" + std::to_string(i);
  CHECK(q.pop(keys + " MATCH more") == "-BADFIELD field=match");
  CHECK(q.pop(keys) == "null");
}

TEST_CASE("a page is as long as the smaller one of COUNT and LIMIT") {
  QueueTalk q;
  q.add("a b c");
  CHECK(q.ask("Q.LIST q COUNT 3 WHERE STATE pending LIMIT 2").items.at(1).size() == 2);
  CHECK(q.ask("Q.LIST q COUNT 1 WHERE STATE pending LIMIT 2").items.at(1).size() == 1);
}

TEST_CASE("a hint of an error has the first 64 bytes of a value") {
  QueueTalk q;
  const std::string id(100, 'x');
  CHECK(q.say("Q.ADD q a x NEED " + id) == "-NOJOB id=" + id.substr(0, 64));
}

TEST_CASE("a job costs up to a million slots") {
  QueueTalk q;
  CHECK(q.say("Q.ADD q a x COST 1000001") == "-BADFIELD field=cost");
  CHECK(q.say("Q.ADD q a x COST 1000000", "result") == "added");
  q.restart(4);
  CHECK(q.job("a", {"cost"}) == "1000000");
}

TEST_CASE("an error and a reason are cut at 4096 bytes") {
  QueueTalk q;
  const std::string text(5000, 'x');
  q.add("failed lost cancelled selected");
  CHECK(q.pop() == "failed");
  q.nack("failed", "FATAL ERROR " + text);
  CHECK(q.pop("WORKER w") == "lost");
  CHECK(q.say("Q.NACK q WHERE WORKER w FAIL ERROR " + text) == "[0 1]");
  CHECK(q.say("Q.CANCEL q cancelled REASON " + text) == "cancelled");
  CHECK(q.say("Q.CANCEL q WHERE IDPART selected REASON " + text) == "[0 1]");
  for (const char* id : {"failed", "lost", "cancelled", "selected"}) {
    CHECK_MESSAGE(q.job(id, {"error"}) == text.substr(0, 4096), id);
  }
}

TEST_CASE("a longer duration is refused, a time is not") {
  QueueTalk q;
  const std::string more = "3162240000001";
  q.add("a");
  for (const std::string option : {"DELAY", "TTL", "MAXRUN", "MAXWAIT", "BOOST"}) {
    const std::string line = "Q.ADD q b x " + option + " ";
    CHECK_MESSAGE(q.say(line + more).rfind("-BADFIELD field=", 0) == 0, option);
    CHECK_MESSAGE(q.say(line + kLatest).rfind("-BADFIELD field=", 0) == 0, option);
  }
  CHECK(q.say("Q.ADD q b x BOOST -" + more) == "-BADFIELD field=boost");
  CHECK(q.say("Q.ADD q b x BACKOFF 0 " + more) == "-BADFIELD field=backoff");
  CHECK(q.say("Q.MOVE q a DELAY " + more) == "-BADFIELD field=delay");
  CHECK(q.say("Q.MOVE q a BOOST " + more) == "-BADFIELD field=boost");
  CHECK(q.say("Q.CANCEL q a GRACE " + more) == "-BADFIELD field=grace");
  CHECK(q.say("Q.LIST q WHERE OLDER " + more) == "-BADFIELD field=older");
  CHECK(q.pop() == "a");
  CHECK(q.nack("a", "DELAY " + more) == "-BADFIELD field=delay");
  CHECK(q.say("Q.CONFIG q SET ttl_ms " + more) == "-BADFIELD field=ttl_ms");
  CHECK(q.say_as(1, "Q.POP 1 q BLOCK " + kLatest) == "(waits)");
  CHECK(q.say_as(2, "Q.GET q a WAIT " + kLatest) == "(waits)");
  CHECK(q.say_as(3, "Q.EVENTS q $ BLOCK " + kLatest) == "(waits)");
  CHECK(q.say("Q.ADD q late x AT " + kLatest, "state") == "delayed");
  CHECK(q.say("Q.ADD q late x AT 9007199254740992") == "-BADFIELD field=at");
}

}  // namespace

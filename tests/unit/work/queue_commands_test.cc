// Q.ADD, Q.POP and dispatch order: each option, each error, each rule of the contract.
#include <set>
#include <string>

#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace {

using sluice::test::QueueTalk;
using sluice::test::RespValue;

// --- Q.ADD ---

TEST_CASE("Q.ADD answers with id, result, state, position and eta") {
  QueueTalk q;
  CHECK(q.say("Q.ADD q a payload") == "{id=a result=added state=pending position=0 eta_ms=null}");
  CHECK(q.say("Q.ADD q b payload DELAY 100") ==
        "{id=b result=added state=delayed position=null eta_ms=null}");
  CHECK(q.say("Q.ADD q c payload NEED a", "state") == "blocked");
  CHECK(q.say("Q.ADD q d payload PRI HIGH", "position") == "0");
}

TEST_CASE("the id * is made of queue time and a number, and is new each time") {
  QueueTalk q;
  const std::string first = q.say("Q.ADD q * x", "id");
  CHECK(first.rfind("1700000000000-", 0) == 0);
  CHECK(q.say("Q.ADD q * x", "id") != first);
  CHECK(q.state(first) == "pending");
}

TEST_CASE("the id * is none that a caller has used, whatever its form") {
  QueueTalk q;
  const std::string made = q.say("Q.ADD q * x", "id");
  const std::string prefix = made.substr(0, made.find('-') + 1);
  for (int i = 2; i < 6; ++i) q.add(prefix + std::to_string(i + 4));
  for (int i = 0; i < 6; ++i) CHECK(q.say("Q.ADD q * x", "result") == "added");
  CHECK(q.stat("pending") == "11");
  q.find_queue("q")->check();
  const std::vector<std::string> ids = QueueTalk::words(q.pop("COUNT 20"));
  CHECK(std::set(ids.begin(), ids.end()).size() == 11);
}

TEST_CASE("ids are 1 to 512 bytes and none of the reserved words") {
  QueueTalk q;
  CHECK(q.say("Q.ADD q " + std::string(512, 'i') + " x", "result") == "added");
  q.say("Q.ADD q a x");
  for (const std::string& id :
       {std::string("''"), std::string(513, 'i'), std::string("WHERE"), std::string("where"),
        std::string("wHeRe"), std::string("ALL"), std::string("all"), std::string("aLL")}) {
    for (const std::string& line :
         {"Q.ADD q " + id + " x", "Q.GET q " + id, "Q.GET q " + id + " WAIT 0",
          "Q.ACK q " + id + " 1", "Q.NACK q " + id + " 1", "Q.TOUCH q " + id + " 1",
          "Q.MOVE q " + id + " FRONT", "Q.GET missing " + id}) {
      CHECK_MESSAGE(q.say(line) == "-BADFIELD field=id", line);
    }
    CHECK(q.say("Q.EVENTS q - ID " + id) == "-BADFIELD field=id");
    CHECK(q.say("Q.POP 1 q ID " + id) == "-BADFIELD field=id");
    CHECK(q.say("Q.ADD q b x NEED " + id) == "-BADFIELD field=need");
    // Without a criterion WHERE selects nothing.
    for (const char* command : {"Q.CANCEL q ", "Q.RETRY q "}) {
      const bool selects = sluice::equals_ignore_case(id, "WHERE");
      const std::string error = selects ? "-ERR syntax error, WHERE takes" : "-BADFIELD field=id";
      CHECK_MESSAGE(q.say(command + id).rfind(error, 0) == 0, command << id);
    }
  }
  for (const char* line : {"Q.GET q *", "Q.CANCEL q *", "Q.RETRY q *", "Q.MOVE q * FRONT",
                           "Q.ACK q * 1", "Q.EVENTS q - ID *", "Q.POP 1 q ID *"}) {
    CHECK_MESSAGE(q.say(line) == "-BADFIELD field=id", line);
  }
  CHECK(q.stat("pending") == "2");
  // Words that only begin or end like one of them are ids.
  for (const char* id : {"**", "WHERE1", "ALLOW", "AL", " ALL"}) {
    CHECK(q.run(0, {"Q.ADD", "q", id, "x"})->field("result") == "added");
  }
}

TEST_CASE("a job whose id was not reserved yet when it was added is found under it") {
  QueueTalk q;
  for (const char* id : {"All", "aLl", "alL"}) {
    q.say("Q.ADD q x" + std::string(id).substr(1) + " payload TAG t v");
  }
  q.rewrite_journal("xll", "All");
  q.rewrite_journal("xLl", "aLl");
  q.rewrite_journal("xlL", "alL");
  q.restart(4);
  CHECK(q.say("Q.ADD q All x") == "-BADFIELD field=id");
  CHECK(q.say("Q.GET q All", "state") == "pending");
  CHECK(q.say("Q.GET q ALL") == "-BADFIELD field=id");
  CHECK(q.say("Q.MOVE q alL FRONT") == "0");
  CHECK(q.say("Q.CANCEL q aLl") == "cancelled");
  CHECK(q.say("Q.RETRY q aLl") == "pending");
  CHECK(q.say("Q.EVENTS q - ID aLl").find("cancelled aLl") != std::string::npos);
  CHECK(q.pop() == "alL");
  CHECK(q.touch("alL").rfind("{left_ms=", 0) == 0);
  // Clients that wait for its end are notified, although the job no longer exists then.
  q.say("Q.CONFIG q SET retain_completed 0");
  CHECK(q.say_as(1, "Q.GET q alL WAIT 0") == "(waits)");
  CHECK(q.say_as(2, "Q.GET q All WAIT 0") == "(waits)");
  CHECK(q.ack("alL") == "OK");
  CHECK(q.take_deliveries().count(1) == 1);
  CHECK(q.say("Q.GET q alL") == "-BADFIELD field=id");
  q.say("DEL q");
  CHECK(q.take_deliveries().at(2).is_null());
}

TEST_CASE("a refused Q.ADD leaves no queue behind") {
  QueueTalk q;
  CHECK(q.say("Q.ADD q a x NEED nobody") == "-NOJOB id=nobody");
  CHECK(q.say("Q.ADD q a x PRI 999") == "-BADFIELD field=pri");
  CHECK(q.say("EXISTS q") == "0");
}

TEST_CASE("unknown words and missing values are syntax errors, bad values BADFIELD") {
  QueueTalk q;
  CHECK(q.say("Q.ADD q a x NOSUCH") == "-ERR syntax error");
  CHECK(q.say("Q.ADD q a x PRI") == "-ERR syntax error");
  CHECK(q.say("Q.ADD q a x DELAY 1 AT 2") == "-ERR syntax error");
  const std::vector<std::pair<const char*, const char*>> bad = {
      {"PRI nosuch", "pri"},
      {"PRI -1", "pri"},
      {"PRI 256", "pri"},
      {"DELAY -1", "delay"},
      {"DELAY x", "delay"},
      {"COST 0", "cost"},
      {"TTL -1", "ttl"},
      {"LEASE 99", "lease"},
      {"LEASE 604800001", "lease"},
      {"RETRY -1", "retry"},
      {"MAXRUN x", "maxrun"},
      {"BACKOFF x 1", "backoff"},
      {"IFDUP NO", "ifdup"},
      {"MAXWAIT x", "maxwait"},
      {"BOOST x", "boost"},
      {"KEY a KEY b KEY c KEY d KEY e", "key"}};
  for (const auto& [options, field] : bad) {
    CHECK_MESSAGE(
        q.say(std::string("Q.ADD q a x ") + options) == std::string("-BADFIELD field=") + field,
        options);
  }
  CHECK(q.say("EXISTS q") == "0");
}

TEST_CASE("a raw command on a queue answers WRONGTYPE, a queue command on another type too") {
  QueueTalk q;
  q.add("a");
  CHECK(q.say("TYPE q") == "queue");
  CHECK(q.say("GET q").rfind("-WRONGTYPE", 0) == 0);
  CHECK(q.say("LPUSH q x").rfind("-WRONGTYPE", 0) == 0);
  q.say("SET s x");
  for (const char* line :
       {"Q.ADD s a x", "Q.POP 1 s", "Q.ACK s a 1", "Q.NACK s a 1", "Q.TOUCH s a 1", "Q.CANCEL s a",
        "Q.MOVE s a FRONT", "Q.RETRY s a", "Q.PURGE s WHERE ALL", "Q.GET s a", "Q.LIST s",
        "Q.STATS s", "Q.EVENTS s -", "Q.CONFIG s GET", "Q.CONFIG s SET retry 1"}) {
    CHECK_MESSAGE(q.say(line).rfind("-WRONGTYPE", 0) == 0, line);
  }
}

TEST_CASE("a missing queue reads as an empty one") {
  QueueTalk q;
  CHECK(q.pop() == "null");
  CHECK(q.say("Q.GET q a") == "null");
  CHECK(q.say("Q.LIST q") == "[0 []]");
  CHECK(q.say("Q.CANCEL q a") == "gone");
  CHECK(q.say("Q.MOVE q a FRONT") == "null");
  CHECK(q.say("Q.ACK q a 1") == "-NOJOB id=a");
  CHECK(q.stat("pending") == "0");
  CHECK(q.say("Q.CONFIG q GET lease_ms") == "{lease_ms=30000}");
  CHECK(q.say("EXISTS q") == "0");
}

TEST_CASE("a queue is never ended by being empty") {
  QueueTalk q;
  q.say("Q.CONFIG q SET retain_completed 0");
  q.add("a");
  q.pop();
  q.ack("a");
  CHECK(q.say("Q.LIST q") == "[0 []]");
  CHECK(q.say("EXISTS q") == "1");
  CHECK(q.stat("completed") == "1");
}

TEST_CASE("TOOBIG comes before everything but syntax, at the limit it fits") {
  QueueTalk q;
  q.say("Q.CONFIG q SET max_payload 3 paused in");
  CHECK(q.say("Q.ADD q a 1234") == "-TOOBIG limit=3");
  CHECK(q.say("Q.ADD q a 123") == "-PAUSED direction=in");
}

TEST_CASE("the order of refusals: existing id, PAUSED, QFULL, GROUPFULL") {
  QueueTalk q;
  q.say("Q.CONFIG q SET max_waiting 1");
  q.say("Q.CONFIG q GROUP g SET max_waiting 1");
  q.add("a", "GROUP g");
  q.say("Q.CONFIG q SET paused in");
  CHECK(q.say("Q.ADD q a x") == "-DUPLICATE id=a state=pending");
  CHECK(q.say("Q.ADD q b x GROUP g") == "-PAUSED direction=in");
  q.say("Q.CONFIG q SET paused none");
  CHECK(q.say("Q.ADD q b x GROUP g").rfind("-QFULL pending=1 max=1 retry_after_ms=", 0) == 0);
  q.say("Q.CONFIG q SET max_waiting 0");
  CHECK(q.say("Q.ADD q b x GROUP g") == "-GROUPFULL group=g limit=max_waiting value=1");
  CHECK(q.say("Q.ADD q b x GROUP h", "result") == "added");
}

TEST_CASE("max_total counts running jobs, max_waiting does not; successors wait") {
  QueueTalk q;
  q.say("Q.CONFIG q SET max_waiting 1");
  q.add("a");
  q.pop();
  CHECK(q.say("Q.ADD q b x", "result") == "added");
  CHECK(q.say("Q.ADD q c x").rfind("-QFULL", 0) == 0);
  q.say("Q.CONFIG q SET max_waiting 0 max_total 2");
  CHECK(q.say("Q.ADD q c x").rfind("-QFULL pending=1 max=2", 0) == 0);
  // An update is not subject to limits.
  CHECK(q.say("Q.ADD q a x IFDUP UPDATE", "result") == "queued");
  q.say("Q.CONFIG q SET max_total 0 max_waiting 2");
  CHECK(q.say("Q.ADD q c x").rfind("-QFULL pending=2", 0) == 0);
}

TEST_CASE("MAXWAIT refuses a job that would wait longer") {
  QueueTalk q;
  q.say("Q.CONFIG q SET max_active 1");
  for (int i = 0; i < 10; ++i) {
    q.add("a");
    q.pop();
    q.pass(100);
    q.ack("a");
    q.say("Q.PURGE q WHERE ALL");
  }
  q.add("b c d");
  const std::string error = q.say("Q.ADD q e x MAXWAIT 399");
  CHECK(error == "-TOOLATE eta_ms=400 maxwait_ms=399");
  CHECK(q.say("Q.ADD q e x MAXWAIT 400", "eta_ms") == "400");
}

TEST_CASE("MAXWAIT goes by the place that a newcomer to a LIFO lane takes") {
  QueueTalk q;
  q.say("Q.CONFIG q SET max_active 1");
  q.say("Q.CONFIG q GROUP g SET order lifo");
  for (int i = 0; i < 10; ++i) {
    q.add("a");
    q.pop();
    q.pass(100);
    q.ack("a");
    q.say("Q.PURGE q WHERE ALL");
  }
  q.add("b");
  q.add("c d", "GROUP g");
  q.add("e");
  CHECK(q.say("Q.ADD q f x GROUP g MAXWAIT 199") == "-TOOLATE eta_ms=200 maxwait_ms=199");
  CHECK(q.say("Q.ADD q f x GROUP g KEY k MAXWAIT 499") == "-TOOLATE eta_ms=500 maxwait_ms=499");
  CHECK(q.say("Q.ADD q f x GROUP g BOOST 60000 MAXWAIT 99").rfind("-TOOLATE eta_ms=100 ", 0) == 0);
  CHECK(q.say("Q.ADD q f x GROUP g MAXWAIT 200", "eta_ms") == "200");
}

TEST_CASE("a full queue displaces the last job of the least urgent band below the newcomer's") {
  QueueTalk q;
  q.say("Q.CONFIG q SET max_waiting 3 full displace");
  q.add("n", "PRI NORMAL");
  q.add("l1 l2", "PRI LOW");
  CHECK(q.say("Q.ADD q x x PRI LOW").rfind("-QFULL", 0) == 0);
  CHECK(q.say("Q.ADD q h x PRI HIGH", "result") == "added");
  CHECK(q.state("l2") == "cancelled");
  CHECK(q.stat("pending") == "3");
}

// --- IFDUP ---

TEST_CASE("a run that completes meets the needs of its id, also where a successor follows") {
  QueueTalk q;
  q.add("a other");
  q.add("b", "NEED a");
  q.add("c", "NEED a NEED other");
  REQUIRE(q.pop() == "a");
  REQUIRE(q.say("Q.ADD q a again IFDUP UPDATE", "result").rfind("-", 0) != 0);
  q.ack("a");
  CHECK(q.state("a") == "pending");
  CHECK(q.state("b") == "pending");
  CHECK(q.state("c") == "blocked");
  // A run that fails has no effect while the successor waits.
  REQUIRE(q.pop("ID a") == "a");
  q.add("d", "NEED a");
  q.say("Q.ADD q a third IFDUP UPDATE");
  q.nack("a", "FATAL");
  CHECK(q.state("a") == "pending");
  CHECK(q.state("d") == "blocked");
}

TEST_CASE("IFDUP for a waiting job: error, kept, updated in place, replaced") {
  QueueTalk q;
  q.add("a b c");
  CHECK(q.say("Q.ADD q a x") == "-DUPLICATE id=a state=pending");
  CHECK(q.say("Q.ADD q a x IFDUP KEEP", "result") == "kept");
  CHECK(q.job("a", {"payload"}) == "p-a");
  CHECK(q.say("Q.ADD q a new IFDUP UPDATE TTL 5000") ==
        "{id=a result=updated state=pending position=0 eta_ms=null}");
  CHECK(q.job("a", {"payload", "ttl_left_ms"}) == "new 5000");
  CHECK(q.say("Q.ADD q a newer IFDUP REPLACE") ==
        "{id=a result=replaced state=pending position=2 eta_ms=null}");
  CHECK(q.stat("cancelled") == "1");
  CHECK(q.drain() == "b c a");
}

TEST_CASE("a replacement of another group meets the limits of that group, and no others") {
  QueueTalk q;
  q.say("Q.CONFIG q SET max_waiting 3 paused in");
  q.say("Q.CONFIG q GROUP waiting SET max_waiting 1");
  q.say("Q.CONFIG q GROUP total SET max_total 1");
  q.say("Q.CONFIG q GROUP paused SET paused in");
  q.say("Q.CONFIG q SET paused none");
  q.add("t", "GROUP total");
  q.pop();
  q.add("w", "GROUP waiting");
  q.add("a b");
  q.say("Q.CONFIG q SET paused in");
  const std::string replace = "Q.ADD q a new IFDUP REPLACE GROUP ";
  CHECK(q.say(replace + "waiting") == "-GROUPFULL group=waiting limit=max_waiting value=1");
  CHECK(q.say(replace + "total") == "-GROUPFULL group=total limit=max_total value=1");
  CHECK(q.say(replace + "paused") == "-PAUSED direction=in");
  CHECK(q.job("a", {"state", "payload", "group"}) == "pending p-a ");
  CHECK(q.say("Q.STATS q", "rejected").find("group_full=2") != std::string::npos);
  // Its own group contains it already.
  CHECK(q.say("Q.ADD q w new IFDUP REPLACE GROUP waiting", "result") == "replaced");
  CHECK(q.say(replace + "free", "result") == "replaced");
}

TEST_CASE("an update that differs in what it may not change is refused and changes nothing") {
  QueueTalk q;
  q.add("n");
  q.add("a", "GROUP g KEY k COST 2 BOOST 5 NEED n");
  for (const char* options : {"GROUP h", "KEY l", "COST 3", "BOOST 6", "NEED a", "DELAY 5"}) {
    CHECK_MESSAGE(
        q.say(std::string("Q.ADD q a x IFDUP UPDATE ") + options).rfind("-BADFIELD", 0) == 0,
        options);
  }
  CHECK(q.say("Q.ADD q a x IFDUP UPDATE GROUP g KEY k COST 2 BOOST 5 NEED n", "result") ==
        "updated");
}

TEST_CASE("an update changes the options that it names, and no others") {
  QueueTalk q;
  q.add("a", "LEASE 1000 MAXRUN 2000 RETRY 1 TTL 9000");
  q.pass(4000);
  const auto options = [&] {
    return q.job("a", {"lease_ms", "max_run_ms", "retries_left", "ttl_left_ms"});
  };
  q.say("Q.ADD q a x IFDUP UPDATE LEASE 3000");
  CHECK(options() == "3000 2000 1 5000");
  q.say("Q.ADD q a x IFDUP UPDATE MAXRUN 4000 RETRY 5 TTL 9000");
  CHECK(options() == "3000 4000 5 9000");
  q.say("Q.ADD q a x IFDUP UPDATE BACKOFF 60000 60000");
  q.pop();
  q.nack("a");
  CHECK(q.state("a") == "delayed");
}

TEST_CASE("a successor waits under an active id, the last one wins, and begins at attempt 1") {
  QueueTalk q;
  q.say("Q.CONFIG q SET retry 3");
  q.add("a");
  q.pop();
  CHECK(q.say("Q.ADD q a two IFDUP UPDATE") ==
        "{id=a result=queued state=active position=null eta_ms=null}");
  q.say("Q.ADD q a three IFDUP UPDATE");
  CHECK(q.job("a", {"state", "successor", "payload"}) == "active t p-a");
  CHECK(q.say("Q.CONFIG q SET max_waiting 1") == "OK");
  CHECK(q.say("Q.ADD q b x").rfind("-QFULL pending=1", 0) == 0);
  CHECK(q.ack("a") == "OK");
  CHECK(q.job("a", {"state", "payload", "attempts"}) == "pending three 0");
  CHECK(q.say("Q.POP 1 q").find("attempt=1") != std::string::npos);
  CHECK(q.stat("completed") == "1");
}

TEST_CASE("a successor also takes over from a failed, lost or given back run") {
  for (const char* end : {"FAIL", "FATAL", "SILENT"}) {
    QueueTalk q;
    q.say("Q.CONFIG q SET retry 1 backoff 60000:60000");
    q.add("a");
    q.pop();
    q.say("Q.ADD q a two IFDUP UPDATE");
    q.nack("a", end);
    CHECK_MESSAGE(q.job("a", {"state", "payload", "attempts"}) == "pending two 0", end);
  }
  QueueTalk q;
  q.add("a", "LEASE 100");
  q.pop();
  q.say("Q.ADD q a two IFDUP UPDATE");
  q.pass(100);
  CHECK(q.job("a", {"state", "payload", "attempts", "crashes"}) == "pending two 0 0");
}

TEST_CASE("REPLACE of an active job signals its holder; CANCEL takes job and successor") {
  QueueTalk q;
  q.add("a");
  q.pop();
  CHECK(q.say("Q.ADD q a two IFDUP REPLACE", "result") == "queued");
  CHECK(q.touch("a").find("cancel=null") == std::string::npos);
  CHECK(q.say("Q.CANCEL q a GRACE 0") == "cancelled");
  CHECK(q.job("a", {"state", "successor"}) == "cancelled f");
  CHECK(q.pop() == "null");
}

TEST_CASE("IFDUP for a terminal, retained job: UPDATE and REPLACE make a new one") {
  QueueTalk q;
  q.add("a");
  q.pop();
  q.ack("a");
  CHECK(q.say("Q.ADD q a x") == "-DUPLICATE id=a state=completed");
  CHECK(q.say("Q.ADD q a x IFDUP KEEP", "state") == "completed");
  CHECK(q.say("Q.ADD q a x IFDUP UPDATE", "result") == "added");
  CHECK(q.job("a", {"state", "payload", "attempts"}) == "pending x 0");
}

// --- NEED ---

// The ids of all events of this type, in order.
std::string ids_of_events(QueueTalk& q, const std::string& type) {
  std::string out;
  for (const RespValue& event : q.ask("Q.EVENTS q - COUNT 1000 TYPE " + type).items) {
    out += (out.empty() ? "" : " ") + event.items.at(3).text;
  }
  return out;
}

TEST_CASE("those that need a job go on, or end, in the order in which they came") {
  QueueTalk q;
  q.add("base other");
  q.add("a b c d", "NEED base");
  q.add("e f g", "NEED other");
  q.add("f1", "NEED f");
  // Neither an update nor a move changes the arrival.
  q.say("Q.ADD q a new IFDUP UPDATE");
  q.say("Q.MOVE q b PRI LOW");
  q.say("Q.ADD q e new IFDUP UPDATE");
  q.find_queue("q")->check();
  q.pop("ID base");
  q.ack("base");
  CHECK(ids_of_events(q, "ready") == "a b c d");
  q.say("Q.CANCEL q other");
  CHECK(ids_of_events(q, "cancelled") == "other e f f1 g");
  CHECK(q.find_queue("q")->dependents.empty());
}

TEST_CASE("fifty thousand jobs may need the same ones") {
  constexpr int kJobs = 50'000;
  QueueTalk q;
  q.say("Q.CONFIG q SET retain_completed 0 retain_failed 0 events 0");
  q.add("n1 n2 n3 n4");
  for (int i = 0; i < kJobs; ++i) {
    q.add("j" + std::to_string(i), "NEED n1 NEED n2 NEED n3 NEED n4");
  }
  const sluice::Queue& queue = *q.find_queue("q");
  CHECK(queue.dependents.size() == 4);
  CHECK(queue.dependents.at("n1").size() == kJobs);
  for (int i = 0; i < kJobs; i += 10) q.say("Q.CANCEL q j" + std::to_string(i));
  CHECK(queue.dependents.at("n4").size() == kJobs / 10 * 9);
  q.pop("COUNT 4");
  for (const char* id : {"n1", "n2"}) q.ack(id);
  CHECK(queue.dependents.size() == 2);
  CHECK(q.stat("blocked") == std::to_string(kJobs / 10 * 9));
  q.find_queue("q")->check();
  q.ack("n3");
  q.nack("n4", "FATAL");
  CHECK(queue.dependents.empty());
  q.find_queue("q")->check();
  q.run_timers();
  CHECK(q.stat("blocked") == "0");
  CHECK(q.stat("cancelled") == std::to_string(kJobs));
  q.find_queue("q")->check();
}

TEST_CASE("a job waits until all that it needs have completed") {
  QueueTalk q;
  q.add("a b");
  q.add("c", "NEED a NEED b");
  CHECK(q.stat("blocked") == "1");
  CHECK(q.pop("COUNT 9") == "a b");
  q.ack("a");
  CHECK(q.state("c") == "blocked");
  q.ack("b");
  CHECK(q.state("c") == "pending");
  CHECK(q.say("Q.ADD q d x NEED a", "state") == "pending");
}

TEST_CASE("a need that ends otherwise refuses, or cancels what waits for it, and so on") {
  QueueTalk q;
  q.add("a");
  q.add("b", "NEED a");
  q.add("c", "NEED b");
  q.say("Q.CANCEL q a");
  CHECK(q.job("b", {"state", "error"}) == "cancelled need a");
  CHECK(q.job("c", {"state", "error"}) == "cancelled need b");
  CHECK(q.say("Q.ADD q d x NEED a") == "-NEEDFAILED id=a state=cancelled");
  CHECK(q.say("Q.ADD q d x NEED nobody") == "-NOJOB id=nobody");
}

TEST_CASE("no cycle of needs can arise by replacing a job") {
  QueueTalk q;
  q.add("a", "DELAY 1000");
  q.add("b", "NEED a");
  q.add("c");
  CHECK(q.say("Q.ADD q a again IFDUP REPLACE NEED b") == "-BADFIELD field=need");
  CHECK(q.say("Q.ADD q a again IFDUP REPLACE NEED a") == "-BADFIELD field=need");
  CHECK(q.say("Q.ADD q a again IFDUP REPLACE", "state") == "pending");
  CHECK(q.state("b") == "blocked");
  CHECK(q.say("Q.ADD q c again IFDUP REPLACE NEED a", "state") == "blocked");
}

// --- Order ---

TEST_CASE("lower bands first, then the earlier release, then the earlier arrival") {
  QueueTalk q;
  q.add("l", "PRI LOW");
  q.add("n1 n2");
  q.add("c", "PRI CRITICAL");
  q.add("n0", "BOOST 1");
  q.add("n3", "BOOST -1");
  q.pass(1);
  q.add("n4");
  CHECK(q.drain() == "c n0 n1 n2 n3 n4 l");
}

TEST_CASE("order follows arrival when the wall clock goes back") {
  QueueTalk q;
  q.add("a");
  q.set_clock(q.wall_ms() - 3'600'000, q.steady_ms() + 10);
  q.add("b");
  q.set_clock(q.wall_ms() + 10, q.steady_ms() + 10);
  q.add("c");
  CHECK(q.ask("Q.GET q b").number("enqueued") == q.ask("Q.GET q a").number("enqueued") + 10);
  CHECK(q.drain() == "a b c");
}

TEST_CASE("a delayed job goes when its time has come, at the rank of its release") {
  QueueTalk q;
  q.add("d", "DELAY 100");
  q.add("at", "AT 1700000000050");
  CHECK(q.pop() == "null");
  q.pass(50);
  CHECK(q.pop() == "at");
  q.add("x");
  q.pass(49);
  CHECK(q.state("d") == "delayed");
  q.pass(1);
  q.add("y");
  CHECK(q.drain() == "x d y");
}

TEST_CASE("a boost never leaves a slot idle") {
  QueueTalk q;
  q.add("later", "BOOST -60000");
  CHECK(q.pop() == "later");
}

TEST_CASE("position counts parked jobs, and is null unless pending") {
  QueueTalk q;
  q.say("Q.CONFIG q GROUP g SET max_active 1");
  q.add("a b c", "GROUP g");
  q.add("x");
  q.pop();
  CHECK(q.job("a", {"position"}) == "null");
  CHECK(q.job("b", {"position", "why"}) == "0 group_cap 1/1");
  CHECK(q.job("x", {"position"}) == "2");
  CHECK(q.pop() == "x");
}

TEST_CASE("an old job of a lower band overtakes with aging_ms") {
  QueueTalk q;
  q.say("Q.CONFIG q SET aging_ms 100");
  q.add("low", "PRI LOW");
  q.pass(100);
  q.add("normal");
  CHECK(q.pop() == "low");
}

}  // namespace

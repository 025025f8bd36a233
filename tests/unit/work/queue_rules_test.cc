// The native queue's limits and orders: caps, costs, pauses, fairness, LIFO, moves, TTL,
// retention, and the queue as a key.
#include <string>
#include <vector>

#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace {

using sluice::test::QueueTalk;
using sluice::test::RespValue;

// --- Caps ---

TEST_CASE("caps of queue, group and key hold at once; parked lanes do not hold up others") {
  QueueTalk q;
  q.say("Q.CONFIG q SET max_active 4");
  q.say("Q.CONFIG q GROUP g SET max_active 2");
  q.say("Q.CONFIG q KEY k SET max_active 1");
  q.add("a b c d", "GROUP g");
  q.add("e f", "KEY k");
  q.add("h i");
  CHECK(q.pop("COUNT 9") == "a b e h");
  CHECK(q.job("i", {"why"}) == "queue_cap 4/4");
  q.ack("h");
  CHECK(q.pop("COUNT 9") == "i");
  q.say("Q.CONFIG q SET max_active 0");
  CHECK(q.pop() == "null");
  CHECK(q.job("c", {"why"}) == "group_cap 2/2");
  CHECK(q.job("f", {"why"}) == "key_cap k 1/1");
  q.ack("e");
  CHECK(q.pop("COUNT 9") == "f");
  q.ack("a");
  CHECK(q.pop("COUNT 9") == "c");
}

TEST_CASE("a lowered cap ends no lease, and nothing is admitted until enough are free") {
  QueueTalk q;
  q.add("a b c d e");
  q.pop("COUNT 4");
  q.say("Q.CONFIG q SET max_active 2");
  CHECK(q.stat("active") == "4");
  q.ack("a");
  q.ack("b");
  CHECK(q.pop() == "null");
  q.ack("c");
  CHECK(q.pop() == "e");
}

TEST_CASE("a glob gives every match its own limit: exact name, longest glob, later one") {
  QueueTalk q;
  q.say("Q.CONFIG q GROUP * SET max_active 1");
  q.say("Q.CONFIG q GROUP team.* SET max_active 2");
  q.say("Q.CONFIG q GROUP team.7 SET max_waiting 50");
  q.add("a1 a2", "GROUP other");
  q.add("b1 b2", "GROUP more");
  q.add("t1 t2 t3", "GROUP team.7");
  CHECK(q.pop("COUNT 9") == "a1 b1 t1 t2");
  q.say("Q.CONFIG q GROUP *.7 SET max_active 3");
  CHECK(q.pop("COUNT 9") == "null");  // two literal bytes against five
  q.say("Q.CONFIG q GROUP team.7 SET max_active 3");
  CHECK(q.pop("COUNT 9") == "t3");
  q.say("Q.CONFIG q GROUP * RESET");
  CHECK(q.pop("COUNT 9") == "a2 b2");
}

TEST_CASE("what is too large for the free slots is not passed; a cost above the cap is refused") {
  QueueTalk q;
  q.say("Q.CONFIG q SET max_active 3");
  CHECK(q.say("Q.ADD q huge x COST 4") == "-BADFIELD field=cost");
  q.add("a b");
  q.add("big", "COST 3");
  q.add("c");
  q.pop("COUNT 2");
  CHECK(q.pop() == "null");
  q.ack("a");
  CHECK(q.pop() == "null");
  q.ack("b");
  CHECK(q.pop("COUNT 9") == "big");
}

TEST_CASE("what is too large for its group or key only holds up its own lane") {
  QueueTalk q;
  q.say("Q.CONFIG q GROUP g SET max_active 3");
  q.say("Q.CONFIG q KEY k SET max_active 2");
  q.add("g1 g2", "GROUP g COST 2");
  q.add("g3", "GROUP g");
  q.add("k1", "KEY k");
  q.add("k2", "KEY k COST 2");
  q.add("k3", "KEY k");
  q.add("free");
  CHECK(q.pop("COUNT 9") == "g1 k1 free");
  q.ack("k1");
  CHECK(q.pop("COUNT 9") == "k2");
}

TEST_CASE("reserve keeps slots for jobs at least as urgent as its band") {
  QueueTalk q;
  q.say("Q.CONFIG q SET max_active 3 reserve 1:1");
  q.add("n1 n2 n3");
  CHECK(q.pop("COUNT 9") == "n1 n2");
  CHECK(q.job("n3", {"why"}) == "reserved");
  q.add("h", "PRI HIGH");
  CHECK(q.pop("COUNT 9") == "h");
}

TEST_CASE("paused: in refuses adds, out admits nothing, for a queue or a group") {
  QueueTalk q;
  q.add("a", "GROUP g");
  q.add("b");
  q.say("Q.CONFIG q GROUP g SET paused out");
  CHECK(q.pop("COUNT 9") == "b");
  CHECK(q.job("a", {"why"}) == "paused");
  CHECK(q.say("Q.ADD q c x GROUP g", "result") == "added");
  q.say("Q.CONFIG q SET paused in");
  q.say("Q.CONFIG q GROUP g SET paused none");
  CHECK(q.say("Q.ADD q d x GROUP g") == "-PAUSED direction=in");
  q.say("Q.CONFIG q SET paused all");
  CHECK(q.pop() == "null");
}

TEST_CASE("TTL is a budget of time spent pending; it is not refilled and expires without traffic") {
  QueueTalk q;
  q.add("a", "TTL 100 DELAY 50 LEASE 1000");
  q.pass(50);
  q.pass(60);
  CHECK(q.job("a", {"state", "ttl_left_ms"}) == "pending 40");
  q.pop();
  q.pass(500);
  q.nack("a", "SILENT");
  CHECK(q.job("a", {"state", "ttl_left_ms"}) == "pending 40");
  q.pass(39);
  CHECK(q.state("a") == "pending");
  q.pass(1);
  CHECK(q.state("a") == "expired");
  CHECK(q.stat("expired") == "1");
  q.say("Q.CONFIG q SET ttl_ms 100 paused out");
  q.say("Q.CONFIG q GROUP g SET ttl_ms 300");
  q.add("b");
  q.add("c", "GROUP g");
  q.add("d", "GROUP g TTL 50");
  q.pass(50);
  CHECK(q.state("d") == "expired");
  q.pass(50);
  CHECK(q.state("b") == "expired");
  q.pass(199);
  CHECK(q.state("c") == "pending");
  q.pass(1);
  CHECK(q.state("c") == "expired");
}

// --- Fairness ---

TEST_CASE("two backlogged groups share slot time by weight, whatever one has queued before") {
  QueueTalk q;
  q.say("Q.CONFIG q SET fair on max_active 1 lease_ms 100000");
  q.say("Q.CONFIG q GROUP heavy SET weight 3");
  for (int i = 0; i < 200; ++i) q.add("h" + std::to_string(i), "GROUP heavy");
  for (int i = 0; i < 200; ++i) q.add("l" + std::to_string(i), "GROUP light");
  int64_t time[2] = {0, 0};
  for (int i = 0; i < 160; ++i) {
    const std::string id = q.pop();
    const int64_t run_ms = id[0] == 'h' ? 10 : 30;
    q.pass(run_ms);
    q.ack(id);
    time[id[0] == 'h' ? 0 : 1] += run_ms;
  }
  // The difference is at most one job of maximum length of each group: 10 / 3 + 30.
  const double apart = static_cast<double>(time[0]) / 3 - static_cast<double>(time[1]);
  CHECK(apart <= 34);
  CHECK(apart >= -34);
}

TEST_CASE("a group that comes back has neither credit nor debt") {
  QueueTalk q;
  q.say("Q.CONFIG q SET fair on max_active 1");
  for (int i = 0; i < 20; ++i) q.add("a" + std::to_string(i), "GROUP a");
  for (int i = 0; i < 10; ++i) {
    const std::string id = q.pop();
    q.pass(100);
    q.ack(id);
  }
  for (int i = 0; i < 10; ++i) q.add("b" + std::to_string(i), "GROUP b");
  int of_b = 0;
  for (int i = 0; i < 10; ++i) {
    const std::string id = q.pop();
    of_b += id[0] == 'b' ? 1 : 0;
    q.pass(100);
    q.ack(id);
  }
  CHECK(of_b >= 4);
  CHECK(of_b <= 6);
}

TEST_CASE("an update or a move of a group's only job costs the group none of its share") {
  for (const std::string command : {"Q.ADD q b1 new IFDUP UPDATE", "Q.MOVE q b1 BOOST 5"}) {
    CAPTURE(command);
    QueueTalk q;
    q.say("Q.CONFIG q SET fair on");
    q.add("a1 a2 a3", "GROUP a");
    q.add("b1", "GROUP b");
    q.add("c1", "GROUP c");
    CHECK(q.pop() == "a1");
    q.pass(100);
    q.ack("a1");
    q.say(command);
    CHECK(q.pop("COUNT 2") == "b1 c1");
  }
}

TEST_CASE("bands stand above fairness, and a lone group is not slowed down") {
  QueueTalk q;
  q.say("Q.CONFIG q SET fair on");
  q.add("a1 a2 a3", "GROUP a");
  q.add("b1", "GROUP b PRI LOW");
  CHECK(q.pop("COUNT 9") == "a1 a2 a3 b1");
}

// --- LIFO and moves ---

TEST_CASE("LIFO: the group's newest job takes its earliest ticket; others keep their turn") {
  QueueTalk q;
  q.say("Q.CONFIG q SET order lifo");
  q.add("a1", "GROUP a");
  q.pass(1);
  q.add("b1", "GROUP b");
  q.pass(1);
  q.add("a2", "GROUP a");
  CHECK(q.job("a2", {"position"}) == "0");
  CHECK(q.job("a1", {"position"}) == "2");
  CHECK(q.say("Q.CANCEL q a2") == "cancelled");
  CHECK(q.job("a1", {"position"}) == "1");
  CHECK(q.drain() == "b1 a1");
}

TEST_CASE("LIFO: DELAY gates the ticket, and a newer job may take an older one's due ticket") {
  QueueTalk q;
  q.say("Q.CONFIG q SET order lifo");
  q.add("a1", "GROUP a");
  q.add("a2", "GROUP a DELAY 100");
  CHECK(q.job("a2", {"state"}) == "pending");
  CHECK(q.job("a1", {"state"}) == "delayed");
  CHECK(q.pop("COUNT 9") == "a2");
  q.pass(100);
  CHECK(q.pop("COUNT 9") == "a1");
}

TEST_CASE("order lifo:n leaves more urgent bands in order of arrival, and groups may differ") {
  QueueTalk q;
  q.say("Q.CONFIG q SET order lifo:1");
  q.say("Q.CONFIG q GROUP f SET order fifo");
  q.add("c1 c2", "GROUP a PRI 0");
  q.add("h1 h2", "GROUP a PRI 1");
  q.add("f1 f2", "GROUP f PRI 1");
  CHECK(q.drain() == "c1 c2 h2 h1 f1 f2");
}

TEST_CASE("FRONT: before everything of its band, the last moved first; caps and pause still hold") {
  QueueTalk q;
  q.add("a b c d");
  q.add("later", "DELAY 5000");
  CHECK(q.say("Q.MOVE q c FRONT") == "0");
  CHECK(q.say("Q.MOVE q later FRONT") == "0");
  q.add("boosted", "BOOST 99999999");
  CHECK(q.job("boosted", {"position"}) == "2");
  q.say("Q.CONFIG q SET paused out");
  CHECK(q.pop() == "null");
  q.say("Q.CONFIG q SET paused none");
  CHECK(q.drain() == "later c boosted a b d");
}

TEST_CASE("after FRONT in the most urgent band in use the job is next before all groups") {
  QueueTalk q;
  q.say("Q.CONFIG q SET fair on");
  q.add("a1 a2", "GROUP a");
  q.pop();
  q.pass(1000);
  q.ack("a1");
  q.add("b1", "GROUP b");
  q.say("Q.MOVE q a2 FRONT");
  CHECK(q.pop() == "a2");
}

TEST_CASE("BACK: after everything of its band at that moment, delayed and active ones included") {
  QueueTalk q;
  q.add("a b c");
  q.add("later", "DELAY 500");
  CHECK(q.say("Q.MOVE q a BACK") == "2");
  CHECK(q.say("Q.MOVE q b BACK") == "2");
  q.pass(500);
  CHECK(q.drain() == "c later a b");
}

TEST_CASE("BACK: what has left the band is not waited for") {
  QueueTalk q;
  q.add("gone", "DELAY 100000");
  q.add("behind", "BOOST -100000");
  q.add("other", "DELAY 100000 PRI 3");
  q.say("Q.MOVE q other PRI 2");
  q.say("Q.MOVE q other PRI 3");
  q.say("Q.CANCEL q gone");
  q.say("Q.CANCEL q behind");
  q.add("a b");
  q.say("Q.MOVE q a BACK");
  q.pass(1);
  q.add("c");
  CHECK(q.drain() == "b a c");
  // A running job, which may return, is still in it; so is a blocked one.
  q.add("runs", "BOOST -500");
  q.pop();
  q.add("a2");
  q.say("Q.MOVE q a2 BACK");
  q.add("base", "PRI 4");
  q.add("blocked", "NEED base DELAY 900");
  q.add("a3");
  q.say("Q.MOVE q a3 BACK");
  q.pass(1);
  q.nack("runs", "SILENT");
  q.pass(1000);
  q.say("Q.CANCEL q other");
  CHECK(q.drain() == "runs a2 a3 base blocked");
}

TEST_CASE("MOVE: the band keeps the age, BOOST replaces the boost, DELAY gates") {
  QueueTalk q;
  q.add("old", "PRI LOW");
  q.pass(10);
  q.add("a b");
  CHECK(q.say("Q.MOVE q old PRI NORMAL") == "0");
  CHECK(q.say("Q.MOVE q b BOOST 100") == "0");
  CHECK(q.say("Q.MOVE q b BOOST 0") == "2");
  CHECK(q.say("Q.MOVE q old DELAY 50") == "null");
  CHECK(q.state("old") == "delayed");
  q.pop();
  CHECK(q.say("Q.MOVE q a FRONT") == "null");
  CHECK(q.say("Q.MOVE q nobody FRONT") == "null");
  CHECK(q.say("Q.MOVE q b FRONT BACK") == "-ERR syntax error");
  CHECK(q.say("Q.MOVE q b PRI 999") == "-BADFIELD field=pri");
}

// --- Q.RETRY, Q.PURGE, retention ---

TEST_CASE("Q.RETRY makes a terminal job wait again as new") {
  QueueTalk q;
  q.add("a", "TTL 100");
  q.pop();
  q.touch("a", "PROGRESS half");
  q.nack("a", "FATAL ERROR broken");
  CHECK(q.say("Q.RETRY q a") == "pending");
  CHECK(q.job("a", {"attempts", "payload", "ttl_left_ms"}) == "0 p-a 100");
  CHECK(q.job("a", {"error", "progress"}) == "null null");
  CHECK(q.say("Q.RETRY q nobody").rfind("-NOJOB id=nobody", 0) == 0);
  q.pop();
  q.ack("a");
  CHECK(q.say("Q.RETRY q WHERE STATE completed") == "[0 1]");
  CHECK(q.state("a") == "pending");
  // The boost belongs to the job.
  q.add("b", "BOOST 5000");
  CHECK(q.pop() == "b");
  q.ack("b");
  CHECK(q.say("Q.RETRY q b") == "pending");
  CHECK(q.pop("COUNT 2") == "b a");
}

TEST_CASE("retried jobs wait behind those that wait, in the order of the retries, and no longer") {
  QueueTalk q;
  q.add("a b");
  q.drain();
  q.add("late", "DELAY 60000");
  q.say("Q.CANCEL q late");
  q.pass(1);
  q.add("c");
  q.pass(1);
  for (const char* id : {"b", "a", "late"})
    CHECK(q.say(std::string("Q.RETRY q ") + id) == "pending");
  CHECK(q.drain() == "c b a late");
}

TEST_CASE("retention keeps so many, so long, so many bytes") {
  QueueTalk q;
  q.say("Q.CONFIG q SET retain_completed 2:1000 retain_failed 1");
  q.add("a b c d e f");
  q.pop("COUNT 5");
  for (const char* id : {"a", "b", "c"}) q.ack(id);
  q.nack("d", "FATAL");
  q.nack("e", "FATAL");
  CHECK(q.state("a") == "null");
  CHECK(q.state("b") == "completed");
  CHECK(q.state("d") == "null");
  q.pass(999);
  CHECK(q.state("b") == "completed");
  q.pass(1);
  CHECK(q.state("b") == "null");
  CHECK(q.state("e") == "failed");
  q.say("Q.CONFIG q SET retain_completed 100:0:20");
  q.pop();
  q.ack("f", "RESULT 0123456789");
  CHECK(q.state("f") == "completed");
  q.add("g");
  q.pop();
  q.ack("g", "RESULT 0123456789");
  CHECK(q.state("f") == "null");
  CHECK(q.state("g") == "completed");
}

TEST_CASE("retention by bytes counts all that an ended job holds") {
  QueueTalk q;
  q.say("Q.CONFIG q SET retain_completed 9 retain_failed 9");
  const sluice::Queue& queue = *q.find_queue("q");
  const auto& bytes = queue.ended_bytes;
  q.add("a");
  q.pop();
  q.ack("a", "RESULT 12345");
  CHECK(bytes[0] == 1 + 3 + 5);
  q.add("b", "GROUP group KEY key1 KEY key2 TAG name value NEED a");
  q.pop();
  q.touch("b", "PROGRESS 12345678");
  q.ack("b");
  CHECK(bytes[0] == 9 + 1 + 3 + 5 + 8 + 9 + 1 + 8);
  q.add("c");
  q.say("Q.CANCEL q c REASON because");
  CHECK(bytes[0] == 44 + 1 + 3 + 7);
  q.add("d");
  q.pop();
  q.nack("d", "FATAL ERROR broken");
  CHECK(bytes[1] == 1 + 3 + 6);
  q.find_queue("q")->check();
  q.restart(4);
  CHECK(q.find_queue("q")->ended_bytes[0] == 55);
  CHECK(q.find_queue("q")->ended_bytes[1] == 10);
  q.say("Q.CONFIG q SET retain_completed 9:0:55 retain_failed 9:0:10");
  CHECK(q.state("a") == "completed");
  CHECK(q.state("d") == "failed");
  q.say("Q.CONFIG q SET retain_completed 9:0:54 retain_failed 9:0:9");
  CHECK(q.state("a") == "null");
  CHECK(q.state("b") == "completed");
  CHECK(q.state("d") == "null");
  q.say("Q.RETRY q b");
  CHECK(q.find_queue("q")->ended_bytes[0] == 11);
  q.say("Q.PURGE q WHERE ALL");
  CHECK(q.find_queue("q")->ended_bytes[0] == 0);
}

TEST_CASE("a smaller retention is applied by Q.CONFIG SET, in steps, without traffic") {
  QueueTalk q;
  for (int i = 0; i < 1000; ++i) q.add("j" + std::to_string(i));
  while (q.pop("COUNT 256") != "null") {
  }
  for (int i = 0; i < 1000; ++i) q.ack("j" + std::to_string(i));
  q.say("Q.CONFIG q SET retain_completed 10");
  // One hold removes only a part.
  CHECK(q.state("j500") == "completed");
  q.run_timers();
  CHECK(q.state("j989") == "null");
  CHECK(q.state("j990") == "completed");
  q.say("Q.CONFIG q SET retain_completed 10:0:4");
  CHECK(q.state("j999") == "null");
}

TEST_CASE("displace: never for a job that is blocked, and the last in line goes, LIFO or not") {
  QueueTalk q;
  q.say("Q.CONFIG q SET full displace max_waiting 2");
  q.add("low", "PRI 4");
  q.add("mid", "PRI 3");
  CHECK(q.say("Q.ADD q needs p PRI 0 NEED low").substr(0, 6) == "-QFULL");
  CHECK(q.state("low") == "pending");
  q.add("high", "PRI 0");
  CHECK(q.job("low", {"state", "error"}) == "cancelled displaced");
  q.say("Q.CONFIG q SET order lifo:3 max_waiting 4");
  q.add("old new", "PRI 4");
  CHECK(q.job("old", {"position"}) == "3");
  q.add("urgent", "PRI 0");
  CHECK(q.state("old") == "cancelled");
  CHECK(q.state("new") == "pending");
}

TEST_CASE("a job that a script popped is held by the connection that touches it") {
  QueueTalk q;
  q.add("a");
  q.run(1, {"EVAL", "return redis.call('Q.POP', 1, 'q')", "1", "q"});
  const std::string lease = q.job("a", {"lease"});
  q.say_as(1, "Q.TOUCH q a " + lease);
  q.say("Q.CANCEL q a REASON stop");
  const std::vector<RespValue> messages = q.take_messages(1);
  REQUIRE(messages.size() == 1);
  CHECK(messages[0].show() == "[q.cancel q a " + lease + " stop]");
}

TEST_CASE("Q.PURGE forgets terminal jobs that the selector means, and no others") {
  QueueTalk q;
  q.add("a b c", "GROUP g");
  q.pop("COUNT 2");
  q.ack("a");
  q.nack("b", "FATAL");
  CHECK(q.say("Q.PURGE q WHERE STATE completed") == "[0 1]");
  CHECK(q.say("Q.PURGE q WHERE GROUP g") == "[0 1]");
  CHECK(q.say("Q.ADD q a x", "result") == "added");
  CHECK(q.state("c") == "pending");
}

// --- Statistics and events ---

TEST_CASE("Q.STATS counts by band, group and tag; totals are sums of what happened") {
  QueueTalk q;
  q.add("a b", "PRI HIGH GROUP g TAG lang go");
  q.add("c", "GROUP h TAG lang c");
  q.add("d", "DELAY 100");
  q.pop("COUNT 2");
  q.ack("a");
  q.nack("b", "FATAL");
  const RespValue stats = q.ask("Q.STATS q");
  const std::vector<std::pair<const char*, const char*>> expected = {
      {"pending", "1"}, {"active", "0"},    {"delayed", "1"},   {"blocked", "0"},
      {"added", "4"},   {"started", "2"},   {"completed", "1"}, {"failed", "1"},
      {"expired", "0"}, {"cancelled", "0"}, {"reclaimed", "0"}, {"max_active", "0"}};
  for (const auto& [field, value] : expected) CHECK_MESSAGE(stats.field(field) == value, field);
  const RespValue bands = q.ask("Q.STATS q BY PRI");
  for (const char* band : {"CRITICAL", "HIGH", "NORMAL", "LOW", "BACKGROUND"}) {
    CHECK_MESSAGE(bands.find(band) != nullptr, band);
  }
  CHECK(bands.find("NORMAL")->field("pending") == "1");
  CHECK(q.ask("Q.STATS q BY TAG lang").find("go")->field("added") == "2");
  CHECK(q.ask("Q.STATS q BY GROUP").find("h")->field("pending") == "1");
  CHECK(q.ask("Q.STATS q GROUP h").field("pending") == "1");
}

TEST_CASE("the event log tells a job's whole history, in numbers without gaps") {
  QueueTalk q;
  q.say("Q.CONFIG q SET retry 1 backoff 0:0");
  q.add("a", "LEASE 100");
  q.pop();
  q.pass(100);
  q.pop();
  q.nack("a");
  q.pop();
  q.ack("a");
  const RespValue events = q.ask("Q.EVENTS q - COUNT 100");
  std::string types;
  for (size_t i = 0; i < events.items.size(); ++i) {
    CHECK(events.items[i].items[0].text == std::to_string(i + 1));
    types += events.items[i].items[2].text + " ";
  }
  CHECK(types == "added started reclaimed started retrying started completed ");
  CHECK(q.ask("Q.EVENTS q 6").items.size() == 1);
  CHECK(q.ask("Q.EVENTS q - TYPE completed TYPE added").items.size() == 2);
  CHECK(q.say_as(1, "Q.EVENTS q $ BLOCK 0") == "(waits)");
  q.add("b");
  const auto deliveries = q.take_deliveries();
  REQUIRE(deliveries.contains(1));
  CHECK(deliveries.at(1).items.at(0).items.at(2).text == "added");
}

TEST_CASE("events that are no longer kept answer TRIMMED") {
  QueueTalk q;
  q.say("Q.CONFIG q SET events 3");
  q.add("a b c d e");
  CHECK(q.say("Q.EVENTS q 1") == "-TRIMMED oldest=3");
  CHECK(q.ask("Q.EVENTS q -").items.size() == 3);
  CHECK(q.ask("Q.EVENTS q 2").items.size() == 3);
}

// --- The queue as a key ---

TEST_CASE("SCAN TYPE, RENAME, EXPIRE, COPY and DUMP know queues") {
  QueueTalk q;
  q.say("Q.CONFIG q SET max_active 5");
  q.add("a b");
  q.pop();
  CHECK(q.say("SCAN 0 TYPE queue COUNT 1000") == "[0 [q]]");
  CHECK(q.say("DUMP q")[0] == '-');
  CHECK(q.say("RENAME q r") == "OK");
  CHECK(q.say("Q.ACK r a " + q.lease("a")) == "OK");
  CHECK(q.say("Q.GET r b", "state") == "pending");
  CHECK(q.say("EXISTS q") == "0");
  CHECK(q.say("PEXPIRE r 100") == "1");
  q.pass(100);
  CHECK(q.say("EXISTS r") == "0");
}

TEST_CASE("Q commands work from Lua, and WATCH sees every change, timers too") {
  QueueTalk q;
  const auto added =
      q.run(0, {"EVAL", "return redis.call('Q.ADD', 'q', 'a', 'x', 'DELAY', '50')[4]", "1", "q"});
  REQUIRE(added.has_value());
  CHECK(added->show() == "added");
  q.say("WATCH q");
  q.pass(50);
  q.say("MULTI");
  q.say("Q.POP 1 q");
  CHECK(q.say("EXEC") == "null");
}

}  // namespace

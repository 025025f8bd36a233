// Q.CONFIG as seen by clients: replies, errors, and the immediate effect of a change.
#include <string>

#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace {

using sluice::test::QueueTalk;
using sluice::test::RespValue;

TEST_CASE("GET of a missing queue shows the defaults and makes none") {
  QueueTalk q;
  const RespValue all = q.ask("Q.CONFIG q GET");
  CHECK(all.size() == 29);
  CHECK(all.field("lease_ms") == "30000");
  CHECK(all.field("bands") == "CRITICAL,HIGH,NORMAL,LOW,BACKGROUND");
  CHECK(all.field("events") == "100000:86400000");
  CHECK(q.say("Q.CONFIG q GET retry Crash_Limit") == "{retry=0 crash_limit=3}");
  CHECK(q.say("Q.CONFIG q GROUP g GET") == "{}");
  CHECK(q.say("EXISTS q") == "0");
}

TEST_CASE("SET makes the queue, all fields or none") {
  QueueTalk q;
  CHECK(q.say("Q.CONFIG q SET max_active 5 lease_ms 99") == "-BADFIELD field=lease_ms");
  CHECK(q.say("EXISTS q") == "0");
  CHECK(q.say("Q.CONFIG q SET max_active 5 order LIFO:low") == "OK");
  CHECK(q.say("TYPE q") == "queue");
  CHECK(q.say("Q.CONFIG q GET max_active order") == "{max_active=5 order=lifo:LOW}");
  CHECK(q.say("Q.CONFIG q SET max_active 6 nothing 1") == "-BADFIELD field=nothing");
  CHECK(q.say("Q.CONFIG q GET nothing") == "-BADFIELD field=nothing");
  CHECK(q.say("Q.CONFIG q SET '' 1 max_active 6") == "-BADFIELD field=%22%22");
  CHECK(q.say("Q.CONFIG q GET ''") == "-BADFIELD field=%22%22");
  CHECK(q.say("Q.CONFIG q GET max_active") == "{max_active=5}");
}

TEST_CASE("what is no command line is a syntax error") {
  QueueTalk q;
  for (const char* line :
       {"Q.CONFIG q SET", "Q.CONFIG q SET retry", "Q.CONFIG q SET retry 1 fair",
        "Q.CONFIG q SET IF retry 1", "Q.CONFIG q SET retry 1 IF", "Q.CONFIG q SET retry 1 IF fair",
        "Q.CONFIG q PUT retry 1", "Q.CONFIG q RESET retry", "Q.CONFIG q GROUP g",
        "Q.CONFIG q GROUP", "Q.CONFIG q GROUP GET", "Q.CONFIG q KEY k NOTHING",
        "Q.CONFIG q GROUP g RULES", "Q.CONFIG q RULES CURSOR", "Q.CONFIG q RULES 1"}) {
    CHECK_MESSAGE(q.say(line) == "-ERR syntax error", line);
  }
  CHECK(q.say("Q.CONFIG q GROUP '' SET max_active 1") == "-BADFIELD field=group");
  CHECK(q.say("Q.CONFIG q KEY '' GET") == "-BADFIELD field=key");
  CHECK(q.say("Q.CONFIG q").rfind("-ERR wrong number of arguments", 0) == 0);
  CHECK(q.say("EXISTS q") == "0");
}

TEST_CASE("IF: a field that somebody else has set meanwhile is not overwritten") {
  QueueTalk q;
  CHECK(q.say("Q.CONFIG q SET retry 1 IF retry 2") == "-CHANGED field=retry value=0");
  CHECK(q.say("EXISTS q") == "0");
  CHECK(q.say("Q.CONFIG q SET retry 1 IF retry 0 Fair off") == "OK");
  CHECK(q.say("Q.CONFIG q SET fair on retry 3 if fair off retry 0") ==
        "-CHANGED field=retry value=1");
  CHECK(q.say("Q.CONFIG q GET retry fair") == "{fair=off retry=1}");
  CHECK(q.say("Q.CONFIG q TRY retry 3 IF retry 2") == "-CHANGED field=retry value=1");
  CHECK(q.say("Q.CONFIG q GROUP g SET weight 2 IF weight ''") == "OK");
  CHECK(q.say("Q.CONFIG q GROUP g SET weight 3 IF weight ''") == "-CHANGED field=weight value=2");
  CHECK(q.say("Q.CONFIG q GROUP g SET weight 3 IF weight 2.00") == "OK");
  CHECK(q.say("Q.CONFIG q GROUP h SET weight 3 IF weight 1") == "-CHANGED field=weight value=");
  CHECK(q.say("Q.CONFIG q GROUP h GET") == "{}");
  CHECK(q.say("Q.CONFIG q SET retry 2 IF nothing 1") == "-BADFIELD field=nothing");
  CHECK(q.say("Q.CONFIG q GROUP g SET weight 2 IF retry 1") == "-BADFIELD field=retry");
  CHECK(q.say("Q.CONFIG q SET retry 2 IF retry x") == "-CHANGED field=retry value=1");
}

TEST_CASE("a bad name comes back encoded") {
  QueueTalk q;
  CHECK(q.say("Q.CONFIG q SET a=b 1") == "-BADFIELD field=a%3Db");
}

TEST_CASE("rules of groups and keys") {
  QueueTalk q;
  CHECK(q.say("Q.CONFIG q GROUP team.* SET max_active 2 weight 2.50") == "OK");
  CHECK(q.say("Q.CONFIG q KEY gpu SET rate 5/1000") == "OK");
  CHECK(q.say("Q.CONFIG q GROUP team.* GET") == "{max_active=2 weight=2.5}");
  CHECK(q.say("Q.CONFIG q GROUP team.1 GET") == "{}");
  CHECK(q.say("Q.CONFIG q GROUP team.* GET max_active ttl_ms") == "{max_active=2}");
  CHECK(q.say("Q.CONFIG q KEY gpu GET rate") == "{rate=5/1000}");
  CHECK(q.say("Q.CONFIG q KEY gpu SET paused out") == "-BADFIELD field=paused");
  CHECK(q.say("Q.CONFIG q GROUP team.* GET lease_ms") == "-BADFIELD field=lease_ms");
  CHECK(q.say("Q.CONFIG q GROUP team.* RESET") == "OK");
  CHECK(q.say("Q.CONFIG q GROUP team.* GET") == "{}");
  CHECK(q.say("Q.CONFIG nobody RESET") == "OK");
  CHECK(q.say("EXISTS nobody") == "0");
}

TEST_CASE("RULES lists the rules of all levels, page by page") {
  QueueTalk q;
  CHECK(q.say("Q.CONFIG nobody RULES") == "[0 []]");
  CHECK(q.say("EXISTS nobody") == "0");
  q.say("Q.CONFIG q SET max_active 5");
  q.say("Q.CONFIG q WORKER host-* SET quiet on");
  q.say("Q.CONFIG q GROUP z* SET max_active 9");
  q.say("Q.CONFIG q KEY gpu SET rate 5/1000");
  q.say("Q.CONFIG q GROUP m* SET max_active 4");
  q.say("Q.CONFIG q GROUP team.* SET weight 2 max_active 2");
  q.say("Q.CONFIG q GROUP m* SET max_active 5");
  q.say("Q.CONFIG q GROUP a\\* SET max_active 1");
  q.say("Q.CONFIG q GROUP b SET max_active 3");
  q.say("Q.CONFIG q GROUP gone SET max_active 3");
  q.say("Q.CONFIG q GROUP gone RESET");
  const std::string all =
      "[group a\\* {max_active=1}] [group b {max_active=3}] "
      "[group z* {max_active=9}] [group team.* {weight=2 max_active=2}] [group m* {max_active=5}] "
      "[key gpu {rate=5/1000}] [worker host-* {quiet=on}]";
  CHECK(q.say("Q.CONFIG q RULES") == "[0 [" + all + "]]");
  for (const int count : {1, 2, 3, 5}) {
    std::string pages;
    std::string cursor = "0";
    do {
      const RespValue page =
          q.ask("Q.CONFIG q RULES COUNT " + std::to_string(count) + " CURSOR " + cursor);
      REQUIRE(page.size() == 2);
      CHECK(page.items[1].size() <= static_cast<size_t>(count));
      cursor = page.items[0].text;
      for (const RespValue& rule : page.items[1].items) {
        pages += (pages.empty() ? "" : " ") + rule.show();
      }
    } while (cursor != "0");
    CHECK(pages == all);
  }
  for (const char* cursor : {"''", "1", "g", "=x", "bx"}) {
    CHECK(q.say(std::string("Q.CONFIG q RULES CURSOR ") + cursor) == "-ERR invalid cursor");
  }
  CHECK(q.say("Q.CONFIG q RULES COUNT 0") == "-BADFIELD field=count");
}

TEST_CASE("RESP2 gets a flat array") {
  QueueTalk q;
  q.session(0).client.protocol = 2;
  CHECK(q.say("Q.CONFIG q GET retry fair") == "[fair off retry 0]");
}

TEST_CASE("a change counts at once, also for groups and keys that exist") {
  QueueTalk q;
  q.add("a b c d", "GROUP g KEY k");
  q.say("Q.CONFIG q GROUP * SET max_active 1");
  CHECK(q.pop() == "a");
  CHECK(q.pop() == "null");
  q.say("Q.CONFIG q GROUP g SET max_active 2");
  CHECK(q.pop() == "b");
  CHECK(q.pop() == "null");
  q.say("Q.CONFIG q GROUP g RESET");
  q.say("Q.CONFIG q GROUP * RESET");
  q.say("Q.CONFIG q KEY k SET max_active 3");
  CHECK(q.pop() == "c");
  CHECK(q.pop() == "null");
  q.say("Q.CONFIG q KEY k RESET");
  q.say("Q.CONFIG q SET max_active 3");
  CHECK(q.pop() == "null");
  q.say("Q.CONFIG q RESET");
  CHECK(q.pop() == "d");
  q.find_queue("q")->check();
}

TEST_CASE("a change wakes the pops that it makes possible") {
  QueueTalk q;
  q.say("Q.CONFIG q SET paused out");
  q.add("a");
  CHECK(q.say_as(1, "Q.POP 1 q BLOCK 0") == "(waits)");
  CHECK(q.take_deliveries().empty());
  CHECK(q.say("Q.CONFIG q SET paused none") == "OK");
  const auto served = q.take_deliveries();
  REQUIRE(served.count(1) == 1);
  CHECK(served.at(1).items.at(0).field("id") == "a");
}

TEST_CASE("priority_order desc and bands count in what callers write and read") {
  QueueTalk q;
  q.say("Q.CONFIG q SET priority_order desc");
  q.add("none");
  q.add("one", "PRI 1");
  q.add("nine", "PRI 9");
  q.add("normal", "PRI normal");
  CHECK(q.job("none", {"pri"}) == "BACKGROUND");
  CHECK(q.job("nine", {"pri"}) == "9");
  CHECK(q.job("normal", {"pri"}) == "NORMAL");
  CHECK(q.drain() == "nine normal one none");
}

TEST_CASE("names of bands that another value uses are not taken away") {
  for (const char* user : {"reserve calm:1", "order lifo:calm", "default_pri calm"}) {
    CAPTURE(user);
    QueueTalk q;
    CHECK(q.say("Q.CONFIG q SET bands urgent,calm " + std::string(user)) == "OK");
    CHECK(q.say("Q.CONFIG q SET bands urgent") == "-BADFIELD field=bands");
    CHECK(q.say("Q.CONFIG q GET bands") == "{bands=urgent,calm}");
    // These are reset together with the names.
    CHECK(q.say("Q.CONFIG q RESET") == "OK");
    CHECK(q.say("Q.CONFIG q GET bands default_pri order reserve") ==
          "{bands=CRITICAL,HIGH,NORMAL,LOW,BACKGROUND default_pri=2 order=fifo reserve=none}");
  }
  QueueTalk q;
  q.say("Q.CONFIG q SET bands urgent,calm max_active 5");
  q.say("Q.CONFIG q GROUP g SET order lifo:calm");
  CHECK(q.say("Q.CONFIG q SET bands urgent") == "-BADFIELD field=bands");
  CHECK(q.say("Q.CONFIG q RESET") == "-BADFIELD field=bands");
  CHECK(q.say("Q.CONFIG q GET bands max_active") == "{bands=urgent,calm max_active=5}");
  q.add("a b", "PRI calm GROUP g");
  CHECK(q.pop() == "b");
  CHECK(q.say("Q.CONFIG q GROUP g RESET") == "OK");
  CHECK(q.say("Q.CONFIG q RESET") == "OK");
  CHECK(q.say("Q.CONFIG q GET max_active") == "{max_active=0}");
}

TEST_CASE("it works when memory is used up, and gives some back") {
  QueueTalk q;
  q.add("a b");
  q.pop();
  q.ack("a");
  q.engine().options().max_memory_bytes = 1;
  static_cast<sluice::test::QuietServer&>(q.engine().server()).used_bytes = 2;
  CHECK(q.say("Q.ADD q c x").rfind("-OOM", 0) == 0);
  CHECK(q.say("Q.CONFIG q GET retry") == "{retry=0}");
  CHECK(q.say("Q.CONFIG q SET retain_completed 0 events 0") == "OK");
  CHECK(q.say("Q.EVENTS q -") == "[]");
}

TEST_CASE("without memory there are no more rules, but those that exist can be changed") {
  QueueTalk q;
  q.say("Q.CONFIG q GROUP g SET max_active 1");
  q.engine().options().max_memory_bytes = 1;
  static_cast<sluice::test::QuietServer&>(q.engine().server()).used_bytes = 2;
  CHECK(q.say("Q.CONFIG q GROUP h SET max_active 1").rfind("-OOM", 0) == 0);
  CHECK(q.say("Q.CONFIG q WORKER w SET quiet on").rfind("-OOM", 0) == 0);
  CHECK(q.say("Q.CONFIG new SET max_active 1").rfind("-OOM", 0) == 0);
  CHECK(q.say("EXISTS new") == "0");
  CHECK(q.say("Q.CONFIG q GROUP h TRY max_active 1").rfind("-OOM", 0) != 0);
  CHECK(q.say("Q.CONFIG q GROUP g SET max_active 2") == "OK");
  CHECK(q.say("Q.CONFIG q GROUP g RESET") == "OK");
}

TEST_CASE("a restart brings the configuration back") {
  QueueTalk q;
  q.say("Q.CONFIG q SET bands urgent,calm default_pri calm max_active 7");
  q.say("Q.CONFIG q GROUP a* SET max_active 1");
  q.say("Q.CONFIG q GROUP *a SET max_active 2");
  q.say("Q.CONFIG q KEY k SET max_active 3");
  q.say("Q.CONFIG q KEY other SET max_active 3");
  q.say("Q.CONFIG q KEY other RESET");
  const std::string before = q.say("Q.CONFIG q GET");
  q.restart(4);
  CHECK(q.say("Q.CONFIG q GET") == before);
  CHECK(q.say("Q.CONFIG q GROUP a* GET") == "{max_active=1}");
  CHECK(q.say("Q.CONFIG q KEY k GET") == "{max_active=3}");
  CHECK(q.say("Q.CONFIG q KEY other GET") == "{}");
  // The later of two globs with as many literal bytes.
  CHECK(q.say("Q.STATS q GROUP aa", "max_active") == "2");
  q.say("Q.CONFIG q RESET");
  q.restart(4);
  CHECK(q.say("Q.CONFIG q GET max_active default_pri") == "{default_pri=2 max_active=0}");
  CHECK(q.say("Q.STATS q GROUP aa", "max_active") == "2");
}

TEST_CASE("a trial of an adaptive cap goes by its greatest value") {
  QueueTalk q;
  q.add("a b c d e");
  q.pop("COUNT 5");
  CHECK(q.say("Q.CONFIG q TRY max_active 2", "slots_over") == "3");
  CHECK(q.say("Q.CONFIG q TRY max_active 2 adaptive 1:4:500:5000", "slots_over") == "1");
}

// Ends jobs with one letter as their ids, a second after each other: 1 byte of id, 3 of payload and
// 6 of the error each.
void fail(QueueTalk& q, const std::string& ids) {
  for (const std::string& id : QueueTalk::words(ids)) {
    q.add(id);
    q.pop();
    q.nack(id, "FATAL ERROR broken");
    q.pass(1000);
  }
}

TEST_CASE("a trial counts the ended jobs that a lower retention drops at once") {
  QueueTalk q;
  fail(q, "a b c d e f");
  q.add("g h");
  q.drain();
  const auto dropped = [&](const std::string& fields) {
    return q.say("Q.CONFIG q TRY " + fields, "dropped");
  };
  CHECK(dropped("max_active 1") == "0");
  for (const auto& [fields, count] : {std::pair("retain_failed 2", 4),
                                      {"retain_failed 0", 6},
                                      {"retain_failed 6", 0},
                                      {"retain_failed 9:3000", 4},
                                      {"retain_failed 9:3001", 3},
                                      {"retain_failed 1:3000", 5},
                                      {"retain_failed 9:0:59", 1},
                                      {"retain_failed 9:0:60", 0},
                                      {"retain_failed 9:0:25", 4},
                                      {"retain_failed 5:0:25", 4},
                                      {"retain_failed 1:0:25", 5},
                                      {"retain_completed 0", 2},
                                      {"retain_completed 1 retain_failed 2", 5}}) {
    CAPTURE(fields);
    CHECK(dropped(fields) == std::to_string(count));
    CHECK(q.say(std::string("Q.CONFIG q TRY ") + fields, "complete") == "t");
  }
  CHECK(q.state("a") == "failed");
  // What was counted is what goes.
  CHECK(q.say("Q.CONFIG q SET retain_failed 9:3001 retain_completed 1") == "OK");
  CHECK(q.state("c") == "null");
  CHECK(q.state("d") == "failed");
  CHECK(dropped("retain_failed 9:3001") == "0");
}

TEST_CASE("a trial of a retention by bytes counts at most ten thousand jobs of a kind") {
  QueueTalk q;
  q.say("Q.CONFIG q SET retain_completed 20000");
  for (int i = 0; i < 10'001; ++i) {
    q.add(std::to_string(i));
    q.say("Q.CANCEL q " + std::to_string(i));
  }
  const RespValue tried = q.ask("Q.CONFIG q TRY retain_completed 20000:0:1");
  CHECK(tried.field("dropped") == "10000");
  CHECK(tried.field("complete") == "f");
  CHECK(q.say("Q.CONFIG q TRY retain_completed 0:0:1", "dropped") == "10001");
}

TEST_CASE("a trial counts the events that are dropped at once, by number and by age") {
  QueueTalk q;
  for (int second = 0; second < 500; ++second) {
    q.add(std::to_string(second));
    q.say("Q.CANCEL q " + std::to_string(second));
    q.pass(1000);
  }
  const auto dropped = [&](const std::string& bounds) {
    return q.say("Q.CONFIG q TRY events " + bounds, "events_dropped");
  };
  CHECK(dropped("0") == "1000");
  CHECK(dropped("990") == "10");
  CHECK(dropped("1000") == "0");
  CHECK(dropped("1000:500001") == "0");
  CHECK(dropped("1000:500000") == "2");
  CHECK(dropped("1000:200000") == "602");
  CHECK(dropped("1000:1") == "1000");
  CHECK(dropped("100:200000") == "900");
  CHECK(q.say("Q.CONFIG q SET events 1000:200000") == "OK");
  CHECK(q.find_queue("q")->events.count() == 398);
  CHECK(dropped("1000:200000") == "0");
  CHECK(dropped("1000:100500") == "198");
}

TEST_CASE("with very many rules a trial counts all but what globs match") {
  QueueTalk q;
  q.add("a b c", "GROUP g KEY k");
  q.pop("COUNT 2");
  for (int rule = 0; rule < 1001; ++rule) {
    q.say("Q.CONFIG q GROUP g" + std::to_string(rule) + " SET order lifo:LOW");
  }
  q.say("Q.CONFIG q GROUP g* SET max_waiting 9");
  const auto tried = [&](const std::string& level, const std::string& fields) {
    const RespValue reply = q.ask("Q.CONFIG q " + level + "TRY " + fields);
    std::string counts;
    for (const char* field : {"matched", "slots_over", "waiting_over", "total_over", "complete"}) {
      counts += (counts.empty() ? "" : " ") + reply.field(field);
    }
    return counts;
  };
  CHECK(tried("", "max_active 1 max_total 1") == "1 1 0 2 t");
  CHECK(tried("GROUP g ", "max_active 1 max_total 2") == "1 1 0 1 t");
  CHECK(tried("GROUP none ", "max_active 1") == "0 0 0 0 t");
  CHECK(tried("KEY k ", "max_active 1") == "1 1 0 0 t");
  CHECK(tried("WORKER w ", "quiet on") == "0 0 0 0 t");
  CHECK(tried("GROUP g* ", "max_active 1") == "0 0 0 0 f");
  CHECK(tried("KEY * ", "max_active 1") == "0 0 0 0 f");
  // The fields are checked all the same, also against what the rules name.
  CHECK(q.say("Q.CONFIG q GROUP g* TRY max_active x") == "-BADFIELD field=max_active");
  CHECK(q.say("Q.CONFIG q TRY bands A,B default_pri A") == "-BADFIELD field=bands");
  CHECK(q.say("Q.CONFIG q SET bands A,B default_pri A") == "-BADFIELD field=bands");
}

TEST_CASE("a trial of one name goes by all rules that apply to it") {
  QueueTalk q;
  q.add("a b c", "GROUP g");
  q.say("Q.CONFIG q GROUP g* SET max_waiting 1");
  CHECK(q.say("Q.CONFIG q GROUP g TRY max_total 2", "waiting_over") == "2");
  CHECK(q.say("Q.CONFIG q GROUP g TRY max_waiting 2", "waiting_over") == "1");
  CHECK(q.say("Q.CONFIG q GROUP g SET max_waiting 3") == "OK");
  CHECK(q.say("Q.CONFIG q GROUP g TRY max_total 2", "waiting_over") == "0");
  CHECK(q.say("Q.CONFIG q GROUP g* TRY max_total 2", "waiting_over") == "0");
  CHECK(q.say("Q.CONFIG q GROUP g* TRY max_total 2", "total_over") == "1");
}

}  // namespace

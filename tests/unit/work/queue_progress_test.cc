// Following certain jobs: Q.EVENTS with several IDs, and the event `progress`.
#include <string>

#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace {

using sluice::test::QueueTalk;
using sluice::test::RespValue;

// "1 added a, 2 progress a half": numbers, types, ids, and what progress was reported.
std::string brief(const RespValue& reply) {
  if (reply.kind != RespValue::Kind::kArray) return reply.show();
  std::string out;
  for (const RespValue& event : reply.items) {
    out += (out.empty() ? "" : ", ") + event.items.at(0).text + " " + event.items.at(2).text + " " +
           event.items.at(3).text;
    if (event.items[2].text == "progress") out += " " + event.items.at(4).field("progress");
  }
  return out;
}

// What waiting clients were told: "1: 3 added b".
std::string told(QueueTalk& q) {
  std::string out;
  for (const auto& [connection, reply] : q.take_deliveries()) {
    out += (out.empty() ? "" : "; ") + std::to_string(connection) + ": " + brief(reply);
  }
  return out;
}

std::string last_seq(QueueTalk& q) { return std::to_string(q.find_queue("q")->events.last_seq()); }

std::string many_ids(int count) {
  std::string line;
  for (int i = 0; i < count; ++i) line += " ID j" + std::to_string(i);
  return line;
}

TEST_CASE("the events of several jobs in their order, and how far they were looked for") {
  QueueTalk q;
  q.add("a b c d");
  q.pop();
  q.ack("a");
  CHECK(brief(q.ask("Q.EVENTS q - ID a ID c")) ==
        "1 added a, 3 added c, 5 started a, 6 completed a");
  CHECK(brief(q.ask("Q.EVENTS q - ID c ID b ID c")) == "2 added b, 3 added c, 6 none ");
  CHECK(brief(q.ask("Q.EVENTS q - ID d ID nobody TYPE added")) == "4 added d, 6 none ");
}

TEST_CASE("a call follows at most 256 jobs, whose ids may be words of the grammar") {
  QueueTalk q;
  CHECK(q.say("Q.EVENTS q -" + many_ids(256)) == "[]");
  CHECK(q.say("Q.EVENTS q -" + many_ids(256) + " ID j7") == "[]");
  CHECK(q.say("Q.EVENTS q -" + many_ids(257)) == "-BADFIELD field=id");
  CHECK(q.say("Q.EVENTS q - ID a ID ''") == "-BADFIELD field=id");
  CHECK(q.say("Q.EVENTS q - ID a ID") == "-ERR syntax error");
  q.add("ID BLOCK TYPE");
  CHECK(brief(q.ask("Q.EVENTS q - ID ID ID BLOCK BLOCK 0")) ==
        "1 added ID, 2 added BLOCK, 3 none ");
}

TEST_CASE("who waits for several jobs hears the first event of any, once") {
  QueueTalk q;
  q.add("a b c");
  CHECK(q.say_as(1, "Q.EVENTS q 3 ID b ID c BLOCK 0") == "(waits)");
  CHECK(q.pop() == "a");
  CHECK(told(q).empty());
  q.say("MULTI");
  q.say("Q.POP 1 q COUNT 2");
  q.say("EXEC");
  CHECK(told(q) == "1: 5 started b, 6 started c");
  // All lists have forgotten the waiter.
  q.add("d e");
  CHECK(told(q).empty());
  CHECK(q.say_as(1, "Q.EVENTS q $ ID x ID y ID z BLOCK 0") == "(waits)");
  CHECK(q.give_up(1));
  q.add("x y z");
  CHECK(told(q).empty());
}

TEST_CASE("who waits for several jobs of a queue that goes hears it once") {
  QueueTalk q;
  q.add("a b");
  CHECK(q.say_as(1, "Q.EVENTS q $ ID a ID b BLOCK 0") == "(waits)");
  q.say("DEL q");
  CHECK(told(q) == "1: ");
  CHECK(q.say_as(1, "Q.EVENTS q $ ID a ID b BLOCK 0") == "(waits)");
  q.say("Q.ADD r a x");
  q.say("Q.ADD r b x");
  q.say("RENAME r q");
  CHECK(told(q) == "1: 7 added a, 8 added b");
}

// --- Progress ---

TEST_CASE("a thousand running jobs that nobody watches have no events of progress") {
  QueueTalk q;
  std::string ids;
  for (int i = 0; i < 1000; ++i) ids += "j" + std::to_string(i) + " ";
  q.add(ids);
  for (int i = 0; i < 4; ++i) q.pop("COUNT 250");
  const std::string before = last_seq(q);
  // Others that wait do not make them followed: without an ID, or for another job or other types.
  CHECK(q.say_as(1, "Q.EVENTS q $ TYPE progress BLOCK 0") == "(waits)");
  CHECK(q.say_as(2, "Q.EVENTS q $ ID other BLOCK 0") == "(waits)");
  CHECK(q.say_as(3, "Q.EVENTS q $ ID j3 TYPE completed BLOCK 0") == "(waits)");
  for (int i = 0; i < 1000; ++i) q.touch("j" + std::to_string(i), "PROGRESS half");
  q.pass(2000);
  CHECK(last_seq(q) == before);
  CHECK(told(q).empty());
  CHECK(q.job("j7", {"progress"}) == "half");
}

TEST_CASE(
    "who waits for a job hears its progress, the first at once, then the last of each second") {
  QueueTalk q;
  q.add("a b");
  q.pop("COUNT 2");
  CHECK(q.say_as(1, "Q.EVENTS q $ ID a BLOCK 0") == "(waits)");
  q.touch("b", "PROGRESS of-b");
  q.touch("a");
  CHECK(told(q).empty());
  q.touch("a", "PROGRESS 1");
  CHECK(told(q) == "1: 5 progress a 1");
  CHECK(q.say_as(1, "Q.EVENTS q 5 ID a BLOCK 0") == "(waits)");
  q.pass(300);
  q.touch("a", "PROGRESS 2");
  q.touch("a", "PROGRESS 3");
  q.pass(699);
  CHECK(told(q).empty());
  q.pass(1);
  CHECK(told(q) == "1: 6 progress a 3");
  // Nothing is owed after a second of silence, and the next one comes at once.
  CHECK(q.say_as(1, "Q.EVENTS q 6 ID a BLOCK 0") == "(waits)");
  q.pass(5000);
  CHECK(told(q).empty());
  CHECK(q.find_queue("q")->progress_pace == nullptr);
  q.touch("a", "PROGRESS 4");
  CHECK(told(q) == "1: 7 progress a 4");
  CHECK(brief(q.ask("Q.EVENTS q 4 TYPE progress")) ==
        "5 progress a 1, 6 progress a 3, 7 progress a 4");
}

TEST_CASE("owed progress is not told of a job that nobody follows any more, or that has ended") {
  QueueTalk q;
  q.add("a b");
  q.pop("COUNT 2");
  for (const char* id : {"a", "b"}) {
    CHECK(q.say_as(1, std::string("Q.EVENTS q $ ID ") + id + " BLOCK 0") == "(waits)");
    q.touch(id, "PROGRESS 1");
    q.touch(id, "PROGRESS 2");
    q.take_deliveries();
  }
  CHECK(q.say_as(1, "Q.EVENTS q $ ID b BLOCK 0") == "(waits)");
  q.ack("b");
  CHECK(told(q) == "1: 7 completed b");
  CHECK(q.say_as(1, "Q.EVENTS q $ ID b BLOCK 0") == "(waits)");
  q.pass(3000);
  CHECK(last_seq(q) == "7");
  CHECK(q.find_queue("q")->progress_pace == nullptr);
}

TEST_CASE("an event has the first 4096 bytes of a progress, a job all of them") {
  QueueTalk q;
  q.add("a");
  q.pop();
  CHECK(q.say_as(1, "Q.EVENTS q $ ID a BLOCK 0") == "(waits)");
  q.touch("a", "PROGRESS " + std::string(5000, 'p'));
  CHECK(told(q) == "1: 3 progress a " + std::string(4096, 'p'));
  CHECK(q.job("a", {"progress"}).size() == 5000);
}

TEST_CASE(
    "progress that was told is told again after a restart, from the journal and a checkpoint") {
  QueueTalk q;
  q.add("a");
  q.pop();
  CHECK(q.say_as(1, "Q.EVENTS q $ ID a BLOCK 0") == "(waits)");
  q.touch("a", "PROGRESS 1");
  q.take_deliveries();
  CHECK(q.say_as(1, "Q.EVENTS q $ ID a BLOCK 0") == "(waits)");
  q.touch("a", "PROGRESS 2");
  q.pass(1000);
  q.take_deliveries();
  q.touch("a", "PROGRESS unseen");
  const std::string all = "1 added a, 2 started a, 3 progress a 1, 4 progress a 2";
  CHECK(brief(q.ask("Q.EVENTS q -")) == all);
  q.restart(4);
  CHECK(brief(q.ask("Q.EVENTS q -")) == all);
  CHECK(q.job("a", {"progress"}) == "unseen");
  q.restart_from_checkpoint(4);
  CHECK(brief(q.ask("Q.EVENTS q -")) == all);
}

TEST_CASE("a standby that takes over has the progress that was told, and the last one") {
  QueueTalk q;
  q.begin_following();
  q.add("a");
  q.pop();
  CHECK(q.say_as(1, "Q.EVENTS q $ ID a BLOCK 0") == "(waits)");
  q.touch("a", "PROGRESS 1");
  CHECK(told(q) == "1: 3 progress a 1");
  q.touch("a", "PROGRESS unseen");
  q.take_over(4);
  CHECK(brief(q.ask("Q.EVENTS q -")) == "1 added a, 2 started a, 3 progress a 1");
  CHECK(q.job("a", {"progress"}) == "unseen");
}

TEST_CASE("with events 0 progress is told to nobody, and kept") {
  QueueTalk q;
  q.say("Q.CONFIG q SET events 0");
  q.add("a");
  q.pop();
  CHECK(q.say_as(1, "Q.EVENTS q $ ID a BLOCK 0") == "(waits)");
  q.touch("a", "PROGRESS 1");
  CHECK(told(q).empty());
  CHECK(q.job("a", {"progress"}) == "1");
}

}  // namespace

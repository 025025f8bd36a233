// What a stream remembers besides its entries: when consumers were seen, what was delivered to them
// and how often; ids that begin anew (XSETID), and ids that are none.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace {

using sluice::test::QueueTalk;

// Ways to end a process and start the next one.
const std::vector<std::pair<const char*, std::function<void(QueueTalk&)>>> kRestarts = {
    {"from the journal", [](QueueTalk& q) { q.restart(4); }},
    {"from a checkpoint", [](QueueTalk& q) { q.restart_from_checkpoint(4); }},
};

TEST_CASE("a consumer is idle since its last command, an entry since its delivery") {
  QueueTalk q;
  q.say("XADD s 1-0 a 1");
  q.say("XGROUP CREATE s g 0");
  q.say("XREADGROUP GROUP g alice STREAMS s >");
  q.pass(5000);
  // It asks what else it was given before.
  q.say("XREADGROUP GROUP g alice STREAMS s 1-0");
  q.pass(7000);
  CHECK(q.say("XINFO CONSUMERS s g") == "[{name=alice pending=1 idle=7000}]");
  CHECK(q.say("XPENDING s g - + 10") == "[[1-0 alice 12000 1]]");
  CHECK(q.say("XPENDING s g IDLE 12000 - + 10") == "[[1-0 alice 12000 1]]");
  CHECK(q.say("XPENDING s g IDLE 12001 - + 10") == "[]");
  CHECK(q.say("XAUTOCLAIM s g bob 12001 0 JUSTID") == "[0-0 [] []]");
  CHECK(q.say("XAUTOCLAIM s g bob 12000 0 JUSTID") == "[0-0 [1-0] []]");
  CHECK(q.say("XPENDING s g - + 10") == "[[1-0 bob 0 1]]");
}

TEST_CASE("after a restart a consumer is idle since its last delivery") {
  for (const auto& [how, restart] : kRestarts) {
    INFO(how);
    QueueTalk q;
    q.say("XADD s 1-0 a 1");
    q.say("XGROUP CREATE s g 0");
    q.say("XGROUP CREATECONSUMER s g alice");
    q.pass(5000);
    q.say("XREADGROUP GROUP g alice STREAMS s >");
    q.pass(1000);
    // What was claimed for a time long ago makes its consumer no older.
    q.say("XCLAIM s g alice 0 1-0 IDLE 4000 JUSTID");
    restart(q);
    CHECK(q.say("XINFO CONSUMERS s g") == std::string("[{name=alice pending=1 idle=") +
                                              (how == kRestarts[0].first ? "1000" : "0") + "}]");
    CHECK(q.say("XPENDING s g - + 10") == "[[1-0 alice 4000 1]]");
  }
}

TEST_CASE("a copy of a stream knows how often and when its entries were delivered") {
  QueueTalk q;
  q.say("XADD s 1-0 a 1");
  q.say("XADD s 2-0 a 1");
  q.say("XGROUP CREATE s g 0");
  q.say("XREADGROUP GROUP g alice STREAMS s >");
  q.say("XCLAIM s g bob 0 1-0 RETRYCOUNT 7");
  q.pass(3000);
  REQUIRE(q.say("COPY s copy") == "1");
  for (const char* restart : {"no", "yes"}) {
    if (restart[0] == 'y') q.restart(4);
    CHECK(q.say("XPENDING copy g - + 10") == "[[1-0 bob 3000 7] [2-0 alice 3000 1]]");
    CHECK(q.say("XINFO CONSUMERS copy g") ==
          "[{name=alice pending=1 idle=3000} {name=bob pending=1 idle=3000}]");
  }
}

TEST_CASE("of entries that were delivered together each keeps its own count over a restart") {
  for (const auto& [how, restart] : kRestarts) {
    INFO(how);
    QueueTalk q;
    for (const char* id : {"1-0", "2-0", "3-0"}) q.say("XADD s " + std::string(id) + " a 1");
    q.say("XGROUP CREATE s g 0");
    q.say("XREADGROUP GROUP g alice STREAMS s >");
    q.say("XCLAIM s g alice 0 2-0 RETRYCOUNT 7");
    const std::string pending = "[[1-0 alice 0 1] [2-0 alice 0 7] [3-0 alice 0 1]]";
    REQUIRE(q.say("XPENDING s g - + 10") == pending);
    restart(q);
    CHECK(q.say("XPENDING s g - + 10") == pending);
  }
}

TEST_CASE("ids that begin anew with XSETID are found, also after a restart") {
  for (const auto& [how, restart] : kRestarts) {
    INFO(how);
    QueueTalk q;
    // The node of these has no entries, and yet is there.
    for (const char* words : {"XADD s 1-0 a 1", "XADD s 2-0 a 1", "XADD s 3-0 a 1", "XDEL s 3-0"}) {
      q.say(words);
    }
    CHECK(q.say("XTRIM s MINID 3") == "2");
    REQUIRE(q.say("XINFO STREAM s", "radix-tree-keys") == "1");
    CHECK(q.say("XSETID s 0-5") == "OK");
    CHECK(q.say("XADD s 0-6 a 1") == "0-6");
    CHECK(q.say("XADD s 0-7 a 1") == "0-7");
    CHECK(q.say("XRANGE s 0-6 0-6") == "[[0-6 [a 1]]]");
    CHECK(q.say("XDEL s 0-6") == "1");
    CHECK(q.say("XDEL s 0-7") == "1");
    // The first id of that node once more, with another name.
    CHECK(q.say("XADD s 1-0 b 2") == "1-0");
    const std::string info = q.say("XINFO STREAM s FULL");
    restart(q);
    CHECK(q.say("XRANGE s - +") == "[[1-0 [b 2]]]");
    CHECK(q.say("XINFO STREAM s FULL") == info);
  }
}

TEST_CASE("XINFO STREAM FULL tells of each consumer what it has not acknowledged") {
  QueueTalk q;
  for (const char* id : {"1-0", "2-0", "3-0"}) q.say("XADD s " + std::string(id) + " a 1");
  q.say("XGROUP CREATE s g 0");
  q.say("XREADGROUP GROUP g alice COUNT 2 STREAMS s >");
  q.say("XREADGROUP GROUP g bob STREAMS s >");
  const std::string info = q.say("XINFO STREAM s FULL");
  CAPTURE(info);
  for (const char* part : {"pel-count=3 pending=[[1-0 alice ", "pel-count=2 pending=[[1-0 17",
                           "pel-count=1 pending=[[3-0 17"}) {
    CHECK(info.find(part) != std::string::npos);
  }
}

TEST_CASE("an id of any length is refused, and not copied past the room for one") {
  QueueTalk q;
  q.say("XADD s 1-1 a 1");
  for (const size_t digits : {100, 127, 128, 10'000'000}) {
    CAPTURE(digits);
    const std::string id(digits, '1');
    for (const std::string& line : {"XADD s " + id + " a 1", "XRANGE s - " + id, "XDEL s " + id}) {
      CHECK(q.say(line) == "-ERR Invalid stream ID specified as stream command argument");
    }
  }
  CHECK(q.say("XLEN s") == "1");
}

}  // namespace

// Failed jobs: grouped by Q.STATS BY ERROR, found by their errors, purged by their ids.
#include <map>
#include <string>

#include "tests/support/random_queue.h"
#include "tests/support/test.h"

namespace {

using namespace sluice::test;

// A job that fails with this error.
void fail(QueueClient& server, const std::string& id, const std::string& error) {
  server.run({"Q.ADD", "q", id, ""});
  const RespValue popped = server.run({"Q.POP", "1", "q", "ID", id});
  const RespValue nack =
      server.run({"Q.NACK", "q", id, popped.items[0].field("lease"), "FATAL", "ERROR", error});
  REQUIRE_MESSAGE(nack.field("state") == "failed", nack.show());
}

TEST_CASE("Q.STATS BY ERROR groups failed jobs, the newest first") {
  QueueClient server;
  for (int i = 0; i < 5; ++i) {
    fail(server, "t" + std::to_string(i), "Timeout after " + std::to_string(i) + " ms\nat line 1");
    server.advance(10);
  }
  fail(server, "none", "");
  fail(server, "long", std::string(2000, 'x'));
  server.run({"Q.ADD", "q", "gone", ""});
  server.run({"Q.CANCEL", "q", "gone", "REASON", "Timeout after 7 ms"});
  const RespValue lines = server.run({"Q.STATS", "q", "BY", "ERROR"});
  REQUIRE(lines.items.size() == 6);
  CHECK(lines.items[0].text == std::string(256, 'x'));
  CHECK(lines.items[1].field("error") == std::string(512, 'x'));
  CHECK(lines.items[2].text.empty());
  const RespValue& timeouts = *lines.find("Timeout after # ms");
  CHECK(timeouts.field("count") == "5");
  CHECK(timeouts.field("first") == "1700000000000");
  CHECK(timeouts.field("last") == "1700000000040");
  CHECK(timeouts.field("id") == "t4");
  CHECK(timeouts.field("error") == "Timeout after 4 ms\nat line 1");
}

TEST_CASE("pages of Q.STATS BY ERROR add up") {
  QueueClient server;
  for (int i = 0; i < 50; ++i) {
    const std::string number = std::to_string(i);
    fail(server, "j" + number, i % 3 == 0 ? "no host h" + number : "no room " + number);
  }
  std::map<std::string, int64_t> counts;
  std::string cursor = "0";
  int pages = 0;
  do {
    const RespValue page =
        server.run({"Q.STATS", "q", "BY", "ERROR", "CURSOR", cursor, "COUNT", "7"});
    int64_t looked_at = 0;
    for (size_t i = 0; i < page.items[1].items.size(); i += 2) {
      const int64_t count = page.items[1].items[i + 1].number("count");
      counts[page.items[1].items[i].text] += count;
      looked_at += count;
    }
    CHECK(looked_at <= 7);
    cursor = page.items[0].text;
    ++pages;
  } while (cursor != "0");
  CHECK(pages == 8);
  CHECK(counts == std::map<std::string, int64_t>{{"no host h#", 17}, {"no room #", 33}});
  const auto reply = [&](const Words& more) {
    return server.run(Words{"Q.STATS", "q", "BY", "ERROR"} + more).show();
  };
  CHECK(reply({"CURSOR", "x"}) == "-ERR invalid cursor");
  CHECK(reply({"CURSOR", "s1"}) == "-ERR invalid cursor");
  CHECK(reply({"COUNT", "0"}) == "-BADFIELD field=count");
  const RespValue none = server.run({"Q.STATS", "missing", "BY", "ERROR", "CURSOR", "0"});
  CHECK(none.items[0].text == "0");
  CHECK(none.items[1].items.empty());
}

TEST_CASE("a group of failures is retried by its pattern") {
  QueueClient server;
  for (int i = 0; i < 9; ++i) {
    const std::string number = std::to_string(i);
    fail(server, "j" + number, i % 3 == 0 ? "no host h" + number : "no room " + number);
  }
  CHECK(
      server.run({"Q.LIST", "q", "WHERE", "ERROR", "NO HOST H6", "BRIEF"}).items[1].items.size() ==
      1);
  CHECK(server.run({"Q.LIST", "q", "WHERE", "PATTERN", "no host"}).show() == "[0 []]");
  CHECK(server.run({"Q.RETRY", "q", "WHERE", "STATE", "failed", "PATTERN", "no host h#"}).show() ==
        "[0 3]");
  CHECK(server.run({"Q.STATS", "q", "BY", "ERROR"}).items.size() == 2);
}

TEST_CASE("a walk that reads errors ends earlier the longer they are") {
  QueueClient server;
  server.run({"Q.CONFIG", "q", "SET", "retain_failed", "100000"});
  const auto steps = [&](const Words& where) {
    int64_t calls = 0;
    int64_t looked_at = 0;
    std::string cursor = "0";
    do {
      const RespValue page =
          server.run(Words{"Q.LIST", "q", "LOOK", "10000", "CURSOR", cursor, "WHERE"} + where);
      CHECK(page.items[1].items.empty());
      looked_at += std::stoll(page.items[2].text);
      cursor = page.items[0].text;
      ++calls;
    } while (cursor != "0");
    CHECK(looked_at == 3000);
    return calls;
  };
  for (int i = 0; i < 3000; ++i) fail(server, "j" + std::to_string(i), std::string(4000, 'x'));
  CHECK(steps({"STATE", "failed", "KEY", "none"}) == 1);
  CHECK(steps({"STATE", "failed", "ERROR", "none"}) >= 20);
  CHECK(steps({"IDPART", "none"}) >= 20);
  const RespValue all = server.run({"Q.LIST", "q", "LOOK", "10000", "COUNT", "5"});
  CHECK(all.items[1].items.size() == 5);
  CHECK(all.items[2].text == "5");
  CHECK(server.run({"Q.LIST", "missing", "LOOK", "10000"}).show() == "[0 [] 0]");
  const RespValue few = server.run({"Q.LIST", "q", "LOOK", "9", "WHERE", "KEY", "none"});
  CHECK(few.items[0].text != "0");
  CHECK(few.items[2].text == "9");
  CHECK(server.run({"Q.LIST", "q", "LOOK", "0"}).show() == "-BADFIELD field=look");
}

TEST_CASE("the first 64 KB of payloads are searched, and the longer they are the fewer at once") {
  QueueClient server;
  server.run({"Q.CONFIG", "q", "SET", "max_payload", "1000000"});
  const auto found = [&](const std::string& part) {
    return server.run({"Q.LIST", "q", "LOOK", "10000", "BRIEF", "WHERE", "PAYLOAD", part});
  };
  constexpr size_t kSearched = 64U << 10;
  const std::string behind = std::string(kSearched - 3, 'x') + "End\nBehind";
  for (int i = 0; i < 30; ++i) server.run({"Q.ADD", "q", "j" + std::to_string(i), behind});
  // 1,028 each, of 10,000.
  CHECK(found("end").items[1].items.size() == 10);
  CHECK(found("end").items[2].text == "10");
  CHECK(found("endless").items[2].text == "10");
  CHECK(found("end\n").items[1].items.empty());
  CHECK(found("").show() == "-BADFIELD field=payload");
}

TEST_CASE("times end a walk from either end") {
  QueueClient server;
  server.run({"Q.CONFIG", "q", "SET", "retain_failed", "100000"});
  for (int i = 0; i < 100; ++i) {
    fail(server, "j" + std::to_string(i), "x");
    server.advance(10);
  }
  const auto list = [&](const Words& words) {
    return server.run(Words{"Q.LIST", "q", "LOOK", "10000", "WHERE", "STATE", "failed"} + words);
  };
  const Words range = {"SINCE", "1700000000800", "UNTIL", "1700000000850", "BY", "AGE"};
  const RespValue oldest = list(range);
  REQUIRE(oldest.items[1].items.size() == 5);
  CHECK(oldest.items[1].items[0].field("id") == "j80");
  CHECK(oldest.items[2].text == "85");
  const RespValue newest = list(range + Words{"DESC"});
  REQUIRE(newest.items[1].items.size() == 5);
  CHECK(newest.items[1].items[0].field("id") == "j84");
  CHECK(newest.items[2].text == "20");
  CHECK(list({"SINCE", "-1"}).show() == "-BADFIELD field=since");
  CHECK(list({"ERROR", ""}).show() == "-BADFIELD field=error");
}

TEST_CASE("Q.PURGE of one job") {
  QueueClient server;
  fail(server, "f", "x");
  server.run({"Q.ADD", "q", "p", ""});
  CHECK(server.run({"Q.PURGE", "q", "f"}).text == "purged");
  CHECK(server.run({"Q.GET", "q", "f"}).is_null());
  CHECK(server.run({"Q.PURGE", "q", "f"}).show() == "-NOJOB id=f");
  CHECK(server.run({"Q.PURGE", "q", "p"}).text == "pending");
  CHECK(server.run({"Q.GET", "q", "p"}).field("state") == "pending");
  CHECK(server.run({"Q.PURGE", "missing", "p"}).show() == "-NOJOB id=p");
  CHECK(server.run({"Q.PURGE", "q", "f", "LIMIT", "1"}).show() == "-ERR syntax error");
  CHECK(server.run({"Q.PURGE", "q", "*"}).show() == "-BADFIELD field=id");
}

}  // namespace

// CLIENT PAUSE beside what the server itself holds.
#include "engine/clients/client_pause.h"

#include "tests/support/script_server.h"
#include "tests/support/test.h"

using namespace sluice;

TEST_CASE("the longest CLIENT PAUSE does not end by its time, a longer one is refused") {
  test::ScriptServer server;
  server.execution.set_times({1'700'000'000'000, 1'700'000'000'000, 5000, 0});
  CHECK(server.session.run({"CLIENT", "PAUSE", "9223372036854770807"}) ==
        "-ERR timeout is out of range\r\n");
  CHECK(server.session.run({"CLIENT", "PAUSE", "9223372036854770806"}) == "+OK\r\n");
  CHECK(server.engine.pause.mode(INT64_MAX / 2) == PauseMode::kAll);
}

TEST_CASE("a command that a pause meets is denied once in ACL LOG") {
  test::ScriptServer server;
  server.execution.set_times({1'700'000'000'000, 1'700'000'000'000, 5000, 0});
  CHECK(server.session.run({"ACL", "SETUSER", "eve", "on", "nopass", "~ok:*", "+get", "+acl"}) ==
        "+OK\r\n");
  CHECK(server.session.run({"CLIENT", "PAUSE", "1000"}) == "+OK\r\n");
  CHECK(server.session.run({"AUTH", "eve", "x"}) == "+OK\r\n");
  const std::vector<Bytes> denied = {"GET", "secret"};
  CHECK_FALSE(server.execution.must_wait(server.session.client, Request(std::span(denied))));
  CHECK(server.session.run(std::span(denied)).starts_with("-NOPERM"));
  const std::string log = server.session.run({"ACL", "LOG"});
  CHECK(log.find("$5\r\ncount\r\n:1\r\n") != std::string::npos);
}

TEST_CASE("what the server holds and CLIENT PAUSE each last until their own end") {
  ClientPause pause;
  CHECK(pause.end_ms() == 0);
  pause.begin(PauseMode::kWrites, 100, 900);
  pause.hold(Hold::kJournal, 500);
  CHECK(pause.mode(499) == PauseMode::kData);
  CHECK(pause.mode(500) == PauseMode::kWrites);
  CHECK(pause.mode(900) == PauseMode::kNone);
  CHECK(pause.next_end_ms(499) == 500);
  CHECK(pause.next_end_ms(500) == 900);
  CHECK(pause.next_end_ms(900) == 900);
  CHECK(pause.next_end_ms(901) == 901);
  pause.hold(Hold::kHandOver, 2000);
  CHECK(pause.mode(500) == PauseMode::kData);
  CHECK(pause.mode(1999) == PauseMode::kData);
  CHECK(pause.end_ms() == 2000);
  CHECK(pause.asked_end_ms() == 900);
}

TEST_CASE("CLIENT PAUSE only becomes stricter and longer while it runs") {
  ClientPause pause;
  pause.begin(PauseMode::kWrites, 100, 900);
  pause.hold(Hold::kJournal, 500);
  pause.begin(PauseMode::kAll, 100, 300);
  CHECK(pause.mode(899) == PauseMode::kAll);
  CHECK(pause.mode(900) == PauseMode::kNone);
  pause.begin(PauseMode::kWrites, 100, 1000);
  CHECK(pause.mode(999) == PauseMode::kAll);
  pause.begin(PauseMode::kWrites, 1000, 1100);
  CHECK(pause.mode(1000) == PauseMode::kWrites);
  CHECK(pause.end_ms() == 1100);
  pause.end();
  CHECK(pause.mode(100) == PauseMode::kData);
  CHECK(pause.end_ms() == 500);
}

TEST_CASE("a hold stops what reads or changes data, by itself and in a transaction") {
  test::ScriptServer server;
  server.execution.set_times({1'700'000'000'000, 1'700'000'000'000, 5000, 0});
  server.session.run({"MULTI"});
  server.session.run({"GET", "a"});
  server.engine.pause.hold(Hold::kHandOver, 10'000);
  const auto waits = [&](Client& client, std::vector<Bytes> args) {
    return server.execution.must_wait(client, Request(std::span<const Bytes>(args)));
  };
  CHECK(waits(server.session.client, {"EXEC"}));
  test::EngineSession other(server.engine, server.execution);
  CHECK(waits(other.client, {"GET", "a"}));
  CHECK(waits(other.client, {"WATCH", "a"}));
  CHECK_FALSE(waits(other.client, {"CLIENT", "ID"}));
  CHECK_FALSE(waits(other.client, {"MULTI"}));
  CHECK_FALSE(waits(other.client, {"EXEC"}));
}

TEST_CASE("the end of a hold leaves CLIENT PAUSE and other holds as they are") {
  ClientPause pause;
  pause.begin(PauseMode::kWrites, 100, 900);
  pause.hold(Hold::kHandOver, 5000);
  pause.hold(Hold::kJournal, 400);
  pause.release(Hold::kHandOver);
  CHECK_FALSE(pause.is_held(Hold::kHandOver, 100));
  CHECK(pause.is_held(Hold::kJournal, 100));
  pause.release(Hold::kJournal);
  CHECK(pause.mode(100) == PauseMode::kWrites);
  CHECK(pause.end_ms() == 900);
  pause.end_if_over(899);
  CHECK(pause.end_ms() == 900);
  pause.end_if_over(900);
  CHECK(pause.end_ms() == 0);
}

TEST_CASE("a hold ends by its time") {
  ClientPause pause;
  pause.hold(Hold::kJournal, 500);
  CHECK(pause.mode(499) == PauseMode::kData);
  CHECK(pause.mode(500) == PauseMode::kNone);
  pause.end_if_over(500);
  CHECK(pause.end_ms() == 0);
}

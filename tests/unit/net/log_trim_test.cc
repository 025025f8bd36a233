// Up to where the replicated log may be trimmed.
#include "net/group/log_trim.h"

#include "storage/group_keys.h"
#include "tests/support/test.h"

using namespace sluice;

namespace {

GroupMember node(const std::string& name, Lsn lsn, Lsn checkpoint) {
  GroupMember member;
  member.name = name;
  member.lsn = lsn;
  member.checkpoint_lsn = checkpoint;
  return member;
}

// A place every 16 frames of 10 units each.
LogTrim trim_with(uint64_t places) {
  LogTrim trim;
  for (uint64_t i = 1; i <= places; ++i) {
    trim.note({"cluster", "1", 2, 16 * i, 160 * i, static_cast<uint32_t>(i)});
  }
  return trim;
}

// The seq of the place to trim up to; 0: none.
uint64_t target(const LogTrim& trim, const std::vector<GroupMember>& members,
                const std::map<std::string, Lsn>& holds, size_t copies) {
  const auto place = trim.target(LogTrim::limit(members, holds, copies, {}));
  return place.has_value() ? place->seq : 0;
}

std::string why(const std::vector<GroupMember>& members, const std::map<std::string, Lsn>& holds,
                size_t copies, const std::set<std::string>& hanging = {}) {
  return LogTrim::limit(members, holds, copies, hanging).why;
}

}  // namespace

TEST_CASE("the log is trimmed up to the oldest of the checkpoints that are to be kept") {
  LogTrim trim = trim_with(10);
  const std::vector<GroupMember> two = {node("a", 1600, 1000), node("b", 1600, 500)};
  CHECK(target(trim, two, {}, 2) == 48);  // lsn 480 <= 500 < 640
  CHECK(target(trim, two, {}, 1) == 96);  // lsn 960 <= 1000
  CHECK(target(trim, two, {}, 3) == 0);   // fewer nodes than copies
  CHECK(target(trim, {node("a", 1600, 0), node("b", 1600, 900)}, {}, 2) == 0);
  CHECK(trim.target(LogTrim::limit(two, {}, 2, {}))->chain == 3);
  // Exactly at a checkpoint's beginning.
  CHECK(target(trim, {node("a", 1600, 480)}, {}, 1) == 48);
  trim.set_mark(encode_position({"cluster", "1", 2, 96, 960, 6}));
  CHECK(target(trim, two, {}, 1) == 0);  // already
}

TEST_CASE("a trim leaves what a loading node, or a live one that is behind, still needs") {
  const LogTrim trim = trim_with(10);
  const std::vector<GroupMember> two = {node("a", 1600, 1000), node("b", 1600, 1000)};
  CHECK(target(trim, two, {{"c", 320}}, 2) == 32);
  CHECK(target(trim, two, {{"c", 0}}, 2) == 0);
  CHECK(target(trim, {node("a", 1600, 1000), node("b", 700, 650)}, {}, 1) == 64);
}

TEST_CASE("a node that hangs keeps nothing: neither what it applies nor its hold, nor as a copy") {
  const std::vector<GroupMember> three = {node("a", 1600, 1000), node("b", 700, 650),
                                          node("c", 1600, 800)};
  CHECK(LogTrim::limit(three, {{"b", 320}}, 2, {}).lsn == 320);
  CHECK(LogTrim::limit(three, {{"b", 320}}, 2, {"b"}).lsn == 800);
  CHECK(LogTrim::limit(three, {{"b", 320}, {"d", 480}}, 2, {"b"}).lsn == 480);
  CHECK(LogTrim::limit(three, {}, 1, {"b", "c"}).lsn == 1000);
  CHECK(LogTrim::limit(three, {}, 3, {"b"}).lsn == 0);
  CHECK(
      why(three, {}, 2, {"b", "c"}) ==
      "checkpoint-copies wants the checkpoints of 2 servers, and 1 lives: the server \"b\" hangs");
}

TEST_CASE("what keeps the log is named: the server, and what it lacks") {
  const std::vector<GroupMember> two = {node("a", 1600, 1000), node("b", 1600, 500)};
  CHECK(why(two, {}, 2) == "the newest checkpoint of the server \"b\" begins at lsn 500");
  CHECK(why(two, {}, 1) == "the newest checkpoint of the server \"a\" begins at lsn 1000");
  CHECK(why(two, {}, 3) == "checkpoint-copies wants the checkpoints of 3 servers, and 2 lives");
  CHECK(why({node("a", 1600, 0)}, {}, 1) == "the server \"a\" has no checkpoint yet");
  CHECK(why({node("a", 1600, 1000), node("b", 700, 650)}, {}, 1) ==
        "the server \"b\" has applied no more than lsn 700");
  CHECK(why(two, {{"c", 320}}, 2) ==
        "the server \"c\" loads a copy of the data, which ends at lsn 320");
}

TEST_CASE("places are remembered in bounded number, and forgotten when trimmed") {
  LogTrim trim = trim_with(LogTrim::kMaxPlaces * 3);
  const Lsn all = 160 * LogTrim::kMaxPlaces * 3;
  const uint64_t last = target(trim, {node("a", all, all)}, {}, 1);
  CHECK(last > 16 * LogTrim::kMaxPlaces * 3 - 16 * 8);
  const uint64_t half = target(trim, {node("a", all, all / 2)}, {}, 1);
  CHECK(half <= last / 2 + 16);
  CHECK(half >= last / 2 - 16 * 8);
  trim.forget(half);
  CHECK(target(trim, {node("a", all, all / 2)}, {}, 1) == 0);
  CHECK(target(trim, {node("a", all, all)}, {}, 1) == last);
}

// The keys of a group and the texts of its values.
#include "storage/group_keys.h"

#include "tests/support/test.h"

using namespace sluice;

TEST_CASE("the keys of a group lie under its prefix, and those of frames sort by number") {
  const GroupKeys keys("main", "1");
  CHECK(keys.epoch() == "/sluice/main/g/1/epoch");
  CHECK(keys.beat() == "/sluice/main/g/1/beat");
  CHECK(keys.trim() == "/sluice/main/g/1/trim");
  CHECK(keys.pause() == "/sluice/main/g/1/pause");
  CHECK(keys.nodes() == "/sluice/main/g/1/node/");
  CHECK(keys.holds() == "/sluice/main/g/1/hold/");
  CHECK(keys.log(0x1f) == "/sluice/main/g/1/log/000000000000001f");
  CHECK(keys.log(9) < keys.log(10));
  CHECK(keys.log(255) < keys.log(256));
  for (const uint64_t seq : {uint64_t{0}, uint64_t{0xabcdef}, UINT64_MAX}) {
    CHECK(keys.log_seq(keys.log(seq)) == seq);
  }
  for (const char* other :
       {"/sluice/main/g/1/log/", "/sluice/main/g/1/log/000000000000001", "/sluice/main/g/1/epoch",
        "/sluice/main/g/1/log/000000000000001F", "/sluice/main/g/1/log/00000000000000001",
        "/sluice/main/g/2/log/000000000000001f", "/sluice/main/g/1/log/00000000000000 1"}) {
    CHECK(!keys.log_seq(other).has_value());
  }
}

TEST_CASE("names are short, and safe in a key and in a value") {
  for (const char* good : {"1", "main", "node-1.example_2", "--"}) CHECK(is_group_name(good));
  CHECK(is_group_name(std::string(64, 'a')));
  for (const char* bad : {"", "-", "a b", "a/b", "a\n", "\xc3\xa4"}) CHECK(!is_group_name(bad));
  CHECK(!is_group_name(std::string(65, 'a')));
}

TEST_CASE("the epoch is a line of text") {
  EpochValue value{"c1d2", 7, "n1", "r9", true, "n2", 1234, 1500};
  CHECK(encode_epoch(value) == "1 c1d2 7 n1 r9 ready n2 1234 1500");
  CHECK(decode_epoch(encode_epoch(value)).value() == value);
  value = {"c1d2", UINT64_MAX, "", "", false, "", 0, 0};
  CHECK(encode_epoch(value) == "1 c1d2 18446744073709551615 - - taken - 0 0");
  CHECK(decode_epoch(encode_epoch(value)).value() == value);
}

TEST_CASE("beats, pauses and positions are lines of text") {
  const BeatValue beat{1, 2, 3, 4, -5};
  CHECK(encode_beat(beat) == "1 1 2 3 4 -5");
  CHECK(decode_beat("1 1 2 3 4 -5").value() == beat);
  const PauseValue pause{1'700'000'000'000, "n2", 0x1f};
  CHECK(encode_pause(pause) == "1 n000000000000001f 1700000000000 n2");
  CHECK(decode_pause(encode_pause(pause)).value() == pause);
  LogPosition position{"c1", "g", 1, 2, 3, UINT32_MAX, 5};
  CHECK(encode_position(position) == "1 c1 g 1 2 3 4294967295 5");
  CHECK(decode_position("1 c1 g 1 2 3 4294967295 5").value() == position);
  position.bytes = 0;
  CHECK(decode_position("1 c1 g 1 2 3 4294967295").value() == position);
}

TEST_CASE("the record of a node ends with words that may be absent") {
  GroupMember member;
  member.name = "n1";
  member.run_id = "r1";
  member.host = "10.0.0.1";
  member.port = 6379;
  member.primary = true;
  member.lsn = 7;
  const std::string old = "1 r1 10.0.0.1 6379 0 0 0 100 primary 7 0 0";
  CHECK(encode_member(member) == old);
  CHECK(decode_member("n1", old).value() == member);
  member.wants_values = true;
  CHECK(encode_member(member) == old + " values");
  CHECK(decode_member("n1", old + " values").value() == member);
  member.starting = true;
  CHECK(encode_member(member) == old + " values starting");
  CHECK(decode_member("n1", old + " values starting").value() == member);
  member.starting = false;
  member.version = "0.1.0";
  member.config_mark = "1a2b";
  member.users_mark = "3c4d";
  const std::string full = old + " values version=0.1.0 config=1a2b users=3c4d";
  CHECK(encode_member(member) == full);
  CHECK(decode_member("n1", full).value() == member);
}

TEST_CASE("a later build may add words to the record of a node, and nothing else") {
  const std::string old = "1 r1 10.0.0.1 6379 0 0 0 100 standby 7 0 0";
  const auto read = [](const std::string& text) { return decode_member("n1", text).value(); };
  CHECK(read(old + " later users=3c4d other=1 values ").users_mark == "3c4d");
  CHECK(read(old + " later users=3c4d other=1 values ").wants_values);
  CHECK(read(old + " later starting").starting);
  CHECK(!read(old + " later starting=1 startingx").starting);
  CHECK(read(old + " later valuesx users xusers=3c4d") == read(old));
  // Its version is shown in a line of INFO.
  CHECK(read(old + " version=a,b users=") == read(old));
  const auto wrong = [](Bytes text) { return decode_member("n1", text).status().message(); };
  CHECK(wrong("1 r1 10.0.0.1 6379 0 0 0 100 standby 7 0").ends_with("wrong checkpoint's bytes"));
  CHECK(wrong("1 r1 10.0.0.1 6379 0 0 0 100 standby 7 0 values").ends_with("checkpoint's bytes"));
  CHECK(wrong("2" + old.substr(1)).ends_with("wrong version"));
}

TEST_CASE("texts of pauses compare as their numbers do, and above those of older builds") {
  const std::string old = "1 9700000000000 n2";
  CHECK(decode_pause(old).value() == PauseValue{9'700'000'000'000, "n2", 0});
  std::string before = old;
  for (const uint64_t number : {uint64_t{0}, uint64_t{9}, uint64_t{0x10}, UINT64_MAX}) {
    for (const char* node : {"n1", "n9"}) {
      const std::string next = encode_pause({static_cast<int64_t>(number % 7), node, number});
      CHECK(next > before);
      before = next;
    }
  }
}

TEST_CASE("a value that is wrong says which field") {
  const auto epoch = [](Bytes text) { return decode_epoch(text).status().message(); };
  CHECK(epoch("") == "the epoch \"\" has a wrong version");
  CHECK(epoch("2 c 7 n r ready - 0") == "the epoch \"2 c 7 n r ready - 0\" has a wrong version");
  CHECK(epoch("1 - 7 n r ready - 0").ends_with("wrong cluster id"));
  CHECK(epoch("1 c -7 n r ready - 0").ends_with("wrong number"));
  CHECK(epoch("1 c 7 n/ r ready - 0").ends_with("wrong holder"));
  CHECK(epoch("1 c 7 n  ready - 0").ends_with("wrong run id"));
  CHECK(epoch("1 c 7 n r Ready - 0").ends_with("wrong state"));
  CHECK(epoch("1 c 7 n r ready  0").ends_with("wrong preferred node"));
  CHECK(epoch("1 c 7 n r ready -").ends_with("wrong base lsn"));
  CHECK(epoch("1 c 7 n r ready - 0").ends_with("wrong failover timeout"));
  CHECK(epoch("1 c 7 n r ready - 0 9 ").ends_with("wrong end"));
  CHECK(epoch("1 c 7 n r ready - 0 9 1").ends_with("wrong end"));
  CHECK(decode_pause("1 soon n2").status().message().ends_with("wrong time"));
  CHECK(decode_pause("1 n12 9 n2").status().message().ends_with("wrong number"));
  CHECK(decode_pause("1 ").status().message().ends_with("wrong time"));
  CHECK(decode_beat("1 1 2 3 4").status().message().ends_with("wrong time"));
  CHECK(decode_position("1 c g 1 2 3 4294967296").status().message().ends_with("wrong chain"));
  CHECK(decode_position("1 c g 1 2 3 4 -").status().message().ends_with("wrong bytes"));
  CHECK(decode_position("1 c g 1 2 3 4 5 6").status().message().ends_with("wrong end"));
}

// Users and their rights. Replies and texts were compared with redis-server 7.0.15
// (tests/transcripts/acl).
#include "engine/access/acl.h"

#include <atomic>
#include <random>
#include <set>
#include <thread>

#include "engine/access/passwords.h"
#include "engine/commands/families.h"
#include "engine/table/command.h"
#include "engine/table/command_names.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

namespace sluice {
namespace {

// Rules refer to commands.
[[maybe_unused]] const bool kHasCommands = (install_commands(), true);

using Words = std::vector<std::string>;

Words split(const std::string& text) {
  Words words;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    if (end != begin) words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::string set_user(Acl& acl, const std::string& name, const std::string& rules) {
  const Words words = split(rules);
  return acl.set_user(name, std::vector<Bytes>(words.begin(), words.end())).message();
}

AclRules rules_of(const std::string& text) {
  AclRules rules(false);
  Words words = split(text);
  REQUIRE(join_selectors(words));
  for (const std::string& word : words) {
    INFO("rule ", word);
    REQUIRE_EQ(rules.apply(word), nullptr);
  }
  return rules;
}

// As many arguments as the command takes, all of them "1", so that keys and numbers of keys are 1.
std::vector<Bytes> plain_arguments(const Command& command) {
  const int count = command.arity < 0 ? -command.arity : command.arity;
  std::vector<Bytes> args(static_cast<size_t>(count), "1");
  args[0] = command.container != nullptr ? command.container->name : command.name;
  if (command.container != nullptr) args[1] = command.name;
  return args;
}

bool may_run(const AclRules& rules, const Command& command) {
  return rules.check(command, plain_arguments(command)).denial != Denial::kCommand;
}

// Includes subcommands.
std::vector<const Command*> every_command() {
  std::vector<const Command*> all;
  const CommandTable& table = CommandTable::instance();
  for (size_t id = 0; id < table.id_limit(); ++id) all.push_back(&table.by_id(id));
  return all;
}

Denial check_line(const AclRules& rules, const std::string& line) {
  const Words words = split(line);
  const std::vector<Bytes> args(words.begin(), words.end());
  const Command* command = CommandTable::instance().find(args[0]);
  REQUIRE_NE(command, nullptr);
  if (!command->subcommands.empty()) {
    command = CommandTable::find_subcommand(*command, args[1]);
    REQUIRE_NE(command, nullptr);
  }
  return rules.check(*command, args).denial;
}

// --- Commands ---

TEST_CASE("a new user may run nothing but what makes him somebody else") {
  const AclRules rules(false);
  for (const Command* command : every_command()) {
    INFO(CommandTable::full_name(*command));
    CHECK_EQ(may_run(rules, *command), (command->flags & kNoAuth) != 0);
  }
}

TEST_CASE("+@all allows every command, and -@all takes every one away again") {
  const AclRules all = rules_of("+@all");
  const AclRules none = rules_of("+@all +select|1 -@all");
  for (const Command* command : every_command()) {
    INFO(CommandTable::full_name(*command));
    CHECK(may_run(all, *command));
    CHECK_EQ(may_run(none, *command), (command->flags & kNoAuth) != 0);
  }
  CHECK_FALSE(all.permissions().is_everything());
  CHECK(rules_of("allkeys allchannels +@all").permissions().is_everything());
  CHECK_FALSE(rules_of("allkeys allchannels +@all -get").permissions().is_everything());
  CHECK(rules_of("allkeys allchannels +@all -get +get").permissions().is_everything());
}

TEST_CASE("each category allows the commands of its rows, and a container's subcommands with it") {
  for (const FlagName& category : kAclCategoryNames) {
    const AclRules added = rules_of("-@all +@" + std::string(category.name));
    const AclRules taken = rules_of("+@all -@" + std::string(category.name));
    for (const Command* command : every_command()) {
      INFO(category.name, " ", CommandTable::full_name(*command));
      const bool in =
          (command->acl & category.flag) != 0 ||
          (command->container != nullptr && (command->container->acl & category.flag) != 0);
      const bool always = (command->flags & kNoAuth) != 0;
      CHECK_EQ(may_run(added, *command), in || always);
      CHECK_EQ(may_run(taken, *command), !in || always);
    }
  }
}

TEST_CASE("each command can be allowed and taken away alone, a container with its subcommands") {
  for (const Command* chosen : every_command()) {
    const std::string name = CommandTable::full_name(*chosen);
    const AclRules added = rules_of("+" + name);
    const AclRules taken = rules_of("+@all -" + name);
    for (const Command* command : every_command()) {
      if ((command->flags & kNoAuth) != 0) continue;
      const bool meant = command == chosen || command->container == chosen;
      INFO(name, " and ", CommandTable::full_name(*command));
      CHECK_EQ(may_run(added, *command), meant);
      CHECK_EQ(may_run(taken, *command), !meant);
    }
  }
}

TEST_CASE("a first argument may be allowed where the command is not") {
  const AclRules rules = rules_of("+select|1 +select|a ~*");
  CHECK_EQ(check_line(rules, "select 1"), Denial::kNone);
  CHECK_EQ(check_line(rules, "SELECT A"), Denial::kNone);
  CHECK_EQ(check_line(rules, "select 0"), Denial::kCommand);
  CHECK_EQ(check_line(rules_of("+select|1 -select"), "select 1"), Denial::kCommand);
  CHECK_EQ(check_line(rules_of("+select|1 -@fast"), "select 1"), Denial::kCommand);
}

TEST_CASE("rules may name commands of Redis that are refused here") {
  for (const Bytes name : {"migrate", "failover", "psync", "sync", "replconf", "restore-asking"}) {
    INFO(name);
    CHECK_NE(CommandTable::instance().find(name), nullptr);
  }
  CHECK_EQ(rules_of("+migrate|x +get").permissions().describe_commands(), "-@all +get +migrate|x");
  CHECK_EQ(rules_of("-@all +@geo").permissions().describe_commands(), "-@all +@geo");
}

// --- Keys and channels ---

TEST_CASE("every command with keys is refused to whom has none") {
  const AclRules rules = rules_of("+@all ~2*");
  std::vector<KeyPosition> positions;
  size_t refused = 0;
  for (const Command* command : every_command()) {
    if ((command->flags & kContainer) != 0) continue;
    INFO(CommandTable::full_name(*command));
    const std::vector<Bytes> args = plain_arguments(*command);
    const bool has_keys = find_keys_with_flags(*command, args, positions) && !positions.empty();
    const Denial denial = rules.check(*command, args).denial;
    // A key that is neither read nor written (WATCH) must also match some pattern.
    CHECK_EQ(denial == Denial::kKey, has_keys);
    CHECK_EQ(rules_of("+@all allkeys allchannels").check(*command, args).denial, Denial::kNone);
    if (has_keys) ++refused;
  }
  CHECK_GT(refused, 80);
}

TEST_CASE("an only key that is told at a glance is the one that a search finds") {
  std::vector<KeyPosition> positions;
  size_t told = 0;
  for (const Command* command : every_command()) {
    INFO(CommandTable::full_name(*command));
    std::vector<Bytes> args = plain_arguments(*command);
    const size_t only = only_key_argument(*command, args);
    if (only == 0 || (command->keys[0].flags & kKeyNotKey) != 0) continue;
    CHECK(find_keys_with_flags(*command, args, positions));
    REQUIRE_EQ(positions.size(), 1);
    CHECK_EQ(positions[0].index, only);
    ++told;
    if (command->keys[0].find != KeySpec::Find::kKeyNum) continue;
    // With several, it cannot tell which.
    args[static_cast<size_t>(command->keys[0].index)] = "2";
    CHECK_EQ(only_key_argument(*command, args), 0);
  }
  CHECK_GT(told, 80);
}

TEST_CASE("resetkeys takes all keys away, and a rule that is repeated adds no right") {
  const std::vector<Bytes> get = {"get", "a"};
  const std::vector<Bytes> set = {"set", "a", "v"};
  const auto denial = [](const std::string& rules, const std::vector<Bytes>& words) {
    return rules_of(rules).check(*CommandTable::instance().find(words[0]), words).denial;
  };
  for (const char* keys : {"allkeys", "~*", "~a", "%R~a", "allkeys resetkeys ~a"}) {
    CAPTURE(keys);
    const std::string rules = std::string("+@all ") + keys;
    CHECK(denial(rules, get) == Denial::kNone);
    CHECK(denial(rules + " resetkeys", get) == Denial::kKey);
  }
  CHECK(denial("+@all %R~a %R~a", set) == Denial::kKey);
  CHECK(denial("+@all %W~a %W~a", get) == Denial::kKey);
  CHECK(denial("+@all %R~a %W~a", set) == Denial::kNone);
}

TEST_CASE("reading and writing keys are rights of their own") {
  const AclRules rules = rules_of("+@all allchannels ~all:* %R~ro:* %W~wo:*");
  struct Line {
    const char* command;
    Denial denial;
  };
  constexpr Denial kFine = Denial::kNone;
  constexpr Denial kKey = Denial::kKey;
  const Line lines[] = {
      {"get all:1", kFine},
      {"get ro:1", kFine},
      {"get wo:1", kKey},
      {"get other", kKey},
      {"set all:1 v", kFine},
      {"set ro:1 v", kKey},
      {"set wo:1 v", kFine},
      {"set wo:1 v EX 10", kFine},
      {"set wo:1 v GET", kKey},
      {"set wo:1 GET", kFine},
      {"set all:1 v get", kFine},
      {"getset wo:1 v", kKey},
      {"append wo:1 v", kFine},
      {"incr wo:1", kKey},
      {"mget all:1 ro:1 ro:2", kFine},
      {"mget all:1 wo:1", kKey},
      {"mset all:1 v wo:1 v", kFine},
      {"mset all:1 v ro:1 v", kKey},
      {"del wo:1", kFine},
      {"del ro:1", kKey},
      {"delifeq all:1 v", kFine},
      {"delifeq wo:1 v", kKey},
      {"delifeq ro:1 v", kKey},
      {"exists wo:1", kFine},
      {"exists other", kKey},
      {"rename all:1 wo:1", kFine},
      {"rename wo:1 all:1", kKey},
      {"rename ro:1 wo:1", kKey},
      {"zunionstore wo:1 2 ro:1 ro:2", kFine},
      {"zunionstore wo:1 2 ro:1 wo:2", kKey},
      {"zunionstore ro:1 1 ro:2", kKey},
      {"sinterstore wo:1 ro:1 ro:2", kFine},
      {"lmove all:1 wo:1 LEFT LEFT", kFine},
      {"lmove ro:1 wo:1 LEFT LEFT", kKey},
      {"blpop all:1 other 0", kKey},
      {"lmpop 1 all:1 LEFT", kFine},
      {"lmpop 1 other LEFT", kKey},
      {"lmpop x other LEFT", kFine},  // left to the handler to reject
      {"zadd wo:1 1 m", kFine},
      {"zadd ro:1 1 m", kKey},
      {"sort ro:1 store wo:1", kFine},
      {"sort ro:1 store ro:2", kKey},
      {"sort ro:1 limit 0 store store ro:2", kKey},
      {"bitfield ro:1 get u8 0 overflow fail get u8 8", kFine},
      {"bitfield ro:1 get u8 0 set u8 0 1", kKey},
      {"bitfield ro:1 overflow fail incrby u8 0 1", kKey},
      {"bitfield wo:1 get u8 0", kKey},
      {"eval x 0 other", kFine},
      {"eval x 1 other", kKey},
      {"keys other*", kFine},
      {"watch other", kKey},
      {"watch wo:1", kFine},
      {"ping", kFine},
  };
  for (const Line& line : lines) {
    INFO(line.command);
    CHECK_EQ(check_line(rules, line.command), line.denial);
  }
}

TEST_CASE("channels match the user's patterns, patterns must be the same") {
  const AclRules rules = rules_of("+@all allkeys &news:* &b");
  CHECK_EQ(check_line(rules, "publish news:a x"), Denial::kNone);
  CHECK_EQ(check_line(rules, "publish b news:a"), Denial::kNone);
  CHECK_EQ(check_line(rules, "publish other news:a"), Denial::kChannel);
  CHECK_EQ(check_line(rules, "spublish other x"), Denial::kChannel);
  CHECK_EQ(check_line(rules, "subscribe news:a b"), Denial::kNone);
  CHECK_EQ(check_line(rules, "subscribe news:a other"), Denial::kChannel);
  CHECK_EQ(check_line(rules, "ssubscribe other"), Denial::kChannel);
  CHECK_EQ(check_line(rules, "psubscribe news:*"), Denial::kNone);
  CHECK_EQ(check_line(rules, "psubscribe news:a*"), Denial::kChannel);
  CHECK_EQ(check_line(rules, "unsubscribe other"), Denial::kNone);
  CHECK_EQ(check_line(rules, "punsubscribe"), Denial::kNone);
  CHECK_EQ(check_line(rules, "pubsub channels"), Denial::kNone);
}

// --- Rules as words ---

TEST_CASE("a bad rule is refused with its reason and changes nothing") {
  Acl acl;
  REQUIRE_EQ(set_user(acl, "u", "on >pw ~a &b +get"), "");
  const std::string before = Acl::line_of(*acl.find("u"));
  for (const char* rule :
       {"foo", "+nosuch", "-nosuch", "+@nosuch", "+get|", "+client|nosuch", "+config|get|x",
        "-get|x", "%~a", "%X~a", "%RR~a", "#short", "!short", "<nosuch", ")", "+", "-"}) {
    INFO(rule);
    const std::string error = set_user(acl, "u", std::string("off nopass +@all ~c ") + rule);
    CHECK(error.starts_with("Error in ACL SETUSER modifier '" + std::string(rule) + "': "));
    CHECK_EQ(Acl::line_of(*acl.find("u")), before);
    CHECK_FALSE(set_user(acl, "nobody", rule).empty());
    CHECK_FALSE(acl.exists("nobody"));
  }
  CHECK_EQ(set_user(acl, "u", "off (~c (+get"),
           "Unmatched parenthesis in acl selector starting at '(+get'.");
  CHECK_EQ(Acl::line_of(*acl.find("u")), before);
  CHECK_FALSE(set_user(acl, "u", "~* ~b").empty());
  CHECK_FALSE(set_user(acl, "u", "&* &b").empty());
  CHECK_EQ(acl.set_user("a b", {}).message(), "Usernames can't contain spaces or null characters");
}

TEST_CASE("the description of any rights makes the same rights again") {
  const Words commands = {"get",  "set",  "config", "config|get", "client|id",
                          "eval", "ping", "acl",    "migrate",    "sync"};
  for (const uint64_t seed : testing::seeds(200, 7919)) {
    testing::use_seed(seed);
    INFO("seed ", seed);
    std::mt19937_64 random(seed);
    AclRules rules(false);
    std::string said;
    for (uint64_t i = 0, count = random() % 12; i < count; ++i) {
      const std::string sign = random() % 2 == 0 ? "+" : "-";
      std::string rule;
      switch (random() % 6) {
        case 0:
          rule = sign + "@all";
          break;
        case 1:
        case 2:
          rule = sign + "@" + kAclCategoryNames[random() % std::size(kAclCategoryNames)].name;
          break;
        case 3:
          rule = sign + commands[random() % commands.size()];
          break;
        case 4:
          rule = "+select|" + std::to_string(random() % 3);
          break;
        default:
          rule = (random() % 2 == 0 ? "%R~" : "~") + std::to_string(random() % 3);
          break;
      }
      said += rule + " ";
      REQUIRE_EQ(rules.apply(rule), nullptr);
    }
    INFO(said);
    const AclRules again = rules_of(rules.describe());
    CHECK_EQ(again.describe(), rules.describe());
    for (const Command* command : every_command()) {
      const std::vector<Bytes> args = plain_arguments(*command);
      CHECK_EQ(again.check(*command, args).denial, rules.check(*command, args).denial);
    }
  }
}

// --- Passwords ---

TEST_CASE("a user comes in by any of his passwords while he is on") {
  Acl acl;
  CHECK_EQ(acl.authenticate("nobody", ""), nullptr);
  REQUIRE_EQ(set_user(acl, "u", ">one >two"), "");
  CHECK_EQ(acl.authenticate("u", "one"), nullptr);
  REQUIRE_EQ(set_user(acl, "u", "on"), "");
  CHECK_EQ(acl.authenticate("u", "one"), acl.find("u"));
  CHECK_EQ(acl.authenticate("u", "two"), acl.find("u"));
  CHECK_EQ(acl.authenticate("u", "three"), nullptr);
  CHECK_EQ(acl.authenticate("u", hash_password("one")), nullptr);
  REQUIRE_EQ(set_user(acl, "u", "<one #" + hash_password("four")), "");
  CHECK_EQ(acl.authenticate("u", "one"), nullptr);
  CHECK_EQ(acl.authenticate("u", "four"), acl.find("u"));
  REQUIRE_EQ(set_user(acl, "u", "nopass"), "");
  CHECK_EQ(acl.authenticate("u", "anything"), acl.find("u"));
  REQUIRE_EQ(set_user(acl, "u", "resetpass"), "");
  CHECK_EQ(acl.authenticate("u", "four"), nullptr);
  CHECK_EQ(acl.authenticate("u", ""), nullptr);
}

TEST_CASE("only the hash of a password is kept, and random ones differ") {
  CHECK_EQ(hash_password("secret"),
           "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b");
  CHECK(rules_of(">secret").describe().find("#2bb80d537b1da3e3") != std::string::npos);
  CHECK_EQ(rules_of(">secret").describe().find("secret"), std::string::npos);
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) seen.insert(random_hex(64));
  CHECK_EQ(seen.size(), 100);
  CHECK_EQ(random_hex(3).size(), 3);
}

TEST_CASE("a password asks new connections, not those that speak already") {
  Acl acl;
  const std::shared_ptr<User> before = acl.user_at_connect();
  REQUIRE_NE(before, nullptr);
  CHECK(before->unrestricted.load());
  acl.set_default_password("sesame");
  CHECK_EQ(acl.user_at_connect(), nullptr);
  CHECK(before->unrestricted.load());
  CHECK_EQ(acl.authenticate("default", "sesame"), before);
  CHECK_EQ(acl.authenticate("default", ""), nullptr);
  acl.set_default_password("another");
  CHECK_EQ(acl.authenticate("default", "sesame"), nullptr);
  acl.set_default_password("");
  CHECK_EQ(acl.user_at_connect(), before);
}

TEST_CASE("nobody is the default user while it is off") {
  Acl acl;
  REQUIRE_EQ(set_user(acl, "default", "off"), "");
  CHECK_EQ(acl.user_at_connect(), nullptr);
}

TEST_CASE("connections of a deleted user may do nothing any more") {
  Acl acl;
  REQUIRE_EQ(set_user(acl, "u", "on nopass ~* &* +@all"), "");
  const std::shared_ptr<User> user = acl.authenticate("u", "");
  REQUIRE(user->unrestricted.load());
  CHECK(acl.delete_user("u"));
  CHECK_FALSE(acl.delete_user("u"));
  CHECK(user->deleted.load());
  CHECK_FALSE(user->unrestricted.load());
  const std::vector<Bytes> args = {"get", "k"};
  const Command& get = *CommandTable::instance().find("get");
  CHECK_EQ(Acl::refusal(user->rules()->check(get, args).denial, get),
           "NOPERM this user has no permissions to run the 'get' command");
}

// --- Start ---

TEST_CASE("users come from lines or from a file, all or none") {
  Acl acl;
  const std::vector<Acl::UserLine> lines = {{"alice", "on", ">pw", "~a", "+get"},
                                            {"default", "on", ">x", "~*", "+@all"}};
  CHECK(acl.load(lines).ok());
  CHECK_EQ(acl.user_at_connect(), nullptr);
  CHECK_EQ(Acl::line_of(*acl.find("alice")),
           "user alice on #" + hash_password("pw") + " ~a resetchannels -@all +get");
  CHECK_EQ(acl.load_text("user bob on\n\n  user eve off +foo\n", "f.acl").message(),
           "f.acl:3: Error in applying operation '+foo': Unknown command or category name in ACL. "
           "WARNING: ACL errors detected, no change to the previously active ACL rules was "
           "performed");
  CHECK_EQ(acl.load_text("usr bob on\n", "f.acl").message(),
           "f.acl:1 should start with user keyword followed by the username. WARNING: ACL errors "
           "detected, no change to the previously active ACL rules was performed");
  CHECK_FALSE(acl.load_text("user bob on\nuser bob off\n", "f.acl").ok());
  CHECK_FALSE(acl.exists("bob"));
  const std::shared_ptr<User> alice = acl.find("alice");
  CHECK(acl.load_text("user bob on nopass\r\nuser eve off", "f.acl").ok());
  CHECK_NE(acl.authenticate("bob", "x"), nullptr);
  CHECK(acl.exists("eve"));
  // According to the file alice is gone, and the default user, which it does not mention, is as at
  // the first start.
  CHECK_FALSE(acl.exists("alice"));
  CHECK(alice->deleted.load());
  CHECK_EQ(alice->rules()->describe(), AclRules(false).describe());
  CHECK_NE(acl.user_at_connect(), nullptr);
  CHECK_EQ(acl.text(),
           "user bob on nopass resetchannels -@all\nuser default on nopass ~* &* +@all\n"
           "user eve off resetchannels -@all\n");
  CHECK(acl.load_text(acl.text(), "f.acl").ok());
}

// --- Selectors ---

TEST_CASE("what one selector allows as a whole is allowed, and no mixture of two") {
  const AclRules rules = rules_of("~own:* +@read (~log:* +append +get) (%R~in:* +copy)");
  CHECK_EQ(check_line(rules, "get own:a"), Denial::kNone);
  CHECK_EQ(check_line(rules, "append log:a x"), Denial::kNone);
  CHECK_EQ(check_line(rules, "get log:a"), Denial::kNone);
  CHECK_EQ(check_line(rules, "append own:a x"), Denial::kKey);
  CHECK_EQ(check_line(rules, "strlen log:a"), Denial::kKey);
  CHECK_EQ(check_line(rules, "copy in:a in:b"), Denial::kKey);
  CHECK_EQ(check_line(rules, "mget own:a log:a"), Denial::kKey);
  CHECK_EQ(check_line(rules, "del log:a"), Denial::kCommand);
  // If two keys are denied, the later one is reported.
  const std::vector<Bytes> copy = {"copy", "in:a", "out"};
  CHECK_EQ(rules.check(*CommandTable::instance().find("copy"), copy).argument, 2);
  CHECK_EQ(rules_of(rules.describe()).describe(), rules.describe());
  AclRules cleared = rules;
  REQUIRE_EQ(cleared.apply("clearselectors"), nullptr);
  CHECK_EQ(check_line(cleared, "append log:a x"), Denial::kCommand);
}

TEST_CASE("a selector may be given in several words") {
  std::vector<std::string> words = {"on", "(~a", "+get)", "(~b)", "(", "~c", ")"};
  CHECK(join_selectors(words));
  CHECK_EQ(words, std::vector<std::string>{"on", "(~a +get)", "(~b)", "( ~c )"});
  words = {"on", "(~a", "+get"};
  CHECK_FALSE(join_selectors(words));
  CHECK_EQ(words, std::vector<std::string>{"on", "(~a +get"});
}

// --- Threads ---

TEST_CASE("rules change while other threads check, and each check sees one state of them") {
  Acl acl;
  REQUIRE_EQ(set_user(acl, "u", "on nopass ~a +get"), "");
  const std::shared_ptr<User> user = acl.find("u");
  const Command& get = *CommandTable::instance().find("get");
  const Command& set = *CommandTable::instance().find("set");
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> checkers;
  for (int i = 0; i < 2; ++i) {
    checkers.emplace_back([&] {
      const std::vector<Bytes> get_a = {"get", "a"};
      const std::vector<Bytes> set_a = {"set", "a", "v"};
      while (!stop.load()) {
        // One of the rules has the key without the command, the other the command without the key.
        if (user->rules()->check(set, set_a).denial == Denial::kNone) ++wrong;
        user->rules()->check(get, get_a);
        if (acl.authenticate("u", "x") != user) ++wrong;
      }
    });
  }
  for (int i = 0; i < 500; ++i) {
    CHECK_EQ(set_user(acl, "u", i % 2 == 0 ? "resetkeys ~b -get +set" : "resetkeys ~a -set +get"),
             "");
  }
  stop.store(true);
  for (std::thread& checker : checkers) checker.join();
  CHECK_EQ(wrong.load(), 0);
}

TEST_CASE("the streams of XREADGROUP stand behind its options, whatever those are called") {
  const AclRules rules = rules_of("~STREAMS +@all");
  const Command& command = *CommandTable::instance().find("xreadgroup");
  const auto denied_at = [&](const std::string& line) {
    const Words words = split(line);
    const Verdict verdict = rules.check(command, std::vector<Bytes>(words.begin(), words.end()));
    return verdict.denial == Denial::kKey ? words[verdict.argument] : "";
  };
  CHECK_EQ(denied_at("XREADGROUP GROUP g c STREAMS secret >"), "secret");
  CHECK_EQ(denied_at("XREADGROUP NOACK GROUP g STREAMS STREAMS secret >"), "secret");
  CHECK_EQ(denied_at("XREADGROUP COUNT 1 GROUP STREAMS c STREAMS secret >"), "secret");
  CHECK_EQ(denied_at("XREADGROUP COUNT 1 GROUP STREAMS c STREAMS STREAMS >"), "");
}

}  // namespace
}  // namespace sluice

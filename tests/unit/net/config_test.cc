// The configuration. The texts of CONFIG GET and SET were compared with redis-server 7.0.15, value
// by value.
#include "net/config/config.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "net/config/config_special.h"
#include "net/process/version.h"
#include "net/resp/resp_parser.h"
#include "tests/support/redis_directives.h"
#include "tests/support/test.h"

namespace sluice {
namespace {

using Args = std::vector<std::string>;
// A temporary directory, deleted at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "sluice-config-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }

  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name)) << text;
    return file(name);
  }
  std::string read(const std::string& name) const {
    std::ifstream stream(file(name));
    return {std::istreambuf_iterator<char>(stream), {}};
  }

 private:
  std::filesystem::path path_;
};

std::string error_text(const Config::Loaded& loaded) { return loaded ? loaded->text() : ""; }

std::string load(Config& config, const std::string& text) {
  return error_text(config.load_text(text, "test.conf"));
}

std::string value(const Config& config, const std::string& name) {
  const Config::Pairs pairs = config.get({name});
  return pairs.size() == 1 ? pairs[0].second : "<" + std::to_string(pairs.size()) + " values>";
}

std::string set_one(Config& config, const std::string& name, const std::string& to) {
  return config.set({{name, to}}).message();
}

std::string refused(const std::string& name, const std::string& why) {
  return "ERR CONFIG SET failed (possibly related to argument '" + name + "') - " + why;
}

// The repository's root: the nearest folder above the program or the working directory that
// contains the file.
std::string repository_file(const std::string& name) {
  for (std::filesystem::path from :
       {std::filesystem::current_path(), std::filesystem::read_symlink("/proc/self/exe")}) {
    for (; from != from.root_path(); from = from.parent_path()) {
      if (std::filesystem::exists(from / name)) return (from / name).string();
    }
  }
  FAIL("there is no " << name << " above the test or the working directory");
  return "";
}

// --- the table -----------------------------------------------------------------------------------

TEST_CASE("every directive of Redis 7.0.15 is known and has Redis's default, but for a few") {
  const std::map<std::string, std::string> ours_on_purpose = {
      {"appendonly", "yes"}, {"appendfsync", "always"}, {"bind", "127.0.0.1 -::1"}};
  const Config config;
  std::istringstream lines(test::kRedisDirectives);
  size_t count = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    ++count;
    const size_t blank = std::min(line.find(' '), line.size());
    const std::string name = line.substr(0, blank);
    CAPTURE(name);
    if (name == "io-threads") continue;  // Depends on the machine.
    const auto own = ours_on_purpose.find(name);
    const std::string expected = blank == line.size() ? "" : line.substr(blank + 1);
    CHECK_EQ(value(config, name), own == ours_on_purpose.end() ? expected : own->second);
  }
  CHECK_EQ(count, 191);
}

TEST_CASE("the table is whole: unique names, summaries, expectations") {
  std::set<std::string> names;
  for (const Directive& directive : config_directives()) {
    CAPTURE(directive.name);
    CHECK(names.insert(directive.name).second);
    if (*directive.alias != '\0') CHECK(names.insert(directive.alias).second);
    CHECK_FALSE(expected_value(directive).empty());
    CHECK_EQ(&config_directives()[directive_index(directive)], &directive);
    CHECK_EQ(find_directive(directive.name), &directive);
    if (directive.kind != DirectiveKind::kIgnored) CHECK(*directive.summary != '\0');
  }
  CHECK_EQ(find_directive("nonsense"), nullptr);
}

TEST_CASE("defaults reach the typed settings") {
  const Config config;
  const auto settings = config.settings();
  CHECK_EQ(settings->port, 6379);
  CHECK_EQ(settings->http_port, 8379);
  CHECK_EQ(settings->bind, Args{"127.0.0.1", "-::1"});
  CHECK(settings->appendonly);
  CHECK(settings->appendfsync == AppendFsync::kAlways);
  CHECK_EQ(settings->save.size(), 3);
  CHECK_EQ(settings->save[2].seconds, 60);
  CHECK_EQ(settings->save[2].changes, 10000);
  CHECK_EQ(settings->output_buffer_limits[kPubsubClient].hard_bytes, 32U << 20);
  CHECK_EQ(settings->output_buffer_limits[kReplicaClient].soft_seconds, 60);
  CHECK_EQ(settings->checkpoint_log_bytes, 256U << 20);
  CHECK_EQ(settings->proto_max_bulk_len_bytes, 512U << 20);
  CHECK_EQ(settings->maxclients, 10000);
  CHECK_EQ(settings->list_max_listpack_size, -2);
  CHECK(settings->io_threads >= 1);
  CHECK(settings->supervised == Supervised::kNo);
  CHECK_EQ(settings->dir, std::filesystem::current_path().string());
}

// --- files ---------------------------------------------------------------------------------------

TEST_CASE("quotes, comments, blanks, carriage returns and case are as in redis.conf") {
  Config config;
  CHECK_EQ(load(config,
                "# comment\n\n  \t\n"
                "  PORT   7000  \r\n"
                "requirepass \"a b\\x21\\n\"\n"
                "logfile 'it\\'s'\n"
                "loglevel DEBUG\n"
                "maxmemory 2GB"),
           "");
  const auto settings = config.settings();
  CHECK_EQ(settings->port, 7000);
  CHECK_EQ(settings->requirepass, "a b!\n");
  CHECK_EQ(settings->logfile, "it's");
  CHECK_EQ(static_cast<int>(settings->loglevel), 0);
  CHECK_EQ(settings->maxmemory_bytes, 2ULL << 30);
  CHECK_EQ(value(config, "loglevel"), "debug");
  CHECK(config.warnings().empty());
}

TEST_CASE("an error names file, line, directive and what was expected") {
  const std::map<std::string, std::string> errors = {
      {"port abc",
       "argument couldn't be parsed into an integer; expected a number from 0 to 65535 (0 = no "
       "TCP), "
       "or auto"},
      {"port",
       "wrong number of arguments; expected a number from 0 to 65535 (0 = no TCP), or auto"},
      {"timeout 1 2", "wrong number of arguments; expected a number from 0 to 2147483647"},
      {"maxclients 0",
       "argument must be between 1 and 4294967295 inclusive; expected a number from 1 to "
       "4294967295"},
      {"databases 17",
       "argument must be between 1 and 16 inclusive; expected a number from 1 to 16"},
      {"proto-max-bulk-len 1kb",
       "argument must be between 1048576 and 1073741824 inclusive; expected a number of "
       "bytes, or 100kb, 64mb, 2gb; at least 1048576"},
      {"unixsocketperm 999",
       "argument couldn't be parsed as an octal number; expected a file mode in octal, such as "
       "700"},
      {"unixsocketperm 1777",
       "argument must be between 0 and 777 inclusive; expected a file mode in octal, such as 700"},
      {"appendonly maybe", "argument must be 'yes' or 'no'; expected yes or no"},
      {"appendfsync never",
       "argument(s) must be one of the following: everysec, always, no; expected one of everysec, "
       "always, no"},
      {"save 900",
       "Invalid save parameters; expected pairs of seconds and changes, or \"\" for none"},
      {"dir \"x", "Unbalanced quotes in configuration line"},
      {"maxmemroy 1gb", "unknown directive; expected 'maxmemory'"},
      {"utter-nonsense 1", "unknown directive"},
      {"maxmemory-policy allkeys-lru",
       "argument must be 'noeviction': this server never evicts a key to make room; expected "
       "'noeviction'"},
      {"cluster-enabled yes",
       "argument must be 'no': cluster mode is not supported; expected 'no'"},
      {"replicaof 10.0.0.1 6379",
       "this server cannot be a replica of another one; expected no one"},
      {"loadmodule x.so", "this server cannot load modules; expected no such line"},
  };
  for (const auto& [line, message] : errors) {
    Config config;
    CHECK_EQ(load(config, "# one\n\n" + line + "\n"), "test.conf:3: '" + line + "': " + message);
  }
}

TEST_CASE("a bad file changes nothing") {
  Config config;
  CHECK_FALSE(load(config, "port 7000\nport x\n").empty());
  CHECK_EQ(config.settings()->port, 6379);
}

TEST_CASE("a file that is not there, and a directory, are errors") {
  const TemporaryDirectory directory;
  Config config;
  const std::string path = directory.file("none.conf");
  CHECK_EQ(error_text(config.apply_arguments({path})),
           path + ": No such file or directory; expected a configuration file that can be read");
  CHECK_EQ(error_text(config.apply_arguments({directory.file("")})),
           directory.file("") + ": is a directory; expected a configuration file");
}

TEST_CASE("include loads files in its place, by patterns too, and stops at a circle") {
  const TemporaryDirectory directory;
  directory.write("a-1.conf", "port 1\ntimeout 5\n");
  directory.write("a-2.conf", "port 2\n");
  directory.write("bad.conf", "port x\n");
  Config config;
  CHECK_EQ(load(config, "port 9\ninclude " + directory.file("a-*.conf") + "\ntimeout 6\n"), "");
  CHECK_EQ(config.settings()->port, 2);
  CHECK_EQ(config.settings()->timeout_s, 6);
  CHECK_EQ(load(config, "include " + directory.file("none-*.conf") + "\n"), "");
  CHECK_EQ(
      load(config, "include " + directory.file("bad.conf") + "\n").find(directory.file("bad.conf")),
      0);
  const std::string circle = directory.file("circle.conf");
  directory.write("circle.conf", "include " + circle + "\n");
  CHECK_EQ(error_text(config.apply_arguments({circle})),
           circle + ":1: 'include " + circle + "': files include each other more than 16 deep");
}

TEST_CASE(
    "the first save line replaces the default rules, further ones add, an empty one drops all") {
  Config config;
  CHECK_EQ(load(config, "save 900 1\nsave 300 10 60 1000\n"), "");
  CHECK_EQ(value(config, "save"), "900 1 300 10 60 1000");
  CHECK_EQ(load(config, "save 5 5\n"), "");
  CHECK_EQ(value(config, "save"), "900 1 300 10 60 1000 5 5");
  CHECK_EQ(load(config, "save \"\"\n"), "");
  CHECK_EQ(value(config, "save"), "");
  CHECK(config.settings()->save.empty());
}

TEST_CASE("user lines are kept in order, and a second one for a user is refused") {
  Config config;
  CHECK_EQ(load(config, "user alice on >secret ~jobs:* +@all\nuser bob off\n"), "");
  REQUIRE_EQ(config.settings()->users.size(), 2);
  CHECK_EQ(config.settings()->users[0], Args{"alice", "on", ">secret", "~jobs:*", "+@all"});
  CHECK(load(config, "user alice off\n").find("Duplicate user found") != std::string::npos);
  CHECK(load(config, "user \"a b\" on\n").find("can't contain spaces") != std::string::npos);
  CHECK(load(config, "aclfile users.acl\n").find("both user lines and an aclfile") !=
        std::string::npos);
  CHECK_EQ(config.get({"user"}).size(), 0);
}

TEST_CASE("directives without a meaning here give one warning that names them all once") {
  Config config;
  CHECK_EQ(load(config, "hz 50\nactiverehashing no\nhz 60\nslave-read-only no\ntimeout 3\n"), "");
  REQUIRE_EQ(config.warnings().size(), 1);
  CHECK_EQ(config.warnings()[0],
           "directives of Redis that have no effect here: activerehashing hz replica-read-only");
  CHECK_EQ(value(config, "hz"), "60");
  CHECK_EQ(value(config, "replica-read-only"), "no");
}

TEST_CASE("daemonize yes is a warning, and the server stays in the foreground") {
  Config config;
  CHECK_EQ(load(config, "daemonize yes\n"), "");
  REQUIRE_EQ(config.warnings().size(), 1);
  CHECK_EQ(config.warnings()[0].find("daemonize yes: the server stays in the foreground"), 0);
  CHECK_EQ(value(config, "daemonize"), "no");
}

// A redis.conf as shipped by distributions, with every line that is active in it.
TEST_CASE(
    "a stock redis.conf loads with two warnings: daemonize and the directives without meaning") {
  const char* stock =
      "bind 127.0.0.1 -::1\nprotected-mode yes\nport 6379\ntcp-backlog 511\ntimeout 0\n"
      "tcp-keepalive 300\ndaemonize yes\npidfile /run/redis/redis-server.pid\nloglevel notice\n"
      "logfile /var/log/redis/redis-server.log\ndatabases 16\nalways-show-logo no\n"
      "set-proc-title yes\nproc-title-template \"{title} {listen-addr} {server-mode}\"\n"
      "stop-writes-on-bgsave-error yes\nrdbcompression yes\nrdbchecksum yes\n"
      "dbfilename dump.rdb\nrdb-del-sync-files no\ndir /var/lib/redis\nreplica-priority 100\n"
      "acllog-max-len 128\nlazyfree-lazy-eviction no\noom-score-adj no\n"
      "oom-score-adj-values 0 200 800\ndisable-thp yes\nappendonly no\n"
      "appendfilename \"appendonly.aof\"\nappendfsync everysec\nauto-aof-rewrite-min-size 64mb\n"
      "slowlog-max-len 128\nnotify-keyspace-events \"\"\nhash-max-listpack-entries 512\n"
      "client-output-buffer-limit normal 0 0 0\n"
      "client-output-buffer-limit replica 256mb 64mb 60\n"
      "client-output-buffer-limit pubsub 32mb 8mb 60\nhz 10\njemalloc-bg-thread yes\n";
  Config config;
  CHECK_EQ(load(config, stock), "");
  CHECK_EQ(config.warnings().size(), 2);
  CHECK_FALSE(config.settings()->appendonly);
  CHECK_EQ(config.settings()->dir, "/var/lib/redis");
}

// --- the command line ----------------------------------------------------------------------------

std::string arguments(Config& config, const Args& given) {
  return error_text(config.apply_arguments(given));
}

TEST_CASE("arguments are read as redis-server reads them") {
  const TemporaryDirectory directory;
  const std::string file = directory.write("a.conf", "port 1\ntimeout 9\n");
  Config config;
  CHECK_EQ(arguments(config, {file, "--port", "7000", "--bind", "127.0.0.1", "::1", "--loglevel",
                              "warning"}),
           "");
  const auto settings = config.settings();
  CHECK_EQ(settings->port, 7000);
  CHECK_EQ(settings->timeout_s, 9);
  CHECK_EQ(settings->bind, Args{"127.0.0.1", "::1"});
  CHECK_EQ(config.file(), file);
}

TEST_CASE("the argument behind an option is its value even if it begins with dashes") {
  Config config;
  CHECK_EQ(arguments(config, {"--requirepass", "--secret", "--timeout", "5"}), "");
  CHECK_EQ(config.settings()->requirepass, "--secret");
  CHECK_EQ(config.settings()->timeout_s, 5);
}

TEST_CASE("--save takes pairs, one text, an empty text, or nothing") {
  const std::vector<std::pair<Args, std::string>> cases = {
      {{"--save", "900", "1", "300", "10"}, "900 1 300 10"},
      {{"--save", "900 1"}, "900 1"},
      {{"--save", ""}, ""},
      {{"--save", "--timeout", "5"}, ""},
      {{"--timeout", "5", "--save"}, ""},
      {{"--save", "60", "1", "--save", "5", "2"}, "60 1 5 2"},
  };
  for (const auto& [given, expected] : cases) {
    Config config;
    CHECK_EQ(arguments(config, given), "");
    CHECK_EQ(value(config, "save"), expected);
  }
}

TEST_CASE("an option and its value may be one argument, and any bytes survive in a value") {
  Config config;
  CHECK_EQ(arguments(config, {"--port 7001", "--requirepass", "a \"b\" \\ \n\x01 'c'"}), "");
  CHECK_EQ(config.settings()->port, 7001);
  CHECK_EQ(config.settings()->requirepass, "a \"b\" \\ \n\x01 'c'");
}

TEST_CASE("a bad argument is an error of the command line") {
  Config config;
  CHECK_EQ(
      arguments(config, {"--port", "70000"}),
      "command line: '--port \"70000\"': argument must be between 0 and 65535 inclusive; expected "
      "a number from 0 to 65535 (0 = no TCP), or auto");
  CHECK_EQ(arguments(config, {"--prot", "7000"}),
           "command line: '--prot \"7000\"': unknown directive; expected 'port'");
  CHECK_EQ(arguments(config, {"-x"}).find("command line: "), 0);
  CHECK_EQ(
      arguments(config, {"--port"}),
      "command line: '--port': wrong number of arguments; expected a number from 0 to 65535 (0 = "
      "no TCP), or auto");
}

TEST_CASE("port auto and 0 are told apart") {
  Config config;
  CHECK_EQ(arguments(config, {"--port", "auto", "--http-port", "0"}), "");
  CHECK_EQ(config.settings()->port, Settings::kPortAuto);
  CHECK_EQ(config.settings()->http_port, 0);
  CHECK_EQ(value(config, "port"), "auto");
}

TEST_CASE("help and version answer when they are the only argument") {
  const char* help[] = {"sluice-server", "--help"};
  const char* version[] = {"sluice-server", "-v"};
  const char* other[] = {"sluice-server", "--port", "1"};
  REQUIRE(Config::information(2, help).has_value());
  CHECK(Config::information(2, help)->find("--checkpoint-log-bytes") != std::string::npos);
  CHECK_EQ(Config::information(2, version),
           "Sluice server v=" + std::string(kSluiceVersion) + " redis_version=7.0.15\n");
  CHECK_FALSE(Config::information(3, other).has_value());
}

TEST_CASE("the version is that of the build") {
  std::ifstream stream(repository_file("CMakeLists.txt"));
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  CHECK(text.find("project(sluice VERSION " + std::string(kSluiceVersion) + " ") !=
        std::string::npos);
}

// --- CONFIG GET ----------------------------------------------------------------------------------

TEST_CASE("CONFIG GET takes names in any case and globs, and shows no name twice") {
  const Config config;
  CHECK_EQ(config.get({"PORT"}), Config::Pairs{{"PORT", "6379"}});
  CHECK_EQ(config.get({"port", "p?rt", "por[t]"}), Config::Pairs{{"port", "6379"}});
  CHECK_EQ(config.get({"LUA-time*"}), Config::Pairs{{"lua-time-limit", "5000"}});
  CHECK_EQ(config.get({"nonsense", "x*y"}).size(), 0);
  CHECK_EQ(config.get({"min-*-to-write"}),
           Config::Pairs{{"min-replicas-to-write", "0"}, {"min-slaves-to-write", "0"}});
  CHECK(config.get({"*"}).size() > 190);
}

// --- CONFIG SET ----------------------------------------------------------------------------------

TEST_CASE("CONFIG SET changes values and settings") {
  Config config;
  const auto before = config.settings();
  CHECK(config.set({{"maxmemory", "100mb"}, {"TIMEOUT", "7"}, {"lua-time-limit", "9"}}).ok());
  CHECK_EQ(config.settings()->maxmemory_bytes, 100U << 20);
  CHECK_EQ(config.settings()->timeout_s, 7);
  CHECK_EQ(value(config, "busy-reply-threshold"), "9");
  CHECK_EQ(before->timeout_s, 0);
  CHECK(config.settings() != before);
}

TEST_CASE("CONFIG SET of several parameters changes all or none") {
  Config config;
  const auto before = config.settings();
  CHECK_EQ(config.set({{"timeout", "7"}, {"maxmemory", "x"}}).message(),
           refused("maxmemory", "argument must be a memory value"));
  CHECK_EQ(config.settings()->timeout_s, 0);
  CHECK(config.settings() == before);
}

TEST_CASE("CONFIG SET's errors are Redis's") {
  Config config;
  CHECK_EQ(config.set({{"zz", "1"}, {"daemonize", "yes"}}).message(),
           "ERR Unknown option or number of arguments for CONFIG SET - 'zz'");
  CHECK_EQ(set_one(config, "user", "bob"),
           "ERR Unknown option or number of arguments for CONFIG SET - 'user'");
  CHECK_EQ(config.set({{"daemonize", "yes"}, {"zz", "1"}}).message(),
           refused("daemonize", "can't set immutable config"));
  CHECK_EQ(set_one(config, "dbfilename", "a/b"),
           refused("dbfilename", "dbfilename can't be a path, just a filename"));
  CHECK_EQ(config.set({{"timeout", "1"}, {"TIMEOUT", "2"}}).message(),
           refused("TIMEOUT", "duplicate parameter"));
  CHECK_EQ(
      set_one(config, "LUA-time-limit", "-1"),
      refused("lua-time-limit", "argument must be between 0 and 9223372036854775807 inclusive"));
  CHECK_EQ(set_one(config, "timeout", "05"),
           refused("timeout", "argument couldn't be parsed into an integer"));
  CHECK_EQ(set_one(config, "protected-mode", "on"),
           refused("protected-mode", "argument must be 'yes' or 'no'"));
  CHECK_EQ(
      set_one(config, "appendfsync", "x"),
      refused("appendfsync", "argument(s) must be one of the following: everysec, always, no"));
  CHECK_EQ(
      set_one(config, "notify-keyspace-events", "Q"),
      refused("notify-keyspace-events", "Invalid event class character. Use 'Ag$lshzxeKEtmdn'."));
  CHECK_EQ(set_one(config, "maxmemory-clients", "101%"),
           refused("maxmemory-clients", "percentage argument must be less or equal to 100"));
}

TEST_CASE("what takes a restart may be set to its present value only") {
  Config config;
  const std::string dir = value(config, "dir");
  CHECK_EQ(set_one(config, "tls-port", "0"), "");
  CHECK_EQ(set_one(config, "tls-port", "7000"),
           refused("tls-port", "changing it requires a restart of the server"));
  CHECK_EQ(set_one(config, "dir", dir), "");
  CHECK_EQ(set_one(config, "DIR", "x"),
           refused("dir", "changing it requires a restart of the server"));
  CHECK_EQ(value(config, "dir"), dir);
}

TEST_CASE("whoever listens may refuse the port, as the last one") {
  Config config;
  std::vector<int64_t> asked;
  config.on_listen([&](const Settings& after) {
    asked.push_back(after.port);
    return after.port == 7000 ? invalid("taken") : Status();
  });
  CHECK_EQ(config.set({{"maxmemory", "1mb"}, {"port", "7000"}}).message(),
           refused("port", "taken"));
  CHECK_EQ(value(config, "maxmemory"), "0");
  CHECK_EQ(config.set({{"port", "7001"}, {"maxmemory", "x"}}).message(),
           refused("maxmemory", "argument must be a memory value"));
  CHECK(config.set({{"maxmemory", "1mb"}, {"port", "7001"}}).ok());
  CHECK_EQ(config.settings()->port, 7001);
  CHECK_EQ(asked, std::vector<int64_t>{7000, 7001});
}

TEST_CASE("memory sizes are Redis's") {
  const std::vector<std::pair<std::string, uint64_t>> good = {{"0", 0},
                                                              {"1", 1},
                                                              {"5b", 5},
                                                              {"1k", 1000},
                                                              {"1Kb", 1024},
                                                              {"3m", 3000000},
                                                              {"3MB", 3U << 20},
                                                              {"2g", 2000000000},
                                                              {"2gb", 2U << 30},
                                                              {"", 0},
                                                              {"mb", 0},
                                                              {"18446744073709551615", UINT64_MAX},
                                                              {"18446744073709551616", UINT64_MAX},
                                                              {"99999999999gb", UINT64_MAX}};
  for (const auto& [text, bytes] : good) {
    CAPTURE(text);
    CHECK_EQ(config_special::parse_memory(text), bytes);
  }
  for (const char* text : {"-1", "+1", " 1", "1 mb", "1.5mb", "0x10", "1tb", "x"}) {
    CAPTURE(text);
    CHECK_FALSE(config_special::parse_memory(text).has_value());
  }
}

TEST_CASE("callbacks get the settings before and after a change, and may read the configuration") {
  Config config;
  int calls = 0;
  config.on_change([&](const Settings& before, const Settings& after) {
    ++calls;
    CHECK_EQ(before.timeout_s, 0);
    CHECK_EQ(after.timeout_s, 7);
    CHECK_EQ(config.settings()->timeout_s, 7);
  });
  CHECK_EQ(set_one(config, "timeout", "7"), "");
  CHECK_FALSE(set_one(config, "timeout", "x").empty());
  CHECK_EQ(calls, 1);
}

// --- CONFIG REWRITE ------------------------------------------------------------------------------

TEST_CASE("CONFIG REWRITE keeps comments, order and lines that still hold, and adds what changed") {
  const TemporaryDirectory directory;
  const std::string file = directory.write(
      "a.conf",
      "# my server\nport 7000\n\n# memory\nmaxmemory 100mb\nproto-max-bulk-len 64mb\nsave 900 1\n"
      "save 300 10\n# end\nuser alice on\n");
  Config config;
  CHECK_EQ(error_text(config.apply_arguments({file})), "");
  CHECK(config.set({{"maxmemory", "2gb"}, {"save", "5 1"}, {"requirepass", "a \"b"}}).ok());
  CHECK(config.rewrite(std::nullopt).ok());
  const std::string expected =
      "# my server\nport 7000\n\n# memory\nmaxmemory 2gb\nproto-max-bulk-len 64mb\nsave 5 1\n# "
      "end\n"
      "user alice on\n\n# Generated by CONFIG REWRITE\nrequirepass \"a \\\"b\"\n";
  CHECK_EQ(directory.read("a.conf"), expected);
  CHECK(config.rewrite(std::nullopt).ok());
  CHECK_EQ(directory.read("a.conf"), expected);
  CHECK(config.rewrite(Args{"user bob off"}).ok());
  CHECK(directory.read("a.conf").find("# end\nuser bob off\n") != std::string::npos);

  Config again;
  CHECK_EQ(error_text(again.apply_arguments({file})), "");
  for (const auto& [name, shown] : config.get({"*"})) CHECK_EQ(value(again, name), shown);
}

TEST_CASE("CONFIG REWRITE without a file is refused with Redis's text") {
  Config config;
  CHECK_EQ(config.rewrite(std::nullopt).message(),
           "ERR The server is running without a config file");
}

// --- conf/sluice.conf ----------------------------------------------------------------------------

TEST_CASE(
    "conf/sluice.conf has every effective directive with its default, and loads without a "
    "warning") {
  const std::string path = repository_file("conf/sluice.conf");
  Config config;
  CHECK_EQ(error_text(config.apply_arguments({path})), "");
  CHECK(config.warnings().empty());
  const Config defaults;
  CHECK(config.get({"*"}) == defaults.get({"*"}));

  // This checks the active lines; directives without a default may appear as "# name ...".
  std::map<std::string, bool> active;
  std::ifstream stream(path);
  for (std::string line; std::getline(stream, line);) {
    const bool comment = line.rfind("# ", 0) == 0;
    const std::string text = comment ? line.substr(2) : line;
    active[text.substr(0, text.find(' '))] |= !comment;
  }
  for (const Directive& directive : config_directives()) {
    if (directive.kind == DirectiveKind::kIgnored) continue;
    CAPTURE(directive.name);
    REQUIRE(active.count(directive.name) == 1);
    CHECK((active[directive.name] || *directive.default_value == '\0'));
  }
}

}  // namespace
}  // namespace sluice

// Single directives: values that Redis shows in another form, values that it rejects, and values
// that are rejected here. The texts were compared with redis-server 7.0.15, value by value.
#include "net/config/config.h"

#include <array>
#include <string>
#include <vector>

#include "tests/support/storage_support.h"
#include "tests/support/test.h"

namespace sluice {
namespace {

std::string load(Config& config, const std::string& text) {
  const Config::Loaded error = config.load_text(text, "test.conf");
  return error ? error->text() : "";
}

std::string value(const Config& config, const std::string& name) {
  const Config::Pairs pairs = config.get({name});
  REQUIRE_EQ(pairs.size(), 1);
  return pairs[0].second;
}

std::string set_one(Config& config, const std::string& name, const std::string& to) {
  return config.set({{name, to}}).message();
}

std::string refused(const std::string& name, const std::string& why) {
  return "ERR CONFIG SET failed (possibly related to argument '" + name + "') - " + why;
}

TEST_CASE("what is read at the start only is not set while the server runs") {
  Config config;
  for (const char* name : {"aclfile", "daemonize", "databases", "enable-debug-command",
                           "io-threads", "logfile", "pidfile", "ready-file", "replicaof",
                           "supervised", "tcp-backlog", "unixsocket", "unixsocketperm"}) {
    CHECK_EQ(set_one(config, name, "1"), refused(name, "can't set immutable config"));
  }
  const std::vector<std::array<std::string, 2>> others = {
      {"bind", "127.0.0.3"},
      {"checkpoint-copies", "2"},
      {"cluster-name", "c"},
      {"dir", "/none"},
      {"etcd-endpoints", "http://10.0.0.1:2379"},
      {"etcd-password-file", "f"},
      {"etcd-tls-ca-cert-file", "f"},
      {"etcd-tls-cert-file", "f"},
      {"etcd-tls-key-file", "f"},
      {"etcd-user", "u"},
      {"failover-timeout", "2000"},
      {"group", "g"},
      {"http-bind", "127.0.0.3"},
      {"http-executions-queue", "q"},
      {"http-grading-queue", "q"},
      {"http-host", "sluice.example"},
      {"http-max-body", "2mb"},
      {"http-maxclients", "77"},
      {"http-port", "7001"},
      {"http-session-timeout", "77"},
      {"http-stats-queue", "q"},
      {"http-timeout", "77"},
      {"http-tls-port", "7001"},
      {"journal", "etcd"},
      {"journal-etcd-compact", "no"},
      {"journal-in-flight", "7"},
      {"journal-log-bytes", "2gb"},
      {"journal-patience", "77"},
      {"node-name", "n"},
      {"otlp-endpoint", "http://localhost"},
      {"otlp-interval", "77"},
      {"otlp-service-name", "s"},
      {"otlp-tls-ca-cert-file", "f"},
      {"replication-token-file", "f"},
      {"sentinel-name", "s"},
      {"sentinel-port", "7001"},
      {"tls-port", "7001"},
      {"watchdog-ms", "77"},
  };
  for (const auto& [name, to] : others) {
    CHECK_EQ(set_one(config, name, to),
             refused(name, "changing it requires a restart of the server"));
  }
}

TEST_CASE("special values print as Redis prints them") {
  Config config;
  const std::vector<std::array<std::string, 3>> cases = {
      {"notify-keyspace-events", "KEg$lshzxetdmn", "AKEm"},
      {"notify-keyspace-events", "n", "n"},
      {"notify-keyspace-events", "xE", "xE"},
      {"notify-keyspace-events", "", ""},
      {"save", "900 1 300 10", "900 1 300 10"},
      {"save", "", ""},
      {"client-output-buffer-limit", "NORMAL 1mb 2 3 replica 0 0 0",
       "normal 1048576 2 3 slave 0 0 0 pubsub 33554432 8388608 60"},
      {"client-output-buffer-limit", "",
       "normal 1048576 2 3 slave 0 0 0 pubsub 33554432 8388608 60"},
      {"shutdown-on-sigterm", "now save", "save now"},
      {"latency-tracking-info-percentiles", "50 99.99", "50 99.99"},
      {"latency-tracking-info-percentiles", "50.00 99.9999999 1e1 0x10 0.12345678 0",
       "50 100 10 16 0.123457 0"},
      {"maxmemory-clients", "0%", "0"},
      {"hz", "0", "1"},
      {"hz", "1000", "500"},
      {"repl-backlog-size", "1", "16384"},
      {"repl-backlog-size", "20k", "20000"},
      {"cluster-announce-hostname", "aB-9.x", "aB-9.x"},
      {"proc-title-template", "{{x} {port}", "{{x} {port}"},
  };
  for (const auto& [name, given, shown] : cases) {
    CAPTURE(given);
    CHECK_EQ(set_one(config, name, given), "");
    CHECK_EQ(value(config, name), shown);
  }
  CHECK_EQ(set_one(config, "save", "900 1 x"), refused("save", "Invalid save parameters"));
  CHECK_EQ(set_one(config, "client-output-buffer-limit", "normal 1 1"),
           refused("client-output-buffer-limit",
                   "Wrong number of arguments in buffer limit configuration."));
}

TEST_CASE("what Redis refuses of its directives is refused with its texts") {
  Config config;
  // 7.0.15 does not list `nothing`, which is Sluice's own.
  CHECK_EQ(set_one(config, "loglevel", "foo"),
           refused("loglevel",
                   "argument(s) must be one of the following: debug, verbose, notice, warning"));
  CHECK_EQ(set_one(config, "loglevel", "nothing"), "");
  for (const char* percentiles : {"50 nan", "x"}) {
    CHECK_EQ(set_one(config, "latency-tracking-info-percentiles", percentiles),
             refused("latency-tracking-info-percentiles",
                     "Invalid latency-tracking-info-percentiles parameters"));
  }
  for (const char* title : {"", " ", "{x", "{title}", "{", "{}", "{nosuch} x", "{unixsocket}"}) {
    CHECK_EQ(
        set_one(config, "proc-title-template", title),
        refused("proc-title-template", "template format is invalid or contains unknown variables"));
  }
  CHECK_EQ(set_one(config, "cluster-announce-hostname", "a b c"),
           refused("cluster-announce-hostname",
                   "Hostnames may only contain alphanumeric characters, hyphens or dots"));
  CHECK_EQ(set_one(config, "cluster-announce-hostname", std::string(256, 'a')),
           refused("cluster-announce-hostname", "Hostnames must be less than 256 characters"));
  CHECK_EQ(set_one(config, "tls-replication", "yes"),
           refused("tls-replication", "Unable to update TLS configuration. Check server logs."));
  CHECK(set_one(config, "activedefrag", "yes").find("requires a Redis server compiled with") !=
        std::string::npos);
}

TEST_CASE("what would need a Redis with replicas or evicted clients is refused, not ignored") {
  const std::string replicas =
      "argument must be '0': acknowledgements wait for the journal, not for standbys";
  const std::string clients =
      "argument must be '0': clients are not evicted by their total memory; "
      "client-output-buffer-limit and client-query-buffer-limit limit each client";
  Config config;
  for (const char* name : {"min-replicas-to-write", "min-slaves-to-write"}) {
    CHECK_EQ(set_one(config, name, "1"), refused(name, replicas));
    CHECK_EQ(set_one(config, name, "0"), "");
    CHECK_EQ(load(config, std::string(name) + " 1\n"),
             "test.conf:1: '" + std::string(name) + " 1': " + replicas + "; expected '0'");
  }
  for (const std::string limit : {"1mb", "5%"}) {
    CHECK_EQ(set_one(config, "maxmemory-clients", limit), refused("maxmemory-clients", clients));
    CHECK_EQ(load(config, "maxmemory-clients " + limit + "\n"),
             "test.conf:1: 'maxmemory-clients " + limit + "': " + clients + "; expected '0'");
  }
  CHECK_EQ(load(config, "min-replicas-to-write 0\nmaxmemory-clients 0\n"), "");
}

TEST_CASE("a file may come from a Redis that was built with more") {
  Config config;
  CHECK_EQ(load(config, "activedefrag yes\ntls-cluster yes\ntls-replication yes\n"), "");
  REQUIRE_EQ(config.warnings().size(), 1);
  CHECK_EQ(config.warnings()[0],
           "directives of Redis that have no effect here: activedefrag "
           "tls-cluster tls-replication");
}

TEST_CASE("a size is the same after CONFIG REWRITE, whatever unit it has in the file") {
  const test::TempDirectory directory;
  const std::string path = directory.path() + "/a.conf";
  for (const char* size : {"3gb", "1500mb", "7mb", "1500kb", "9kb", "1025"}) {
    CAPTURE(size);
    test::write_file(path, "maxmemory 1gb\n");
    Config config;
    REQUIRE_FALSE(config.apply_arguments({path}).has_value());
    CHECK_EQ(set_one(config, "maxmemory", size), "");
    CHECK_EQ(config.rewrite(std::nullopt).message(), "");
    Config again;
    REQUIRE_FALSE(again.apply_arguments({path}).has_value());
    CHECK_EQ(value(again, "maxmemory"), value(config, "maxmemory"));
  }
}

TEST_CASE("an error in a line with a password or token does not show it") {
  for (const std::string line :
       {"requirepass hidden twice", "requirepass \"hidden", "user ann on >hidden nonsense",
        "http-token read >hidden", "tls-key-file-pass hidden twice",
        "otlp-header Authorization hidden twice"}) {
    CAPTURE(line);
    Config config;
    const std::string error = load(config, line + "\n");
    const std::string begin = "test.conf:1: '" + line.substr(0, line.find(' ')) + " (redacted)': ";
    CHECK_EQ(error.substr(0, begin.size()), begin);
    CHECK(error.find("hidden") == std::string::npos);
  }
}

}  // namespace
}  // namespace sluice

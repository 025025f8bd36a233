// The directives of a group of machines (net/config/config_group.cc).
#include <string>
#include <utility>
#include <vector>

#include "net/config/config.h"
#include "tests/support/storage_support.h"
#include "tests/support/test.h"

namespace sluice {
namespace {

using Args = std::vector<std::string>;

std::string error_text(const Config::Loaded& loaded) { return loaded ? loaded->text() : ""; }

std::string load(Config& config, const std::string& text) {
  return error_text(config.load_text(text, "test.conf"));
}

std::string set_one(Config& config, const std::string& name, const std::string& to) {
  return config.set({{name, to}}).message();
}

std::string refused(const std::string& name, const std::string& why) {
  return "ERR CONFIG SET failed (possibly related to argument '" + name + "') - " + why;
}

TEST_CASE("the directives of a group reach the typed settings") {
  Config config;
  CHECK(config.settings()->journal == JournalKind::kLocal);
  CHECK_EQ(config.settings()->node_name, "");
  CHECK_EQ(config.settings()->sentinel_name, "mymaster");
  CHECK_EQ(config.settings()->failover_timeout_ms, 1000);
  CHECK_EQ(config.settings()->journal_log_bytes, 1U << 30);
  CHECK_EQ(load(config,
                "journal etcd\netcd-endpoints http://10.0.0.1:2379 http://[::1]:2379\n"
                "etcd-user s\netcd-password-file f\ncheckpoint-copies 2\nnode-name n1\n"
                "sentinel-port auto\nreplica-announce-ip 10.0.0.9\nreplica-priority 7\n"),
           "");
  const auto settings = config.settings();
  CHECK(settings->journal == JournalKind::kEtcd);
  CHECK_EQ(settings->etcd_endpoints, Args{"http://10.0.0.1:2379", "http://[::1]:2379"});
  CHECK_EQ(settings->checkpoint_copies, 2);
  CHECK_EQ(settings->node_name, "n1");
  CHECK_EQ(settings->sentinel_port, Settings::kPortAuto);
  CHECK_EQ(set_one(config, "journal", "local"),
           refused("journal", "changing it requires a restart of the server"));
  CHECK_EQ(set_one(config, "appendonly", "no"),
           refused("appendonly",
                   "journal etcd needs appendonly yes: the journal is all that standbys have"));
  CHECK_EQ(settings->watchdog_ms, 15'000);
  CHECK_EQ(set_one(config, "slave-priority", "0"), "");
  CHECK_EQ(set_one(config, "replica-announce-ip", "n1.example"), "");
  CHECK_EQ(set_one(config, "slave-announce-port", "7000"), "");
  CHECK_EQ(config.settings()->replica_priority, 0);
  CHECK_EQ(config.settings()->replica_announce_ip, "n1.example");
  CHECK_EQ(config.settings()->replica_announce_port, 7000);
  for (const char* wrong : {"a b", "a,b", "a\tb", "a\r", "a\nrole:master"}) {
    CHECK_EQ(set_one(config, "replica-announce-ip", wrong),
             refused("replica-announce-ip", "an address has no blanks and no commas"));
  }
  CHECK_EQ(set_one(config, "replica-announce-ip", ""), "");
  CHECK_EQ(config.settings()->replica_announce_ip, "");
  CHECK_EQ(set_one(config, "replica-serve-stale-data", "no"), "");
}

TEST_CASE("directives of a group that do not fit together are refused when all are known") {
  const std::vector<std::pair<Args, std::string>> cases = {
      {{"--journal", "etcd"},
       "command line: journal etcd needs etcd-endpoints, such as http://10.0.0.1:2379"},
      {{"--journal", "etcd", "--etcd-endpoints", "http://a:1", "--appendonly", "no"},
       "command line: journal etcd needs appendonly yes: the journal is all that standbys have"},
      {{"--etcd-user", "s"}, "command line: etcd-user and etcd-password-file need each other"},
      {{"--sentinel-port", "1"},
       "command line: sentinel-port needs journal etcd: without it there is no group of nodes"},
  };
  for (const auto& [given, message] : cases) {
    Config config;
    CHECK_EQ(error_text(config.apply_arguments(given)), message);
    CHECK(config.settings()->journal == JournalKind::kLocal);
  }
}

TEST_CASE("a file may leave to the command line what its directives need") {
  const test::TempDirectory directory;
  const std::string path = directory.path() + "/group.conf";
  test::write_file(path, "journal etcd\n");
  Config config;
  CHECK_EQ(error_text(config.apply_arguments({path})),
           path + ": journal etcd needs etcd-endpoints, such as http://10.0.0.1:2379");
  CHECK_EQ(error_text(config.apply_arguments({path, "--etcd-endpoints", "http://a:1"})), "");
}

TEST_CASE("endpoints and names of a group are checked") {
  const std::string endpoints =
      "; expected http://host:port of each member of etcd, or https:// for all of them";
  const std::string name =
      "a name has 1 to 64 letters, digits, '.', '_' and '-', and is not '-'; expected a name of 1 "
      "to 64 letters, digits, '.', '_' and '-'";
  const std::vector<std::pair<std::string, std::string>> errors = {
      {"etcd-endpoints http://a", "an endpoint must end with its port" + endpoints},
      {"etcd-endpoints http://a:1/", "an endpoint must end with its port" + endpoints},
      {"etcd-endpoints a:1", "the URL must begin with http:// or https://" + endpoints},
      {"etcd-endpoints http://a:1 https://b:1",
       "either all endpoints must begin with https:// or none" + endpoints},
      {"group a/b", name},
      {"cluster-name -", name},
      {"sentinel-name \"\"", name},
      {"node-name \"a b\"", name},
  };
  for (const auto& [line, message] : errors) {
    Config config;
    CHECK_EQ(load(config, line + "\n"), "test.conf:1: '" + line + "': " + message);
  }
}

TEST_CASE("the mark of a configuration is of what the nodes of a group should share") {
  const std::string defaults = Config().mark();
  CHECK_EQ(defaults.size(), 4);
  const auto mark_of = [](const std::string& line) {
    Config config;
    CHECK_EQ(load(config, line), "");
    return config.mark();
  };
  for (const char* shared :
       {"maxmemory 1gb", "maxclients 9000", "timeout 5", "protected-mode no",
        "appendfsync everysec", "min-free-disk 1gb", "journal-patience 1", "failover-timeout 500",
        "replica-serve-stale-data no", "sentinel-name other", "script-memory-limit 1gb",
        "notify-keyspace-events KEA", "http-token read >a-token-of-the-tests", "http-max-body 1mb",
        "tls-auth-clients no", "tls-protocols TLSv1.3", "slowlog-max-len 5",
        "acl-pubsub-default allchannels", "busy-reply-threshold 7"}) {
    CHECK_MESSAGE(mark_of(shared) != defaults, shared);
  }
  const std::string etcd = "journal etcd\netcd-endpoints http://10.0.0.2:2379\n";
  CHECK_EQ(
      mark_of(etcd + "bind 10.0.0.1\nport 7000\ntls-port 7001\nhttp-port 7002\nhttp-bind 10.0.0.1\n"
                     "http-host n1.example\nsentinel-port 7003\nunixsocket s\nunixsocketperm 700\n"
                     "io-threads 3\nready-file r\ndir /tmp\nlogfile l\nloglevel debug\npidfile p\n"
                     "supervised systemd\ntls-cert-file f\ntls-key-file f\ntls-key-file-pass p\n"
                     "node-name n1\netcd-endpoints http://10.0.0.1:2379\netcd-user u\n"
                     "etcd-password-file f\nreplication-token-file f\nreplica-announce-ip h\n"
                     "replica-announce-port 1\nreplica-priority 5\notlp-endpoint http://10.0.0.1\n"
                     "otlp-header k v\notlp-service-name n1\notlp-interval 7\n"),
      mark_of(etcd));
  // No more of a token is told than its mark.
  const auto with_token = [&](const std::string& begin, char rest) {
    return mark_of("http-token read #" + begin + std::string(60, rest) + "\n");
  };
  CHECK_EQ(with_token("abcd", '0'), with_token("abcd", '1'));
  CHECK(with_token("abcd", '0') != with_token("abce", '0'));
  // The users show these; Redis's without effect are not compared.
  CHECK_EQ(mark_of("requirepass secret\nuser bob on\nrepl-timeout 7\n"), defaults);
  CHECK_EQ(mark_of("aclfile a"), defaults);
  CHECK_EQ(mark_of("maxmemory 0"), defaults);
  Config config;
  CHECK_EQ(set_one(config, "maxmemory", "1073741824"), "");
  CHECK_EQ(config.mark(), mark_of("maxmemory 1gb"));
  CHECK_EQ(set_one(config, "maxmemory", "0"), "");
  CHECK_EQ(config.mark(), defaults);
}

}  // namespace
}  // namespace sluice

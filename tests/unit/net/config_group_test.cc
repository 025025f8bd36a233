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

}  // namespace
}  // namespace sluice

// A node without usable data: from which node it loads a copy, what it refuses, and that the group
// keeps the log behind it.
#include "net/group/bootstrap.h"

#include "storage/copy_writer.h"
#include "storage/data_directory.h"
#include "storage/group_mark.h"
#include "tests/support/copy_source.h"
#include "tests/support/fake_remote_log.h"
#include "tests/support/test.h"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr const char* kClusterId = "cluster";

// A group whose log was trimmed, and a node that joins it.
class Group {
 public:
  Group() {
    TempDirectory source(true);
    const std::unique_ptr<Log> log = make_copied_log(source.path());
    auto reader = CopyReader::open(*log, "");
    copy = join_items(items_of(**reader));
    service.start();
    EpochValue epoch;
    epoch.cluster_id = kClusterId;
    epoch.epoch = 2;
    epoch.holder = "primary";
    epoch.run_id = "run";
    epoch.ready = true;
    fence_ = encode_epoch(epoch);
    service.put_epoch(fence_);
    for (uint64_t seq = 1; 2 * seq <= kCopiedLast; ++seq) {
      service.put_frame(seq, copied_frame(seq, copied_position(2 * seq - 2).chain));
    }
    log_ = service.connect();
  }
  ~Group() {
    log_->close();
    service.stop();
  }

  void trim_to(Lsn lsn) {
    const std::string mark = encode_position(copied_position(lsn));
    std::atomic<bool> done{false};
    log_->trim(fence_, lsn / 2 + 1, mark_, mark, [&](const RemoteAnswer&) { done.store(true); });
    while (!done.load()) std::this_thread::yield();
    mark_ = mark;
  }

  void add_node(const std::string& name, bool primary, Lsn checkpoint, uint16_t port) {
    GroupMember member;
    member.name = name;
    member.run_id = "run";
    member.host = "127.0.0.1";
    member.port = 1;
    member.http_port = port;
    member.primary = primary;
    member.lsn = kCopiedLast;
    member.checkpoint_lsn = checkpoint;
    std::atomic<bool> done{false};
    log_->put_record(RemoteRecordKind::kNode, name, name, encode_member(member),
                     [&](const RemoteAnswer&) { done.store(true); });
    while (!done.load()) std::this_thread::yield();
  }

  BootstrapOptions options() {
    BootstrapOptions options;
    options.directory = directory.path() + "/data";
    options.cluster = "main";
    options.group = "1";
    options.node = "joins";
    options.owner = "owner";
    options.retry_ms = 1;
    options.goes_on = [this] { return patience-- > 0; };
    options.log = [this](LogLevel, std::string_view text) { said += std::string(text) + "\n"; };
    options.fetch = [this](const CopySource& source, const CopyClientOptions&,
                           const std::function<Status(Bytes)>& take) {
      asked.push_back(source.port);
      return fetch(source.port, take);
    };
    return options;
  }

  // "name=lsn" of each.
  std::string holds() {
    std::string held;
    std::atomic<bool> done{false};
    log_->read_records(RemoteRecordKind::kHold,
                       [&](const RemoteAnswer&, const std::vector<RemoteRecord>& records) {
                         for (const auto& record : records) {
                           held += record.name + "=" + record.value;
                         }
                         done.store(true);
                       });
    while (!done.load()) std::this_thread::yield();
    return held;
  }

  RemoteLog& log() { return *log_; }
  bool has_data() const { return holds_data(directory.path() + "/data"); }

  TempDirectory directory{true};
  FakeRemoteService service{1};
  std::string copy;
  int patience = 400;
  std::vector<int> asked;
  std::string said;
  std::function<Status(int port, const std::function<Status(Bytes)>& take)> fetch =
      [this](int, const auto& take) { return take(copy); };

 private:
  std::string fence_;
  std::string mark_;
  std::unique_ptr<RemoteLog> log_;
};

// A node's own data, which no other node has.
void keep_data(const std::string& directory) {
  MapReplay replay;
  auto store = Store::open(store_options(directory), replay);
  MapEngine engine(&(*store)->journal());
  engine.set(500, 1);
  REQUIRE((*store)->close(CloseMode::kFlush).ok());
}

}  // namespace

TEST_CASE("an empty node joins a trimmed group by the copy of the best live node") {
  Group group;
  group.trim_to(8);
  group.add_node("primary", true, 12, 1001);
  group.add_node("standby", false, 11, 1002);
  group.add_node("late", false, 5, 1003);
  group.add_node("bare", false, 0, 1004);
  group.add_node("closed", false, 12, 0);
  group.add_node("joins", false, 12, 1005);  // its own earlier process
  Bootstrap bootstrap(group.log(), group.options());
  const Status status = bootstrap.run();
  REQUIRE_MESSAGE(status.ok(), status.message());
  CHECK(bootstrap.has_loaded());
  CHECK(group.asked == std::vector<int>{1002});
  const ReadBack back = read_back(group.directory.path() + "/data");
  CHECK(back.state == copied_state(kCopiedLast));
  CHECK(back.recovered.position == encode_position(copied_position(kCopiedLast)));
}

TEST_CASE("a copy that has come whole is taken, however its connection ends") {
  Group group;
  group.trim_to(8);
  group.add_node("primary", true, 12, 1001);
  group.patience = 40;
  group.fetch = [&](int, const auto& take) {
    const Status taken = take(group.copy);
    return taken.ok() ? invalid("connection reset by peer") : taken;
  };
  Bootstrap bootstrap(group.log(), group.options());
  const Status status = bootstrap.run();
  REQUIRE_MESSAGE(status.ok(), status.message());
  CHECK(bootstrap.has_loaded());
  CHECK(group.asked == std::vector<int>{1001});
}

TEST_CASE("nothing is loaded where the log can be followed from its begin, or there is no group") {
  for (const bool has_group : {true, false}) {
    Group group;
    if (!has_group) group.service.put_epoch("");
    group.add_node("primary", true, 12, 1001);
    Bootstrap bootstrap(group.log(), group.options());
    CHECK(bootstrap.run().ok());
    CHECK(!bootstrap.has_loaded());
    CHECK(group.asked.empty());
    CHECK(!group.has_data());
  }
}

TEST_CASE("a copy that breaks off or is damaged is loaded again, from the next node") {
  Group group;
  group.trim_to(8);
  group.add_node("primary", true, 12, 1001);
  group.add_node("standby", false, 11, 1002);
  group.fetch = [&](int, const auto& take) {
    std::string copy = group.copy;
    if (group.asked.size() == 1) copy.resize(copy.size() / 2);
    if (group.asked.size() == 2) copy[copy.size() / 2] ^= 4;
    if (group.asked.size() == 3) return io_error("connection refused");
    return take(copy);
  };
  Bootstrap bootstrap(group.log(), group.options());
  const Status status = bootstrap.run();
  REQUIRE_MESSAGE(status.ok(), status.message());
  CHECK(group.asked == std::vector<int>{1002, 1001, 1002, 1001});
  CHECK(group.said.find("checksum mismatch") != std::string::npos);
  CHECK(read_back(group.directory.path() + "/data").state == copied_state(kCopiedLast));
}

TEST_CASE("a node that no other one gives its data to says why once a minute, not with each try") {
  Group group;
  group.trim_to(8);
  group.add_node("primary", true, 12, 1001);
  group.add_node("standby", false, 11, 1002);
  group.fetch = [](int port, const auto&) { return io_error(std::to_string(port) + ": 401"); };
  group.patience = 40;
  BootstrapOptions options = group.options();
  size_t heard = 0;
  options.on_heard = [&] { ++heard; };
  Bootstrap bootstrap(group.log(), std::move(options));
  CHECK(bootstrap.run().code() == StatusCode::kCancelled);
  CHECK(group.asked.size() > 4);
  CHECK(heard > group.asked.size());
  for (const char* text : {"1001: 401", "1002: 401"}) {
    const size_t at = group.said.find(text);
    REQUIRE(at != std::string::npos);
    CHECK(group.said.find(text, at + 1) == std::string::npos);
  }
}

TEST_CASE("a node whose token is not accepted says which setting to look at") {
  for (const char* token : {"", "of-another-group"}) {
    Group group;
    group.trim_to(8);
    group.add_node("standby", false, 11, 1002);
    group.fetch = [](int, const auto&) { return refusal("answers 401"); };
    group.patience = 20;
    BootstrapOptions options = group.options();
    options.token = token;
    CHECK(Bootstrap(group.log(), options).run().code() == StatusCode::kCancelled);
    const bool has_none = options.token.empty();
    CHECK(group.said.find(has_none ? "answers 401. This server has no replication-token-file"
                                   : "answers 401. The file that replication-token-file names") !=
          std::string::npos);
  }
}

TEST_CASE("a copy for which the disk has no room is not loaded, and the log is not kept for it") {
  Group group;
  group.trim_to(8);
  group.add_node("standby", false, 11, 1002);
  size_t taken = 0;
  group.fetch = [&](int, const auto& take) {
    Status status;
    for (; status.ok() && taken < group.copy.size(); ++taken)
      status = take({&group.copy[taken], 1});
    return status;
  };
  BootstrapOptions options = group.options();
  options.keep_free_bytes = UINT64_MAX;
  std::string why;
  options.on_wait = [&](const std::string& text) { why = text; };
  const Status status = Bootstrap(group.log(), options).run();
  CHECK(status.code() == StatusCode::kNoSpace);
  CHECK(status.message().find("\"standby\" are not loaded") != std::string::npos);
  CHECK(status.message().find("not enough disk space in " + options.directory) !=
        std::string::npos);
  CHECK(why == status.message());
  CHECK(taken < group.copy.size() / 2);
  CHECK(group.asked.size() == 1);
  CHECK(group.holds().empty());
  CHECK(!group.has_data());
  CHECK(!std::filesystem::exists(options.directory + "/incoming-copy"));
}

TEST_CASE("a node holds the log from the copy's begin on, until it follows it") {
  Group group;
  group.trim_to(8);
  group.add_node("standby", false, 11, 1002);
  std::string held;
  group.fetch = [&](int, const auto& take) {
    held += group.holds() + ";";
    return group.asked.size() == 1 ? io_error("connection refused") : take(group.copy);
  };
  BootstrapOptions options = group.options();
  // Between two tries nothing is held.
  options.on_wait = [&](const std::string&) { held += group.holds() + ";"; };
  Bootstrap bootstrap(group.log(), options);
  CHECK(bootstrap.run().ok());
  CHECK(held == "joins=11;;joins=11;");
  CHECK(group.holds() == "joins=11");
}

TEST_CASE("a copy that the log does not continue is refused, in words") {
  for (const bool is_there : {true, false}) {
    Group group;
    group.trim_to(8);
    group.add_node("standby", false, 11, 1002);
    const uint64_t last = kCopiedLast / 2;
    // etcd has another history, or ends before what the other node has.
    is_there ? group.service.put_frame(last, copied_frame(last, 4711))
             : group.service.erase_frame(last);
    group.patience = 20;
    Bootstrap bootstrap(group.log(), group.options());
    CHECK(bootstrap.run().code() == StatusCode::kCancelled);
    CHECK(group.said.find("up to frame 10") != std::string::npos);
    CHECK(group.said.find("etcd was restored from an old backup") != std::string::npos);
    CHECK(!group.has_data());
  }
}

TEST_CASE("a copy that the log was trimmed past is loaded again, three times at most") {
  Group group;
  group.add_node("standby", false, 11, 1002);
  group.trim_to(kCopiedLast + 2);
  Bootstrap bootstrap(group.log(), group.options());
  const Status status = bootstrap.run();
  CHECK(status.code() == StatusCode::kStale);
  CHECK(status.message().find("trimmed past") != std::string::npos);
  CHECK(group.asked.size() == Bootstrap::kMaxTrimmed);
  CHECK(!group.has_data());
}

TEST_CASE("data of another cluster are refused, and nothing of them stays") {
  Group group;
  group.trim_to(8);
  group.add_node("standby", false, 11, 1002);
  EpochValue epoch;
  epoch.cluster_id = "another";
  epoch.epoch = 3;
  group.service.put_epoch(encode_epoch(epoch));
  group.patience = 20;
  Bootstrap bootstrap(group.log(), group.options());
  CHECK(bootstrap.run().code() == StatusCode::kCancelled);
  CHECK(group.said.find("cluster id") != std::string::npos);
  CHECK(!group.has_data());
}

// Its commits still have their places in the log of the group that was lost.
TEST_CASE("the copy of a node that has begun a new group, and written nothing since, is taken") {
  Group group;
  for (uint64_t seq = 1; 2 * seq <= kCopiedLast; ++seq) group.service.erase_frame(seq);
  EpochValue epoch;
  epoch.cluster_id = "new";
  epoch.epoch = 2;
  epoch.ready = true;
  epoch.base_lsn = kCopiedLast;
  group.service.put_epoch(encode_epoch(epoch));
  const LogPosition mark = {"new", "1", 0, 0, kCopiedLast, 0};
  TempDirectory source(true);
  const std::unique_ptr<Log> log = make_copied_log(source.path());
  const auto reader = CopyReader::open(*log, encode_position(mark));
  REQUIRE(reader.ok());
  group.copy = join_items(items_of(**reader));
  group.add_node("standby", false, 11, 1002);
  group.patience = 40;
  Bootstrap bootstrap(group.log(), group.options());
  const Status status = bootstrap.run();
  REQUIRE_MESSAGE(status.ok(), status.message());
  CHECK(bootstrap.has_loaded());
  CHECK(*read_lead_mark(group.directory.path() + "/data") == mark);
}

TEST_CASE("old data stay until new ones are there, and are replaced only when that is asked for") {
  Group group;
  group.trim_to(8);
  const std::string data = group.directory.path() + "/data";
  keep_data(data);
  CHECK(Bootstrap(group.log(), group.options()).run().ok());
  CHECK(read_back(data).state.count(500) == 1);

  BootstrapOptions options = group.options();
  options.anew = true;
  group.patience = 20;
  CHECK(Bootstrap(group.log(), options).run().code() == StatusCode::kCancelled);
  CHECK(group.said.find("http-port") != std::string::npos);
  CHECK(group.said.find("a start without --reinit continues with them") != std::string::npos);
  CHECK(!is_to_load_anew(data));
  CHECK(read_back(data).state.count(500) == 1);

  // What has begun is still to be done at the next start.
  group.add_node("standby", false, 11, 1002);
  group.patience = 20;
  const auto fetch = std::exchange(group.fetch, [](int, const auto&) { return io_error("cut"); });
  CHECK(Bootstrap(group.log(), options).run().code() == StatusCode::kCancelled);
  group.fetch = fetch;
  group.patience = 400;
  Bootstrap again(group.log(), group.options());
  CHECK(again.run().ok());
  CHECK(again.has_loaded());
  CHECK(read_back(data).state == copied_state(kCopiedLast));
}

TEST_CASE(
    "a wish to load anew counts for the group that was there, and for none if there was none") {
  Group group;
  group.trim_to(8);
  const std::string data = group.directory.path() + "/data";
  keep_data(data);
  const std::string epoch = group.service.state().epoch;
  BootstrapOptions options = group.options();
  options.anew = true;
  group.service.put_epoch("");
  CHECK(Bootstrap(group.log(), options).run().ok());
  CHECK(!is_to_load_anew(data));
  group.service.put_epoch(epoch);
  group.add_node("standby", false, 11, 1002);
  group.fetch = [](int, const auto&) { return io_error("cut"); };
  group.patience = 20;
  CHECK(Bootstrap(group.log(), options).run().code() == StatusCode::kCancelled);
  CHECK(is_to_load_anew(data));
  const std::unique_ptr<RemoteLog> log = group.service.connect();
  log->drop_record(RemoteRecordKind::kNode, "standby", [](const RemoteAnswer&) {});
  group.patience = 20;
  CHECK(Bootstrap(group.log(), group.options()).run().code() == StatusCode::kCancelled);
  CHECK(group.said.find("if there is no such node any more") != std::string::npos);
  log->close();

  EpochValue other;
  other.cluster_id = "another";
  other.epoch = 3;
  group.service.put_epoch(encode_epoch(other));
  const Status status = Bootstrap(group.log(), group.options()).run();
  CHECK(status.code() == StatusCode::kInvalid);
  CHECK(status.message().find("they are not replaced") != std::string::npos);
  CHECK(read_back(data).state.count(500) == 1);
}

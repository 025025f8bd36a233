// Speaks to the replicated log of a group for a test in Python (tests/harness/log_talk.py).
//
//   log_talk ENDPOINT,... [user=U] [password=P] [ca=FILE] [cert=FILE] [key=FILE] [compact=no]
//   log_talk fake          the replicated log in memory (tests/support/fake_remote_log.h)
//
// Each line of the input is a call: an id, which of the process's logs it is for (0 to 3), the name
// of the call, its arguments. Each line of the output is an answer (id, outcome, revision, epoch,
// what is wrong, then what the call returns), or an event of follow(). Fields are divided by tabs.
// A frame =N:c is N times this character; frames are shown as their length and first 40 bytes. The
// end of the input ends the program.
#include <array>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/numbers.h"
#include "storage/etcd/etcd_log.h"
#include "storage/remote_log.h"
#include "tests/support/fake_remote_log.h"

namespace sluice {
namespace {

using Fields = std::vector<std::string>;

Fields split(const std::string& text, char divider) {
  Fields fields(1);
  for (const char c : text) {
    if (c == divider) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

void say(const Fields& fields) {
  static std::mutex mutex;
  std::string line;
  for (const std::string& field : fields) line += (line.empty() ? "" : "\t") + field;
  line += '\n';
  const std::lock_guard<std::mutex> lock(mutex);
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

std::string show(Bytes bytes) {
  return std::to_string(bytes.size()) + ":" + std::string(bytes.substr(0, 40));
}

std::string show(const RemoteMember& member) {
  if (!member.answers) return member.endpoint + " does not answer";
  std::string text = member.endpoint + " " + member.version + (member.leads ? " leads" : "") + " " +
                     std::to_string(member.bytes) + " of " + std::to_string(member.quota_bytes);
  for (const std::string& alarm : member.alarms) text += " " + alarm;
  return text;
}

const char* name_of(RemoteOutcome outcome) {
  switch (outcome) {
    case RemoteOutcome::kDone:
      return "done";
    case RemoteOutcome::kFenced:
      return "fenced";
    case RemoteOutcome::kConflict:
      return "conflict";
    case RemoteOutcome::kCompacted:
      return "compacted";
    case RemoteOutcome::kUnknown:
      return "unknown";
    case RemoteOutcome::kClosed:
      return "closed";
  }
  return "?";
}

void say_answer(const std::string& id, const RemoteAnswer& answer, const Fields& more) {
  Fields fields = {id, name_of(answer.outcome), std::to_string(answer.revision), answer.epoch,
                   answer.status.message()};
  fields.insert(fields.end(), more.begin(), more.end());
  say(fields);
}

class Listener : public RemoteListener {
 public:
  explicit Listener(std::string id) : id_(std::move(id)) {}
  void on_frame(uint64_t seq, Bytes frame) override {
    say({id_, "frame", std::to_string(seq), show(frame)});
  }
  void on_beat(Bytes value) override { say({id_, "beat", std::string(value)}); }
  void on_epoch(Bytes value) override { say({id_, "epoch", std::string(value)}); }
  void on_trim(Bytes value) override { say({id_, "trim", std::string(value)}); }
  void on_pause(Bytes value, int64_t revision) override {
    say({id_, "pause", std::string(value), std::to_string(revision)});
  }
  void on_record(RemoteRecordKind kind, Bytes name, std::optional<Bytes> value) override {
    const std::string what = kind == RemoteRecordKind::kNode ? "node" : "hold";
    if (value.has_value()) {
      say({id_, what, std::string(name), std::string(*value)});
    } else {
      say({id_, what, std::string(name)});
    }
  }
  void on_lost(const Status& reason) override { say({id_, "lost", reason.message()}); }

 private:
  const std::string id_;
};

std::string frame_of(const std::string& text) {
  if (!text.starts_with("=")) return text;
  const size_t colon = text.find(':');
  return std::string(parse_u64(text.substr(1, colon - 1)).value_or(0), text.at(colon + 1));
}

class Talk {
 public:
  explicit Talk(RemoteLog& log) : log_(log) {}

  void run(Fields line) {
    line.erase(line.begin() + 1);
    const std::string& call = line[1];
    const auto text = [&line](size_t index) { return index < line.size() ? line[index] : ""; };
    const auto number = [&text](size_t index) { return parse_u64(text(index)).value_or(0); };
    const RemoteDone done = [id = line[0]](const RemoteAnswer& answer) {
      say_answer(id, answer, {answer.repeated ? "repeated" : ""});
    };
    if (call == "epoch") return log_.change_epoch(text(2), text(3), done);
    if (call == "tidy") return log_.tidy(text(2), number(3), done);
    if (call == "append") {
      return log_.append(text(2), number(3), std::make_shared<const std::string>(frame_of(text(4))),
                         done);
    }
    if (call == "beat") return log_.beat(text(2), text(3), done);
    if (call == "trim") return log_.trim(text(2), number(3), text(4), text(5), done);
    if (call == "compact") return log_.compact(static_cast<int64_t>(number(2)), done);
    if (call == "pause") return log_.set_pause(text(2), done);
    const RemoteRecordKind kind =
        text(2) == "hold" ? RemoteRecordKind::kHold : RemoteRecordKind::kNode;
    if (call == "put") return log_.put_record(kind, text(3), text(4), text(5), done);
    if (call == "drop") return log_.drop_record(kind, text(3), done);
    read(line[0], call, kind, number(2), static_cast<int64_t>(number(call == "frames" ? 3 : 2)));
  }

 private:
  void read(const std::string& id, const std::string& call, RemoteRecordKind kind, uint64_t seq,
            int64_t revision) {
    if (call == "state") {
      log_.read_state(revision, [id](const RemoteAnswer& answer, const RemoteState& state) {
        Fields more = {state.epoch, state.beat, state.trim, std::to_string(state.last_seq)};
        if (!state.pause.empty()) more.push_back(state.pause);
        say_answer(id, answer, more);
      });
    } else if (call == "frames") {
      log_.read_frames(seq, revision, [id](const RemoteAnswer& answer, const RemoteFrames& page) {
        Fields more = {page.more ? "more" : ""};
        for (const RemoteFrame& frame : page.frames) {
          more.push_back(std::to_string(frame.seq) + "=" + show(frame.bytes));
        }
        say_answer(id, answer, more);
      });
    } else if (call == "records") {
      log_.read_records(kind,
                        [id](const RemoteAnswer& answer, const std::vector<RemoteRecord>& records) {
                          Fields more;
                          for (const RemoteRecord& record : records) {
                            more.push_back(record.name + "=" + record.value);
                          }
                          say_answer(id, answer, more);
                        });
    } else if (call == "status") {
      log_.status([id](const RemoteAnswer& answer, const std::vector<RemoteMember>& members) {
        Fields more;
        for (const RemoteMember& member : members) more.push_back(show(member));
        say_answer(id, answer, more);
      });
    } else if (call == "follow") {
      log_.follow(revision, RemoteFollow::kAll, std::make_shared<Listener>(id));
    } else if (call == "follow-no-frames") {
      log_.follow(revision, RemoteFollow::kNoFrames, std::make_shared<Listener>(id));
    } else if (call == "close") {
      log_.close();
      say({id, "done"});
    } else {
      say({id, "no such call"});
    }
  }

  RemoteLog& log_;
};

EtcdOptions read_options(int count, char** arguments) {
  EtcdOptions options;
  options.endpoints = split(arguments[1], ',');
  options.cluster = "test";
  options.group = "1";
  options.log = [](LogLevel, std::string_view text) { say({"log", std::string(text)}); };
  for (int i = 2; i < count; ++i) {
    const Fields pair = split(arguments[i], '=');
    if (pair[0] == "user") options.user = pair[1];
    if (pair[0] == "password") options.password = [text = pair[1]] { return text; };
    if (pair[0] == "ca") options.ca_file = pair[1];
    if (pair[0] == "cert") options.cert_file = pair[1];
    if (pair[0] == "key") options.key_file = pair[1];
    if (pair[0] == "compact") options.compact = pair[1] != "no";
    if (pair[0] == "group") options.group = pair[1];
  }
  return options;
}

// The process's logs, which begin when they are first used.
int talk(const std::function<Result<std::unique_ptr<RemoteLog>>()>& connect) {
  std::array<std::unique_ptr<RemoteLog>, 4> logs;
  std::string line;
  do {
    const Fields fields = split(line, '\t');
    const size_t index = fields.size() < 2 ? 0 : parse_u64(fields[1]).value_or(0);
    if (!logs.at(index)) {
      Result<std::unique_ptr<RemoteLog>> log = connect();
      if (!log.ok()) {
        say({"refused", log.status().message()});
        return 1;
      }
      logs.at(index) = std::move(*log);
    }
    if (fields.size() > 2) Talk(*logs.at(index)).run(fields);
  } while (std::getline(std::cin, line));
  for (const auto& log : logs) {
    if (log) log->close();
  }
  return 0;
}

int run(int count, char** arguments) {
  if (count < 2) return 2;
  if (std::string(arguments[1]) == "fake") {
    test::FakeRemoteService service(1);
    service.start();
    const int code = talk([&service] { return service.connect(); });
    service.stop();
    return code;
  }
  const EtcdOptions options = read_options(count, arguments);
  return talk([&options] { return make_etcd_log(options); });
}

}  // namespace
}  // namespace sluice

int main(int count, char** arguments) { return sluice::run(count, arguments); }

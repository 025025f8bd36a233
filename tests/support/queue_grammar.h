// QueueTrial: a history of two queues that is made of bytes, which fuzzing or chance chooses: most
// commands are well-formed, some have a word that is another one, missing or doubled. It throws
// what is wrong: a reply that is no RESP, or a queue that its journal or a checkpoint does not
// give back. Used by one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/bytes.h"
#include "tests/support/queue_server.h"

namespace sluice::test {

// `$name` stands for one of the words of that name (kWords), `$held` for an id and its lease.
struct QueueForm {
  std::string_view head;
  std::vector<std::string_view> options = {};  // some of them, in any order
  std::string_view pair = {};                  // any number of these, each with an option
  bool pops = false;                           // POP with its options may follow
};

inline const std::vector<std::string_view> kPopOptions = {
    "WORKER $worker", "WORKER $worker REQID $name",
    "COUNT $number",  "BLOCK $ms",
    "LEASE $term",    "TIED",
    "CAP $number",    "MATCH $name",
    "ID $id",         "BRIEF",
    "WITH $field",    "WITH need_results",
    "WITH tags"};

inline const std::vector<QueueForm> kQueueForms = {
    {"Q.ADD $queue $id $bytes",
     {"PRI $band", "GROUP $name", "KEY $name", "DELAY $ms", "TTL $ms", "LEASE $term", "MAXRUN $ms",
      "RETRY $number", "BACKOFF $ms $ms", "NEED $id", "AFTER $id", "TAG $name $name",
      "IFDUP $ifdup", "MAXWAIT $ms", "COST $number", "BOOST $ms", "BRIEF", "WAIT $ms"}},
    {"Q.ADD $queue $id $bytes", {"NEED $id", "AFTER $id", "IFDUP $ifdup", "WAIT $ms", "BRIEF"}},
    {"Q.POP 1 $queue", kPopOptions},
    {"Q.POP 2 q r", kPopOptions},
    {"Q.ACK $queue $held", {"RESULT $bytes"}, "AND $held", true},
    {"Q.NACK $queue $held", {"FAIL", "FATAL", "SILENT", "DELAY $ms", "ERROR $bytes"}, "AND $held"},
    {"Q.NACK $queue WHERE WORKER $worker",
     {"LOST", "SILENT", "FAIL", "ERROR $bytes", "CURSOR $number"}},
    {"Q.TOUCH $queue $held",
     {"LEASE $term", "PROGRESS $bytes", "LOG $bytes", "WORKER $worker"},
     "AND $held"},
    {"Q.LOG $queue $id", {"FROM $number", "COUNT $number", "BLOCK $ms"}},
    {"Q.EVENTS $queue $seq", {"COUNT $number", "BLOCK $ms", "TYPE $type", "ID $id"}},
    {"Q.GET $queue $id",
     {"WITH payload", "WITH result", "WITH options", "WITH dependents", "PROGRESS $number",
      "WAIT $ms"}},
    {"Q.CANCEL $queue $id", {"REASON $bytes", "GRACE $ms"}},
    {"Q.MOVE $queue $id", {"PRI $band", "FRONT", "BACK", "BOOST $ms", "DELAY $ms"}},
    {"Q.RETRY $queue $id"},
    {"Q.PURGE $queue $id"},
    {"Q.LIST $queue",
     {"BY AGE", "BY DISPATCH", "COUNT $number", "WITH payload", "WITH options", "BRIEF"}},
    {"Q.STATS $queue", {"BY WORKER", "BY GROUP", "BY ERROR", "WINDOW $ms"}},
    {"Q.CONFIG $queue SET max_active $number"},
    {"Q.CONFIG $queue SET log_bytes $number"},
    {"Q.CONFIG $queue SET events $number"},
    {"Q.CONFIG $queue SET fencing $switch"},
    {"Q.CONFIG $queue SET retain_completed $number retain_failed $number"},
    {"Q.CONFIG $queue SET retry $number crash_limit $number"},
    {"Q.CONFIG $queue SET worker_ttl_ms $ms"},
    {"Q.CONFIG $queue WORKER $worker SET quiet $switch"},
    {"Q.CONFIG $queue WORKER $worker GET quiet"},
    {"Q.CONFIG $queue WORKER $worker RESET"},
    {"Q.CONFIG $queue GROUP $name SET max_active $number"},
    {"DEL $queue"},
    {"RENAME r q"},
    {"MULTI"},
    {"EXEC"},
    {"EXEC"},
};

class QueueTrial {
 public:
  // The bytes must live as long as this.
  explicit QueueTrial(Bytes bytes) : bytes_(bytes) {
    server_.connect(kConnections);
    server_.set_clock(1'700'000'000'000, 1'000);
  }

  // To the end of the bytes.
  void run() {
    while (!bytes_.empty()) step();
    check();
  }

  // Commands that were not refused, by their first word; and by that with each of its options.
  const std::map<std::string, int>& accepted() const { return accepted_; }

 private:
  using Words = std::vector<std::string>;
  static constexpr size_t kConnections = 3;

  // At the end of the bytes all choices are the first.
  size_t below(size_t count) {
    if (bytes_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(bytes_[0]);
    bytes_.remove_prefix(1);
    return byte % count;
  }
  template <class Choices>
  auto one_of(const Choices& choices) {
    return choices[below(choices.size())];
  }

  void step() {
    const size_t connection = below(kConnections);
    switch (below(16)) {
      case 0:
        return server_.pass(one_of(std::vector<int64_t>{1, 50, 400, 3'000, 40'000}));
      case 1:
        return server_.disconnect(connection);
      case 2:
        if (below(4) == 0) server_.restart(kConnections);
        return;
      default:
        return command(connection);
    }
  }

  void command(size_t connection) {
    if (server_.session(connection).client.waiter != nullptr) server_.give_up(connection);
    server_.take_deliveries();
    used_.clear();
    Words words = made(one_of(kQueueForms));
    if (below(16) == 0) {
      spoil(words);
      used_.clear();
    }
    if (words.empty()) return;
    const std::optional<RespValue> reply = server_.run(connection, words);
    if (reply.has_value()) check_resp(*reply);
    if (!reply.has_value() || (!reply->is_error() && reply->text != "QUEUED")) {
      ++accepted_[words[0]];
      for (const std::string_view option : used_) ++accepted_[words[0] + " " + std::string(option)];
    }
    for (const auto& [told, value] : server_.take_deliveries()) check_resp(value);
    server_.run_timers();
  }

  static void check_resp(const RespValue& reply) {
    if (reply.is_error() && reply.text == "not RESP")
      throw std::runtime_error("a reply is no RESP");
    for (const RespValue& item : reply.items) check_resp(item);
  }

  Words made(const QueueForm& form) {
    Words words;
    add(words, form.head);
    queue_ = words.size() > 1 && words[1] == "r" ? "r" : "q";
    add_some(words, form.options);
    for (size_t pairs = form.pair.empty() ? 0 : below(4); pairs > 0; --pairs) {
      add(words, form.pair);
      if (!form.options.empty() && below(2) == 0) add_option(words, one_of(form.options));
    }
    if (form.pops && below(2) == 0) {
      words.emplace_back("POP");
      add_some(words, kPopOptions);
    }
    return words;
  }

  void add_some(Words& words, const std::vector<std::string_view>& options) {
    if (options.empty()) return;
    for (size_t count = below(4); count > 0; --count) add_option(words, one_of(options));
  }

  void add_option(Words& words, std::string_view option) {
    used_.push_back(option);
    add(words, option);
  }

  void add(Words& words, std::string_view pattern) {
    std::istringstream rest{std::string(pattern)};
    for (std::string word; rest >> word;) {
      if (word == "$held") {
        auto [id, lease] = held();
        words.push_back(std::move(id));
        words.push_back(std::move(lease));
      } else {
        words.push_back(word[0] == '$' ? chosen(word) : word);
      }
    }
  }

  std::string chosen(const std::string& name) {
    static const std::map<std::string, Words> kWords = {
        {"$queue", {"q", "q", "q", "r"}},
        {"$id", {"a", "b", "c", "d", "e", "*", "AND", "WHERE"}},
        {"$bytes", {"x", "", "some text", "AND", std::string(300, 'y'), std::string("\0\r\n", 3)}},
        {"$number", {"1", "2", "0", "3", "100", "-1", "18446744073709551615"}},
        {"$seq", {"-", "$", "0", "1", "5", "-1"}},
        {"$type", {"progress", "completed", "added", "none"}},
        // A band without a name is forgotten by a checkpoint once it is empty.
        {"$band", {"1", "0", "4", "HIGH", "-1"}},
        {"$ms", {"100", "0", "1", "2000", "30000", "-5"}},
        {"$term", {"1000", "100", "30000", "0"}},
        {"$name", {"n", "m", "", "n*"}},
        {"$worker", {"w1", "w2", "w*"}},
        {"$field", {"progress", "group", "error", "none"}},
        {"$ifdup", {"KEEP", "UPDATE", "REPLACE", "ERROR"}},
        {"$switch", {"on", "off"}}};
    return one_of(kWords.at(name));
  }

  // Mostly a run that is active, with its lease.
  std::pair<std::string, std::string> held() {
    std::vector<std::pair<std::string, std::string>> runs;
    if (Queue* queue = server_.find_queue(queue_)) {
      queue->jobs.for_each([&](const Job* job) {
        if (job->run() != nullptr) runs.emplace_back(job->id(), std::to_string(job->run()->token));
      });
    }
    std::sort(runs.begin(), runs.end());  // not by the hash of the ids
    if (!runs.empty() && below(8) != 0) return one_of(runs);
    return {chosen("$id"), one_of(Words{"1", "2", "*", "0", "x"})};
  }

  void spoil(Words& words) {
    const auto at = words.begin() + static_cast<long>(below(words.size()));
    switch (below(3)) {
      case 0:
        words.erase(at);
        return;
      case 1:
        words.insert(at, *at);
        return;
      default:
        *at = one_of(Words{"", "AND", "POP", "WITH", "9223372036854775808", "\xff", "BLOCK"});
    }
  }

  void check() {
    static const Words kQueues = {"q", "r"};
    static const Words kIds = {"a", "b", "c", "d", "e", "AND"};
    for (const std::string& name : kQueues) {
      if (Queue* queue = server_.find_queue(name)) queue->check();
    }
    const Words live = server_.describe(kQueues, kIds);
    compare("the journal", live, server_.describe_replayed(server_.units(), kQueues, kIds));
    compare("a checkpoint", live, server_.describe_walked(kQueues, kIds));
  }

  static void compare(const std::string& what, const Words& live, const Words& other) {
    for (size_t i = 0; i < live.size(); ++i) {
      if (live[i] == other.at(i)) continue;
      throw std::runtime_error(what + " gives\n  " + other[i] + "\nin place of\n  " + live[i]);
    }
  }

  Bytes bytes_;
  QueueServer server_;
  std::string queue_ = "q";
  std::vector<std::string_view> used_;  // the options of the present command
  std::map<std::string, int> accepted_;
};

}  // namespace sluice::test

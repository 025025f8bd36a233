// QueueTalk: a QueueServer with commands as one line of words ('' is the empty word), and replies
// as texts: `{id=a result=added}`, `[x y]`, `-ERR text`, `null`.
#pragma once

#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/queue_server.h"

namespace sluice::test {

class QueueTalk : public QueueServer {
 public:
  QueueTalk() {
    set_clock(1'700'000'000'000, 0);
    connect(4);
  }

  static std::vector<std::string> words(const std::string& line) {
    std::vector<std::string> out;
    std::istringstream in(line);
    for (std::string word; in >> word;) out.push_back(word == "''" ? "" : word);
    return out;
  }

  // Runs the line on connection 0.
  RespValue ask(const std::string& line) {
    const std::optional<RespValue> reply = run(0, words(line));
    return reply.value_or(RespValue::of("(waits)"));
  }
  std::string say(const std::string& line) { return ask(line).show(); }
  std::string say_as(size_t connection, const std::string& line) {
    const std::optional<RespValue> reply = run(connection, words(line));
    return reply.has_value() ? reply->show() : "(waits)";
  }
  // One field of the reply, which must be a map.
  std::string say(const std::string& line, const std::string& field) {
    return ask(line).field(field);
  }

  // Some fields of a job of queue `q`: "pending 0".
  std::string job(const std::string& id, const std::vector<std::string>& fields) {
    const RespValue reply = ask("Q.GET q " + id + " WITH payload WITH result");
    if (reply.is_null()) return "null";
    std::string out;
    for (const std::string& field : fields) out += (out.empty() ? "" : " ") + reply.field(field);
    return out;
  }
  std::string state(const std::string& id) { return job(id, {"state"}); }
  std::string stat(const std::string& field) { return say("Q.STATS q", field); }

  // Pops from queue `q`; returns the ids in order, and remembers the leases.
  std::string pop(const std::string& options = "") { return ids_of(ask("Q.POP 1 q " + options)); }
  // The ids in a reply of Q.POP, or the text of any other reply.
  std::string ids_of(const RespValue& reply) {
    if (reply.kind != RespValue::Kind::kArray) return reply.show();
    std::string out;
    for (const RespValue& job : reply.items) {
      out += (out.empty() ? "" : " ") + job.field("id");
      leases_[job.field("id")] = job.field("lease");
    }
    return out;
  }
  std::string lease(const std::string& id) const {
    const auto found = leases_.find(id);
    return found == leases_.end() ? "0" : found->second;
  }
  std::string ack(const std::string& id, const std::string& options = "") {
    return say("Q.ACK q " + id + " " + lease(id) + " " + options);
  }
  std::string nack(const std::string& id, const std::string& options = "") {
    return say("Q.NACK q " + id + " " + lease(id) + " " + options);
  }
  std::string touch(const std::string& id, const std::string& options = "") {
    return say("Q.TOUCH q " + id + " " + lease(id) + " " + options);
  }
  // Pops and acknowledges jobs one after the other until none is left.
  std::string drain() {
    std::string out;
    for (;;) {
      const std::string id = pop();
      if (id == "null" || id[0] == '-') return out;
      out += (out.empty() ? "" : " ") + id;
      ack(id);
    }
  }
  void add(const std::string& ids, const std::string& options = "") {
    for (const std::string& id : words(ids)) say("Q.ADD q " + id + " p-" + id + " " + options);
  }

 private:
  std::map<std::string, std::string> leases_;
};

}  // namespace sluice::test

// Adopted: a QueueTalk with a queue `q` that has adopted keys of one of the two dialects, kFive or
// kUnit.
#pragma once

#include <string>

#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace sluice::test {

inline constexpr const char* kFive =
    "Q.ADOPT q PENDING p:critical PENDING p:high PENDING p:normal PENDING p:low "
    "PENDING p:background ACTIVE act PAYLOAD ev: ";
inline constexpr const char* kUnit =
    "Q.ADOPT q PENDING pend ACTIVE act PAYLOAD ev: UNIT 1000000000000 ";

// The clock of QueueTalk starts at 1,700,000,000 seconds.
class Adopted : public QueueTalk {
 public:
  explicit Adopted(const std::string& definition) {
    CHECK(say(definition) == "OK");
    started_ = wall_ms();
  }

  // A score of the second dialect (seconds), this long after the start.
  std::string at_s(int64_t after_ms) const {
    const std::string ms = std::to_string(started_ + after_ms);
    return ms.substr(0, ms.size() - 3) + "." + ms.substr(ms.size() - 3);
  }
  // A score of the first dialect.
  std::string at_ms(int band, int64_t after_ms) const {
    return std::to_string(band * 1'000'000'000'000 + started_ + after_ms);
  }
  // The types of all events, with their ids.
  std::string events() {
    std::string out;
    for (const RespValue& event : ask("Q.EVENTS q - COUNT 1000").items) {
      out += (out.empty() ? "" : " ") + event.items.at(2).text + ":" + event.items.at(3).text;
    }
    return out;
  }
  std::string by_priority() { return stat("by_priority"); }
  // The cancelled jobs, all and by band.
  std::string cancelled() {
    std::string out = stat("cancelled");
    const RespValue bands = ask("Q.STATS q BY PRI");
    for (size_t i = 0; i + 1 < bands.items.size(); i += 2) {
      const std::string count = bands.items[i + 1].field("cancelled");
      if (count != "0") out += " " + bands.items[i].text + "=" + count;
    }
    return out;
  }
  std::string list(const std::string& options = "") {
    std::string out;
    const RespValue page = ask("Q.LIST q " + options);
    for (const RespValue& job : page.items.at(1).items) {
      out += (out.empty() ? "" : " ") + job.field("id");
    }
    cursor_ = page.items.at(0).text;
    return out;
  }
  const std::string& cursor() const { return cursor_; }

  // try_schedule of the second dialect, without a cap.
  std::string schedule_five() {
    const std::string script =
        "for i = 2, #KEYS do local popped = redis.call('ZPOPMIN', KEYS[i]) "
        "if #popped > 0 then redis.call('SADD', KEYS[1], popped[1]) return popped[1] end end";
    return run(0, {"EVAL", script, "6", "act", "p:critical", "p:high", "p:normal", "p:low",
                   "p:background"})
        ->show();
  }

 private:
  int64_t started_ = 0;
  std::string cursor_;
};

}  // namespace sluice::test

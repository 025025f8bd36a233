#include "net/http/change_log.h"

#include <algorithm>

#include "engine/base/quoting.h"

namespace sluice {

namespace {

bool is_one_of(Bytes word, std::initializer_list<Bytes> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Whether the command's third word is the id of a job.
bool names_job(std::span<const std::string> words) {
  return words.size() > 2 && words[2] != "WHERE" &&
         is_one_of(words[0], {"Q.CANCEL", "Q.RETRY", "Q.PURGE", "Q.MOVE"});
}

// Whether the word names the queue or the job: links lead there, and rights depend on it.
bool is_name(std::span<const std::string> words, size_t i) {
  return i == 1 || (i == 2 && names_job(words));
}

std::string shortened(Bytes word) {
  if (word.size() <= ChangeLog::kMostWordBytes) return std::string(word);
  return std::string(cut_text(word, ChangeLog::kMostWordBytes)) + "…";
}

// Without the cursor of a command that continues another one.
std::vector<std::string> kept_words(std::span<const std::string> words) {
  std::vector<std::string> kept;
  const bool has_pages = words.size() > 2 && words[2] == "WHERE";
  for (size_t i = 0; i < words.size(); ++i) {
    if (has_pages && words[i] == "CURSOR") {
      ++i;
    } else if (kept.size() == ChangeLog::kMostWords) {
      kept.emplace_back("…");
      break;
    } else {
      kept.push_back(is_name(words, i) ? words[i] : shortened(words[i]));
    }
  }
  return kept;
}

bool is_same_but_job(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  if (a.size() != b.size()) return false;
  const bool job = names_job(a) && names_job(b);
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && !(job && i == 2)) return false;
  }
  // What is no change of jobs is told each time.
  return job || (a.size() > 2 && a[2] == "WHERE");
}

}  // namespace

int64_t ChangeLog::count_of(std::span<const std::string> words, const RespValue& reply) {
  if (reply.is_error() || reply.is_null() || words.empty()) return 0;
  const Bytes name = words[0];
  const bool of_jobs = is_one_of(name, {"Q.CANCEL", "Q.RETRY", "Q.PURGE", "Q.NACK"});
  if (of_jobs && reply.kind == RespValue::Kind::kArray) return reply.items[1].integer;
  if (name == "Q.CANCEL") return reply.text == "gone" ? 0 : 1;
  if (name == "Q.PURGE") return reply.text == "purged" ? 1 : 0;
  if (name == "DEL") return reply.integer;
  if (name == "Q.CONFIG") {
    const auto sets = [&](size_t i) {
      return words.size() > i && is_one_of(words[i], {"SET", "RESET"});
    };
    const bool has_rule = words.size() > 2 && is_one_of(words[2], {"GROUP", "KEY", "WORKER"});
    return sets(has_rule ? 4 : 2) ? 1 : 0;
  }
  return is_one_of(name, {"Q.RETRY", "Q.MOVE", "BGSAVE"}) ? 1 : 0;
}

void ChangeLog::add(const Principal& principal, int database, std::span<const std::string> words,
                    int64_t count, int64_t now_ms) {
  constexpr size_t kIdDigits = 16;
  Change change{now_ms, principal.user->name, "", database, kept_words(words), count};
  if (!principal.logged_in) change.token = principal.token.substr(0, kIdDigits);
  const MutexLock lock(mutex_);
  if (!changes_.empty()) {
    Change& last = changes_.back();
    if (last.user == change.user && last.token == change.token &&
        last.database == change.database && now_ms - last.at_ms < kTogetherMs &&
        is_same_but_job(last.words, change.words)) {
      last.at_ms = now_ms;
      last.count += count;
      return;
    }
  }
  changes_.push_back(std::move(change));
  if (changes_.size() > kMost) changes_.pop_front();
}

std::vector<Change> ChangeLog::newest() const {
  const MutexLock lock(mutex_);
  return {changes_.rbegin(), changes_.rend()};
}

}  // namespace sluice

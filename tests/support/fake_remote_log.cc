#include "tests/support/fake_remote_log.h"

#include <algorithm>
#include <utility>

namespace sluice::test {
namespace {

constexpr size_t kPage = 32;
constexpr size_t kKeptPast = 40;
// Events change places with one of so many next ones.
constexpr size_t kEventDisorder = 4;

RemoteAnswer refused(RemoteOutcome outcome) {
  RemoteAnswer answer;
  answer.outcome = outcome;
  if (outcome == RemoteOutcome::kUnknown) answer.status = io_error("the fake gave no answer");
  return answer;
}

std::string folder_of(const GroupKeys& keys, RemoteRecordKind kind) {
  return kind == RemoteRecordKind::kNode ? keys.nodes() : keys.holds();
}

}  // namespace

class FakeRemoteLog final : public RemoteLog {
 public:
  FakeRemoteLog(FakeRemoteService& service, uint64_t client) : service_(service), client_(client) {}
  ~FakeRemoteLog() override { close(); }

  void change_epoch(const std::string& fence, const std::string& next, RemoteDone done) override {
    change(std::move(done), [fence, next](FakeRemoteService& s, RemoteAnswer& answer) {
      if (s.fenced(fence, answer)) return;
      s.put(s.keys_.epoch(), next);
    });
  }

  void tidy(const std::string& fence, uint64_t next_seq, RemoteDone done) override {
    change(std::move(done), [fence, next_seq](FakeRemoteService& s, RemoteAnswer& answer) {
      if (s.fenced(fence, answer)) return;
      for (const std::string& key : s.keys_of(s.keys_.logs(), 0)) {
        if (*s.keys_.log_seq(key) >= next_seq) s.put(key, std::nullopt);
      }
    });
  }

  void append(const std::string& fence, uint64_t seq, std::shared_ptr<const std::string> frame,
              RemoteDone done) override {
    change(std::move(done),
           [fence, seq, frame = std::move(frame)](FakeRemoteService& s, RemoteAnswer& answer) {
             if (!s.faults_.no_fence && s.fenced(fence, answer)) return;
             const std::optional<std::string> there = s.get(s.keys_.log(seq));
             if (!there.has_value()) {
               s.put(s.keys_.log(seq), *frame);
             } else if (*there == *frame) {
               answer.repeated = true;
             } else {
               answer.outcome = RemoteOutcome::kConflict;
             }
           });
  }

  void beat(const std::string& fence, const std::string& value, RemoteDone done) override {
    change(std::move(done), [fence, value](FakeRemoteService& s, RemoteAnswer& answer) {
      if (!s.fenced(fence, answer)) s.put(s.keys_.beat(), value);
    });
  }

  void trim(const std::string& fence, uint64_t seq, const std::string& old,
            const std::string& value, RemoteDone done) override {
    change(std::move(done), [fence, seq, old, value](FakeRemoteService& s, RemoteAnswer& answer) {
      if (s.fenced(fence, answer)) return;
      const std::string mark = s.get(s.keys_.trim()).value_or("");
      if (mark != old && mark != value) {
        answer.outcome = RemoteOutcome::kConflict;
        return;
      }
      if (mark != value) s.put(s.keys_.trim(), value);
      for (const std::string& key : s.keys_of(s.keys_.logs(), 0)) {
        if (*s.keys_.log_seq(key) < seq) s.put(key, std::nullopt);
      }
      s.forget(s.revision_);
    });
  }

  void compact(int64_t revision, RemoteDone done) override {
    change(std::move(done),
           [revision](FakeRemoteService& s, RemoteAnswer&) { s.forget(revision); });
  }

  void set_pause(const std::string& value, RemoteDone done) override {
    change(std::move(done), [value](FakeRemoteService& s, RemoteAnswer& answer) {
      if (s.get(s.keys_.pause()).value_or("") > value) {
        answer.outcome = RemoteOutcome::kConflict;
      } else {
        s.put(s.keys_.pause(), value);
      }
    });
  }

  void read_state(int64_t revision, RemoteStateDone done) override {
    read<RemoteState>(
        revision, std::move(done),
        [](FakeRemoteService& s, int64_t at, RemoteState& state) { state = s.state_at(at); },
        Reads::kLog);
  }

  void read_frames(uint64_t seq, int64_t revision, RemoteFramesDone done) override {
    read<RemoteFrames>(
        revision, std::move(done),
        [seq, revision](FakeRemoteService& s, int64_t at, RemoteFrames& page) {
          if (revision == 0 && s.chance(s.faults_.old_frames)) at = s.older(at);
          for (const std::string& key : s.keys_of(s.keys_.logs(), at)) {
            if (*s.keys_.log_seq(key) < seq) continue;
            page.more = page.frames.size() == kPage;
            if (page.more) break;
            page.frames.push_back({*s.keys_.log_seq(key), *s.get(key, at)});
          }
        },
        Reads::kLog);
  }

  void status(RemoteStatusDone done) override {
    using Members = std::vector<RemoteMember>;
    read<Members>(0, std::move(done),
                  [](FakeRemoteService& s, int64_t, Members& members) { members = s.members_; });
  }

  void follow(int64_t revision, RemoteFollow what,
              std::shared_ptr<RemoteListener> listener) override {
    service_.follow(client_, revision, what, std::move(listener));
  }

  void put_record(RemoteRecordKind kind, const std::string& name, const std::string& owner,
                  const std::string& value, RemoteDone done) override {
    change(std::move(done), [kind, name, owner, value](FakeRemoteService& s, RemoteAnswer& answer) {
      const std::string key = folder_of(s.keys_, kind) + name;
      const std::optional<std::string> there = s.get(key);
      std::string& holder = s.owners_[key];
      if (there.has_value() && holder != owner) {
        answer.outcome = RemoteOutcome::kConflict;
        return;
      }
      holder = owner;
      s.put(key, value);
    });
  }

  void drop_record(RemoteRecordKind kind, const std::string& name, RemoteDone done) override {
    change(std::move(done), [kind, name](FakeRemoteService& s, RemoteAnswer&) {
      const std::string key = folder_of(s.keys_, kind) + name;
      if (s.get(key).has_value()) s.put(key, std::nullopt);
    });
  }

  void read_records(RemoteRecordKind kind, RemoteRecordsDone done) override {
    using Records = std::vector<RemoteRecord>;
    const auto run = [kind](FakeRemoteService& s, int64_t at, Records& records) {
      const std::string folder = folder_of(s.keys_, kind);
      for (const std::string& key : s.keys_of(folder, at)) {
        records.push_back({key.substr(folder.size()), *s.get(key, at)});
      }
    };
    read<Records>(0, std::move(done), run,
                  kind == RemoteRecordKind::kHold ? Reads::kHolds : Reads::kOther);
  }

  void close() override { service_.close(client_); }

 private:
  template <typename Run>
  void change(RemoteDone done, Run run) {
    FakeRemoteService::Request request;
    request.client = client_;
    request.refuse = [done](RemoteOutcome outcome) { done(refused(outcome)); };
    request.run = [service = &service_, done = std::move(done), run = std::move(run)]() {
      RemoteAnswer answer;
      run(*service, answer);
      answer.revision = service->revision_;
      return [done, answer] { done(answer); };
    };
    service_.submit(std::move(request));
  }

  enum class Reads : uint8_t { kLog, kHolds, kOther };

  template <typename Value, typename Done, typename Run>
  void read(int64_t revision, Done done, Run run, Reads what = Reads::kOther) {
    FakeRemoteService::Request request;
    request.client = client_;
    request.reads_holds = what == Reads::kHolds;
    request.refuse = [done](RemoteOutcome outcome) { done(refused(outcome), Value()); };
    request.run = [service = &service_, revision, what, done = std::move(done),
                   run = std::move(run)]() {
      RemoteAnswer answer;
      Value value;
      answer.revision = revision == 0 ? service->revision_ : revision;
      if (revision == 0 && what == Reads::kLog && service->old_reads_ != 0) {
        --service->old_reads_;
        answer.revision = service->old_revision_;
      }
      if (answer.revision < service->compacted_) {
        answer.outcome = RemoteOutcome::kCompacted;
      } else {
        run(*service, answer.revision, value);
      }
      return [done, answer, value] { done(answer, value); };
    };
    service_.submit(std::move(request));
  }

  FakeRemoteService& service_;
  const uint64_t client_;
};

FakeRemoteService::FakeRemoteService(uint64_t seed, FakeFaults faults)
    : random_(seed), faults_(faults) {}

FakeRemoteService::~FakeRemoteService() { stop(); }

std::unique_ptr<RemoteLog> FakeRemoteService::connect() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::make_unique<FakeRemoteLog>(*this, ++clients_);
}

void FakeRemoteService::submit(Request request) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!closed_.contains(request.client)) {
      requests_.push_back(std::move(request));
      wake_.notify_all();
      return;
    }
  }
  request.refuse(RemoteOutcome::kClosed);
}

// What was sent may still arrive.
void FakeRemoteService::close(uint64_t client) {
  std::vector<Request> own;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    closed_.insert(client);
    wake_.wait(lock, [&] { return calling_ != client; });
    for (size_t i = requests_.size(); i-- != 0;) {
      if (requests_[i].client != client) continue;
      if (faults_.repeated > 0) past_.push_back(requests_[i].run);
      own.push_back(std::move(requests_[i]));
      requests_.erase(requests_.begin() + static_cast<ptrdiff_t>(i));
    }
    for (size_t i = answers_.size(); i-- != 0;) {
      if (answers_[i].request.client != client) continue;
      own.push_back(std::move(answers_[i].request));
      answers_.erase(answers_.begin() + static_cast<ptrdiff_t>(i));
    }
    followers_.erase(client);
  }
  for (const Request& request : own) request.refuse(RemoteOutcome::kClosed);
}

void FakeRemoteService::follow(uint64_t client, int64_t revision, RemoteFollow what,
                               std::shared_ptr<RemoteListener> listener) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (closed_.contains(client)) return;
  Follower& follower = followers_[client];
  follower = {std::move(listener), {}, revision < compacted_, what};
  for (const Change& change : changes_) {
    if (change.revision > revision && follows(follower, change)) follower.events.push_back(change);
  }
  wake_.notify_all();
}

bool FakeRemoteService::step() {
  Answer answer;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stalled_) return false;
    if (!past_.empty() && chance(faults_.repeated / 4)) {
      // Its answer reaches nobody.
      const size_t i = pick(past_.size());
      static_cast<void>(past_[i]());
    }
    size_t events = 0;
    for (const auto& [client, follower] : followers_) {
      events += follower.events.size() + (follower.lost ? 1 : 0);
    }
    const size_t all = requests_.size() + answers_.size() + events;
    if (all == 0) return false;
    const size_t which = pick(all);
    if (which < requests_.size()) {
      answer = arrive();
    } else if (which < requests_.size() + answers_.size()) {
      const size_t i = pick(answers_.size());
      answer = std::move(answers_[i].answer);
      calling_ = answers_[i].request.client;
      answers_.erase(answers_.begin() + static_cast<ptrdiff_t>(i));
    } else {
      answer = tell();
    }
  }
  if (answer) answer();
  const std::lock_guard<std::mutex> lock(mutex_);
  calling_ = 0;
  wake_.notify_all();
  return true;
}

FakeRemoteService::Answer FakeRemoteService::arrive() {
  const size_t i = pick(requests_.size());
  Request request = std::move(requests_[i]);
  requests_.erase(requests_.begin() + static_cast<ptrdiff_t>(i));
  calling_ = request.client;
  const auto unknown = [refuse = request.refuse] { refuse(RemoteOutcome::kUnknown); };
  const bool lost = chance(faults_.lost) || (request.reads_holds && chance(faults_.holds_unread));
  if (lost || chance(faults_.repeated)) {
    past_.push_back(request.run);
    if (past_.size() > kKeptPast) past_.erase(past_.begin());
  }
  if (lost) return unknown;
  Answer answer = request.run();
  if (chance(faults_.unanswered)) return unknown;
  answers_.push_back({std::move(request), std::move(answer)});
  return nullptr;
}

FakeRemoteService::Answer FakeRemoteService::tell() {
  for (auto& [client, follower] : followers_) {
    calling_ = client;
    if (follower.lost) {
      const auto listener = follower.listener;
      followers_.erase(client);
      return [listener] { listener->on_lost(io_error("the fake has compacted the revision")); };
    }
    if (follower.events.empty()) continue;
    const size_t i = pick(std::min(follower.events.size(), kEventDisorder));
    const Change change = std::move(follower.events[i]);
    follower.events.erase(follower.events.begin() + static_cast<ptrdiff_t>(i));
    return event_of(follower, change);
  }
  return nullptr;
}

FakeRemoteService::Answer FakeRemoteService::event_of(Follower& follower, const Change& change) {
  const auto listener = follower.listener;
  const std::optional<std::string> value = change.value;
  for (const auto kind : {RemoteRecordKind::kNode, RemoteRecordKind::kHold}) {
    const std::string folder = folder_of(keys_, kind);
    if (!change.key.starts_with(folder)) continue;
    if (chance(faults_.record_lost)) return nullptr;
    const std::string name = change.key.substr(folder.size());
    return [=] {
      listener->on_record(kind, name,
                          value.has_value() ? std::optional<Bytes>(*value) : std::nullopt);
    };
  }
  if (change.key == keys_.pause() && chance(faults_.pause_lost)) return nullptr;
  if (change.key == keys_.pause()) {
    return [=, at = change.revision] { listener->on_pause(value.value_or(""), at); };
  }
  if (!value.has_value()) return nullptr;
  if (change.key == keys_.epoch()) return [=] { listener->on_epoch(*value); };
  if (change.key == keys_.beat()) return [=] { listener->on_beat(*value); };
  if (change.key == keys_.trim()) return [=] { listener->on_trim(*value); };
  if (chance(faults_.event_lost)) return nullptr;
  const std::optional<uint64_t> seq = keys_.log_seq(change.key);
  if (!seq.has_value()) return nullptr;
  ++frames_told_;
  return [=] { listener->on_frame(*seq, *value); };
}

void FakeRemoteService::settle() {
  while (step()) {
  }
}

void FakeRemoteService::start() {
  stopping_ = false;
  thread_ = std::thread([this] { run(); });
}

void FakeRemoteService::run() {
  while (true) {
    const bool stepped = step();
    std::unique_lock<std::mutex> lock(mutex_);
    if (stopping_) return;
    if (!stepped) wake_.wait_for(lock, std::chrono::milliseconds(1));
  }
}

void FakeRemoteService::stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void FakeRemoteService::set_stalled(bool stalled) {
  const std::lock_guard<std::mutex> lock(mutex_);
  stalled_ = stalled;
  wake_.notify_all();
}

void FakeRemoteService::set_members(std::vector<RemoteMember> members) {
  const std::lock_guard<std::mutex> lock(mutex_);
  members_ = std::move(members);
}

void FakeRemoteService::set_faults(const FakeFaults& faults) {
  const std::lock_guard<std::mutex> lock(mutex_);
  faults_ = faults;
  if (faults_.repeated == 0) past_.clear();
}

size_t FakeRemoteService::outstanding() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return requests_.size() + answers_.size();
}

// --- the values ----------------------------------------------------------------------------------

std::optional<std::string> FakeRemoteService::get(const std::string& key, int64_t revision) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return std::nullopt;
  std::optional<std::string> value;
  for (const auto& [at, text] : found->second) {
    if (revision == 0 || at <= revision) value = text;
  }
  return value;
}

void FakeRemoteService::put(const std::string& key, std::optional<std::string> value) {
  ++revision_;
  values_[key].emplace_back(revision_, value);
  changes_.push_back({revision_, key, value});
  for (auto& [client, follower] : followers_) {
    if (follows(follower, changes_.back())) follower.events.push_back(changes_.back());
  }
}

std::vector<std::string> FakeRemoteService::keys_of(const std::string& prefix,
                                                    int64_t revision) const {
  std::vector<std::string> keys;
  for (auto at = values_.lower_bound(prefix); at != values_.end() && at->first.starts_with(prefix);
       ++at) {
    if (get(at->first, revision).has_value()) keys.push_back(at->first);
  }
  return keys;
}

RemoteState FakeRemoteService::state_at(int64_t revision) const {
  RemoteState state;
  state.epoch = get(keys_.epoch(), revision).value_or("");
  state.beat = get(keys_.beat(), revision).value_or("");
  state.trim = get(keys_.trim(), revision).value_or("");
  state.pause = get(keys_.pause(), revision).value_or("");
  for (const std::string& key : keys_of(keys_.logs(), revision)) {
    state.last_seq = *keys_.log_seq(key);
  }
  return state;
}

bool FakeRemoteService::fenced(const std::string& fence, RemoteAnswer& answer) const {
  const std::string epoch = get(keys_.epoch()).value_or("");
  if (epoch == fence) return false;
  answer.outcome = RemoteOutcome::kFenced;
  answer.epoch = epoch;
  return true;
}

RemoteState FakeRemoteService::state() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return state_at(0);
}

std::map<uint64_t, std::string> FakeRemoteService::frames() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::map<uint64_t, std::string> frames;
  for (const std::string& key : keys_of(keys_.logs(), 0)) {
    frames[*keys_.log_seq(key)] = *get(key);
  }
  return frames;
}

void FakeRemoteService::put_epoch(const std::string& value) {
  const std::lock_guard<std::mutex> lock(mutex_);
  put(keys_.epoch(), value);
}

void FakeRemoteService::put_frame(uint64_t seq, const std::string& frame) {
  const std::lock_guard<std::mutex> lock(mutex_);
  put(keys_.log(seq), frame);
}

void FakeRemoteService::erase_frame(uint64_t seq) {
  const std::lock_guard<std::mutex> lock(mutex_);
  put(keys_.log(seq), std::nullopt);
}

void FakeRemoteService::compact() {
  const std::lock_guard<std::mutex> lock(mutex_);
  forget(revision_);
}

void FakeRemoteService::lose_followers() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [client, follower] : followers_) follower.lost = true;
}

void FakeRemoteService::expire(RemoteRecordKind kind, const std::string& name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  put(folder_of(keys_, kind) + name, std::nullopt);
}

void FakeRemoteService::read_old(int64_t revision, size_t count) {
  const std::lock_guard<std::mutex> lock(mutex_);
  old_revision_ = revision;
  old_reads_ = count;
}

int64_t FakeRemoteService::revision() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return revision_;
}

size_t FakeRemoteService::frames_told() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return frames_told_;
}

int64_t FakeRemoteService::compacted() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return compacted_;
}

}  // namespace sluice::test

// A copy of the server's data: its newest checkpoint and the journal behind it, as a stream. The
// disk is read by another thread (CopyPort), which waits while the client has not read what it was
// sent.
#include <deque>
#include <utility>

#include "engine/base/mutex.h"
#include "engine/table/command.h"
#include "net/admin/api.h"
#include "net/admin/routes.h"
#include "net/http/copy_port.h"
#include "net/http/http_service.h"
#include "net/io/io_thread.h"

namespace sluice {

namespace {

// Parts that wait for the client.
constexpr size_t kMaxParts = 2;

// No command checks the key patterns here.
bool may_copy(const Exchange& exchange) {
  const Bytes words[] = {"q.get", "", ""};
  const Command* const reads = CommandTable::instance().find(words[0]);
  return exchange.principal().user->rules()->may_read_every_key(*reads, words);
}

class CopySender final : public CopyTarget, public std::enable_shared_from_this<CopySender> {
 public:
  explicit CopySender(Exchange& exchange)
      : exchange_(exchange.shared_from_this()), thread_(exchange.engine().thread()) {}

  // --- CopyTarget ---

  bool put(std::string part) override {
    {
      MutexLock lock(mutex_);
      std::unique_lock<std::mutex> native(mutex_.native(), std::adopt_lock);
      while (!cut_ && parts_.size() >= kMaxParts) changed_.wait(native);
      native.release();
      if (cut_) return false;
      parts_.push_back(std::move(part));
    }
    wake();
    return true;
  }

  void end(const Status& status) override {
    {
      MutexLock lock(mutex_);
      ended_ = true;
      status_ = status;
    }
    wake();
  }

  void cut() override {
    MutexLock lock(mutex_);
    cut_ = true;
    changed_.notify_all();
  }

 private:
  // Cuts the copy when the connection drops what was to be called next.
  struct Next {
    explicit Next(std::shared_ptr<CopySender> of) : sender(std::move(of)) {}
    ~Next() {
      if (sender != nullptr) sender->cut();
    }
    Next(const Next&) = delete;
    Next& operator=(const Next&) = delete;
    std::shared_ptr<CopySender> sender;
  };

  void wake() {
    {
      MutexLock lock(mutex_);
      if (std::exchange(sending_, true)) return;
    }
    post_next();
  }

  void post_next() {
    const auto next = std::make_shared<Next>(shared_from_this());
    thread_.post([next] { std::exchange(next->sender, nullptr)->send(); });
  }

  // --- The I/O thread ---

  void send() {
    if (exchange_->cut_off()) return cut();
    if (!opened_) return open();
    std::string part;
    {
      MutexLock lock(mutex_);
      sending_ = !parts_.empty();
      if (sending_) {
        part = std::move(parts_.front());
        parts_.pop_front();
        changed_.notify_all();
      }
      if (!sending_ && !ended_) return;
    }
    // A copy that could not be read to its end says so by having none.
    if (part.empty()) return exchange_->end_stream();
    // The user may have lost keys since it began.
    if (!may_copy(*exchange_)) {
      cut();
      return exchange_->end_stream();
    }
    exchange_->send_part(std::move(part), call_send());
  }

  void open() {
    {
      MutexLock lock(mutex_);
      if (parts_.empty() && !status_.ok()) {
        return exchange_->respond(problem(500, "FAILED", status_.message()));
      }
    }
    opened_ = true;
    HttpResponse head;
    head.content_type = "application/octet-stream";
    exchange_->open_stream(std::move(head), call_send());
  }

  std::function<void()> call_send() {
    return [next = std::make_shared<Next>(shared_from_this())] {
      std::exchange(next->sender, nullptr)->send();
    };
  }

  const std::shared_ptr<Exchange> exchange_;
  IoThread& thread_;
  bool opened_ = false;
  Mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> parts_ GUARDED_BY(mutex_);
  bool sending_ GUARDED_BY(mutex_) = false;  // send() will run
  bool cut_ GUARDED_BY(mutex_) = false;
  bool ended_ GUARDED_BY(mutex_) = false;
  Status status_ GUARDED_BY(mutex_);
};

void get_copy(Exchange& exchange) {
  if (QueryReader(exchange, QueryReader::Selects::kNothing).failed()) return;
  if (!may_copy(exchange)) {
    return exchange.respond(problem(403, "NOPERM", "The token's user may not read every key."));
  }
  switch (exchange.service().copies().begin(std::make_shared<CopySender>(exchange))) {
    case CopyPort::Answer::kBegun:
      return;
    case CopyPort::Answer::kNoCheckpoint:
      return exchange.respond(
          problem(503, "NOCHECKPOINT", "There is no checkpoint yet; one is being written."));
    case CopyPort::Answer::kTooMany:
      return exchange.respond(
          problem(503, "TOOMANY", "Copies are being sent already, as many as are allowed."));
    case CopyPort::Answer::kNothingKept:
      return exchange.respond(
          problem(409, "NOTHINGKEPT", "The server keeps nothing on the disk (see appendonly)."));
  }
}

}  // namespace

std::vector<Route> copy_routes() {
  return {
      {.pattern = "/api/v1/checkpoint",
       .access = Access::kReplicate,
       .handler = get_copy,
       .summary = "A copy of the data: the newest checkpoint and the journal behind it. Also by "
                  "the token of replication-token-file.",
       .answer = "Copy",
       .content_type = "application/octet-stream",
       .problems = {409, 422}},
  };
}

}  // namespace sluice

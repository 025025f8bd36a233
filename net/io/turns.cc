#include "net/io/turns.h"

#include <chrono>
#include <memory>
#include <utility>

#include "net/io/io_thread.h"

namespace sluice {

namespace {

// The time of a turn, and how long others have the thread after that.
constexpr auto kTurn = std::chrono::microseconds(1000);
constexpr auto kPause = std::chrono::milliseconds(1);

class Turns : public std::enable_shared_from_this<Turns> {
 public:
  Turns(IoThread& thread, std::function<bool()> piece)
      : piece_(std::move(piece)), pause_(thread.executor()) {}

  void go_on() {
    using std::chrono::steady_clock;
    const auto end = steady_clock::now() + kTurn;
    do {
      if (!piece_()) return;
    } while (steady_clock::now() < end);
    // A posted task would run in this same turn.
    pause_.expires_after(kPause);
    pause_.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error) self->go_on();
    });
  }

 private:
  const std::function<bool()> piece_;
  SteadyTimer pause_;
};

}  // namespace

void work_in_turns(IoThread& thread, std::function<bool()> piece) {
  std::make_shared<Turns>(thread, std::move(piece))->go_on();
}

}  // namespace sluice

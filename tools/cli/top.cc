#include "tools/cli/top.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>

#include "tools/cli/failure.h"
#include "tools/cli/full_screen.h"
#include "tools/cli/keys.h"
#include "tools/cli/queue_view.h"
#include "tools/cli/signals.h"
#include "tools/cli/text.h"
#include "tools/cli/top_model.h"
#include "tools/cli/top_view.h"

namespace sluice::cli {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr Option kTopOptions[] = {
    {"--interval", "SECONDS", "time between updates (1); without a terminal: print until stopped"},
};

// Searching for queues scans all keys, so it is done rarely: at most a fiftieth of the time.
constexpr std::chrono::seconds kBetweenSearches(5);
constexpr int kSearchShare = 50;
// What keys ask for in quick succession is asked once in this time.
constexpr milliseconds kBetweenAsks(100);
// A server that does not answer shall not stop the keys for long.
constexpr int64_t kTopPatienceMs = 3000;
// Rows asked for without a screen.
constexpr size_t kPlainRows = 100'000;

class Top {
 public:
  explicit Top(Context& context)
      : context_(context),
        model_(context.arguments.operands()),
        signals_({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP}) {
    const double seconds = context.arguments.number("--interval", 1, 0.1, 3600);
    interval_ = milliseconds(static_cast<int64_t>(seconds * 1000));
    context.connection.set_patience(kTopPatienceMs);
  }

  int run() {
    for (const std::string& queue : context_.arguments.operands()) {
      require_queue(context_.connection, queue);
    }
    ask();
    // If the server cannot be reached at all, report it on the ordinary screen.
    if (!trouble_.empty()) throw Failure{kNoConnection, trouble_};
    // The first reading tells which queue is selected.
    if (context_.screen.moves) ask();
    if (!context_.screen.moves) return print();
    FullScreen full;
    for (next_ = steady_clock::now();;) {
      draw(full);
      next_ = std::max(next_ + interval_, steady_clock::now());
      if (!wait(full)) return kDone;
      ask();
    }
  }

 private:
  // Without a screen: a table, and another one at each interval if one was given; not
  // while the server does not answer.
  int print() {
    for (print_table();;) {
      if (std::fflush(stdout) != 0 || !context_.arguments.has("--interval")) return kDone;
      if (signals_.wait(interval_).event == Signals::Event::kSignal) return kDone;
      ask();
      if (trouble_.empty()) {
        std::printf("\n");
        print_table();
      } else {
        std::fprintf(stderr, "sluice: %s\n", printable(trouble_).c_str());
      }
    }
  }

  void print_table() const {
    std::vector<QueueStats> queues;
    for (const std::string& name : model_.state().queues) {
      if (const RespValue* stats = model_.stats_of(name)) queues.emplace_back(name, *stats);
    }
    queues.empty() ? static_cast<void>(std::printf("no queues\n"))
                   : queues_table(queues).print(context_.screen);
  }

  void search() {
    const auto begun = steady_clock::now();
    if (!model_.is_searching() || begun < next_search_) return;
    model_.set_names(find_queues(context_.connection));
    const auto ended = steady_clock::now();
    next_search_ =
        ended + std::max<steady_clock::duration>(kBetweenSearches, (ended - begun) * kSearchShare);
  }

  // Reads all that is shown, in one round trip.
  void ask() {
    asked_ = steady_clock::now();
    try {
      search();
      const size_t rows = context_.screen.moves ? Screen::of_output().height : kPlainRows;
      const std::vector<TopQuestion> questions = model_.questions(rows);
      for (const TopQuestion& question : questions) context_.connection.send(question.words);
      for (const TopQuestion& question : questions) question.take(context_.connection.receive());
      if (!trouble_.empty()) model_.say("", false);
      trouble_.clear();
    } catch (const Failure& failure) {
      lose(failure);
    }
    model_.arrange();
  }

  void lose(const Failure& failure) {
    // Outstanding replies must not be taken for those of later commands.
    context_.connection.close();
    next_search_ = {};
    if (failure.code == kServerError && model_.state().now_ms == 0) throw failure;
    trouble_ = failure.text;
    model_.say(trouble_, true);
  }

  void draw(FullScreen& full) {
    const Screen screen = Screen::of_output();
    full.draw(top_lines(model_, screen, context_.connection.address().text()), screen.height);
  }

  // Waits for the next reading. Returns false when top should end.
  bool wait(FullScreen& full) {
    for (;;) {
      const auto left = std::chrono::ceil<milliseconds>(next_ - steady_clock::now());
      const auto woken = signals_.wait(left, input_);
      if (woken.event == Signals::Event::kTimeout) return true;
      if (woken.event == Signals::Event::kInput) {
        if (!read_input()) return false;
      } else if (woken.signal == SIGTSTP) {
        full.leave();
        static_cast<void>(std::raise(SIGSTOP));
        full.enter();
      } else if (woken.signal == SIGWINCH) {
        // A higher screen shows more.
        next_ = std::min(next_, asked_ + kBetweenAsks);
      } else {
        return false;
      }
      draw(full);
    }
  }

  bool read_input() {
    std::array<char, 256> bytes{};
    const ssize_t size = ::read(input_, bytes.data(), bytes.size());
    // A closed standard input is always readable.
    if (size <= 0) input_ = -1;
    for (const KeyPress& key : read_keys(Bytes(bytes.data(), size > 0 ? size : 0))) {
      const TopStep step = model_.press(key);
      if (step.quits) return false;
      if (step.command) run_command(*step.command);
      if (is_ended_) return false;
      if (step.asks || step.command) next_ = std::min(next_, asked_ + kBetweenAsks);
    }
    return true;
  }

  // Whether a signal that ends top has come amid a long command.
  bool ended_meanwhile() {
    const auto woken = signals_.wait(milliseconds(0));
    is_ended_ |= woken.event == Signals::Event::kSignal && woken.signal != SIGWINCH &&
                 woken.signal != SIGTSTP;
    return is_ended_;
  }

  void run_command(const TopCommand& command) {
    try {
      if (!command.in_pages) {
        const RespValue reply = context_.connection.call(command.words);
        if (reply.text == "gone") throw Failure{kServerError, "the job has ended already"};
        model_.say(command.done, false);
        return;
      }
      int64_t count = 0;
      std::string cursor = "0";
      do {
        Words words = command.words;
        words.insert(words.end(), {"CURSOR", cursor});
        const RespValue reply = context_.connection.call(words);
        cursor = reply.items.at(0).text;
        count += reply.items.at(1).integer;
      } while (cursor != "0" && !ended_meanwhile());
      model_.say(count_text(count) + (count == 1 ? " job " : " jobs ") + command.done, false);
    } catch (const Failure& failure) {
      if (failure.code == kNoConnection) return lose(failure);
      model_.say(failure.text, true);
    }
  }

  Context& context_;
  TopModel model_;
  Signals signals_;
  milliseconds interval_{};
  int input_ = STDIN_FILENO;
  bool is_ended_ = false;
  steady_clock::time_point next_search_;
  steady_clock::time_point asked_;
  steady_clock::time_point next_;  // the next reading
  std::string trouble_;            // why there is no newer reading
};

}  // namespace

std::span<const Option> top_options() { return kTopOptions; }

int run_top(Context& context) {
  if (context.json) throw usage_error("top prints no JSON; use status");
  return Top(context).run();
}

}  // namespace sluice::cli

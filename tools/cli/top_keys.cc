// What the keys of sluice top do.
#include <algorithm>

#include "engine/base/glob_literal.h"
#include "engine/base/quoting.h"
#include "tools/cli/replies.h"
#include "tools/cli/text.h"
#include "tools/cli/top_model.h"

namespace sluice::cli {

namespace {

constexpr int64_t kPageLines = 10;

}  // namespace

TopStep TopModel::press(const KeyPress& key) {
  state_.said.clear();
  if (!state_.question.empty()) return answer_question(key);
  if (state_.edits_filter) return press_in_filter(key);
  if (state_.shows_help) {
    state_.shows_help = false;
    return {.quits = key.is("q")};
  }
  switch (key.key) {
    case Key::kUp:
      return move(-1);
    case Key::kDown:
      return move(1);
    case Key::kPageUp:
      return move(-kPageLines);
    case Key::kPageDown:
      return move(kPageLines);
    case Key::kHome:
      return move(INT32_MIN);
    case Key::kEnd:
      return move(INT32_MAX);
    case Key::kTab:
      return move_focus(1);
    case Key::kBackTab:
      return move_focus(-1);
    case Key::kEnter:
    case Key::kRight:
      return open();
    case Key::kEscape:
    case Key::kErase:
    case Key::kLeft:
      return back();
    case Key::kText:
      return press_letter(key.text);
    case Key::kOther:
      break;
  }
  return {};
}

TopStep TopModel::press_letter(const std::string& letter) {
  if (letter == "q" || letter == "Q") return {.quits = true};
  if (letter == "j") return move(1);
  if (letter == "k") return move(-1);
  if (letter == "g") return move(INT32_MIN);
  if (letter == "G") return move(INT32_MAX);
  if (letter == "p") return pause();
  if (letter == "r") return retry();
  if (letter == "R") return retry_all();
  if (letter == "c") return cancel();
  if (letter == "?" || letter == "h") state_.shows_help = true;
  if (letter == "/" && view() != TopView::kJob) state_.edits_filter = true;
  if (view() != TopView::kQueues) return {};
  const bool sorts = letter == "s" || letter == "S";
  if (sorts) sort_next(letter == "s");
  if (letter == "i") state_.is_descending = !state_.is_descending;
  // An order is asked for to see what is first in it, wherever the selected queue goes.
  const bool shows_first = (sorts || letter == "i") && state_.focus == TopList::kQueues;
  if (shows_first) places_[0] = {};
  arrange();
  return {.asks = shows_first};
}

TopStep TopModel::press_in_filter(const KeyPress& key) {
  std::string& edited = state_.filter_in_focus();
  if (key.key == Key::kText) {
    edited += key.text;
  } else if (key.key == Key::kErase) {
    if (!edited.empty()) edited.resize(cut_text(edited, edited.size() - 1).size());
  } else if (key.key == Key::kEscape) {
    edited.clear();
    state_.edits_filter = false;
  } else {
    state_.edits_filter = false;
  }
  arrange();
  return {.asks = true};
}

TopStep TopModel::answer_question(const KeyPress& key) {
  state_.question.clear();
  if (key.is("y") || key.is("Y")) return {.command = std::move(asked_command_)};
  say("nothing was changed", false);
  return {};
}

TopStep TopModel::confirm(std::string question, TopCommand command) {
  state_.question = std::move(question);
  asked_command_ = std::move(command);
  return {};
}

void TopModel::say(std::string text, bool is_bad) {
  state_.said = std::move(text);
  state_.is_said_bad = is_bad;
}

// --- Moving ---

TopStep TopModel::move(int64_t lines) {
  if (view() == TopView::kJob) {
    // The view limits it to what there is.
    state_.scrolled = static_cast<size_t>(
        std::clamp<int64_t>(static_cast<int64_t>(state_.scrolled) + lines, 0, INT32_MAX));
    return {};
  }
  Place& at = place(state_.focus);
  const auto last = static_cast<int64_t>(count(state_.focus)) - 1;
  if (last < 0) return {};
  at.index =
      static_cast<size_t>(std::clamp<int64_t>(static_cast<int64_t>(at.index) + lines, 0, last));
  at.name = name_at(state_.focus, at.index);
  return {.asks = state_.focus == TopList::kQueues};
}

TopStep TopModel::move_focus(int64_t lists) {
  if (view() == TopView::kJob) return {};
  const int64_t first = view() == TopView::kQueues ? 0 : 1;
  const auto size = static_cast<int64_t>(kTopLists) - first;
  const int64_t now = static_cast<int64_t>(state_.focus) - first;
  state_.focus = static_cast<TopList>((now + lists + size) % size + first);
  return {};
}

std::optional<std::string> TopModel::selected_job() const {
  if (view() == TopView::kJob) return state_.job_id;
  if (state_.focus == TopList::kQueues || state_.focus == TopList::kWorkers) return std::nullopt;
  return name_at(state_.focus, selected(state_.focus));
}

TopStep TopModel::open() {
  if (view() == TopView::kQueues && state_.focus == TopList::kQueues) {
    if (!has_queue()) return {};
    views_.push_back(TopView::kQueue);
    state_.focus = TopList::kActive;
    return {.asks = true};
  }
  const auto job = view() == TopView::kJob ? std::nullopt : selected_job();
  if (!job) return {};
  views_.push_back(TopView::kJob);
  state_.job_id = *job;
  state_.job = {};
  state_.log.clear();
  log_next_ = 0;
  state_.scrolled = 0;
  return {.asks = true};
}

TopStep TopModel::back() {
  if (view() != TopView::kJob && !state_.filter_in_focus().empty()) {
    state_.filter_in_focus().clear();
  } else if (views_.size() > 1) {
    const bool was_queue = view() == TopView::kQueue;
    views_.pop_back();
    if (was_queue) state_.focus = TopList::kQueues;
  }
  arrange();
  return {.asks = true};
}

void TopModel::sort_next(bool is_forward) {
  const size_t columns = queue_columns().size();
  state_.sort = (state_.sort + (is_forward ? 1 : columns - 1)) % columns;
  // Names from the first, numbers from the greatest.
  state_.is_descending = queue_columns()[state_.sort].number != nullptr;
}

// --- Changing ---

TopStep TopModel::pause() {
  if (view() == TopView::kJob || !has_queue()) return {};
  if (state_.focus == TopList::kWorkers) {
    const size_t at = selected(TopList::kWorkers);
    const auto worker = name_at(TopList::kWorkers, at);
    if (!worker) return {};
    const bool is_quiet = integer_of(lines(TopList::kWorkers).items[at * 2 + 1], "quiet") != 0;
    return {.command = TopCommand{{"Q.CONFIG", queue(), "WORKER", glob_escape(*worker), "SET",
                                   "quiet", is_quiet ? "off" : "on"},
                                  printable(*worker) + (is_quiet ? " gets jobs" : " is quiet")}};
  }
  // Whether it is paused is not known yet.
  if (!has_lists()) return {.asks = true};
  const RespValue* stats = stats_of(queue());
  const bool resumes = stats != nullptr && is_paused(*stats);
  return {.command = TopCommand{
              {"Q.CONFIG", queue(), "SET", "paused", resumes ? "none" : "out"},
              shown_queue(queue()) + (resumes ? " hands out jobs" : " hands out no more jobs")}};
}

TopStep TopModel::retry() {
  const auto job = selected_job();
  if (!job) {
    say("retry: select an ended job first", true);
    return {};
  }
  return {.command = TopCommand{{"Q.RETRY", queue(), *job}, printable(*job) + " is queued again"}};
}

TopStep TopModel::retry_all() {
  if (!has_queue()) return {};
  return confirm("retry all failed jobs of " + shown_queue(queue()) + "?",
                 {{"Q.RETRY", queue(), "WHERE", "STATE", "failed"}, "queued again", true});
}

TopStep TopModel::cancel() {
  const auto job = selected_job();
  if (!job) {
    say("cancel: select a job first", true);
    return {};
  }
  return confirm(
      "cancel " + printable(*job) + " of " + shown_queue(queue()) + "?",
      {{"Q.CANCEL", queue(), *job}, printable(*job) + " is cancelled, or asked to stop"});
}

}  // namespace sluice::cli

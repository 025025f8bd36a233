#include "tools/cli/top_view.h"

#include <algorithm>
#include <numeric>

#include "tools/cli/job_view.h"
#include "tools/cli/text.h"

namespace sluice::cli {

namespace {

using Lines = std::vector<std::string>;

constexpr size_t kGutter = 2;
// From this height on an empty line separates the lists.
constexpr size_t kSpaciousHeight = 32;

// It fits on 80 x 24.
constexpr const char* kHelp[] = {
    "up down j k, PgUp PgDn  select a line, or scroll a job",
    "Home End, g G           go to the first or the last line",
    "Tab Shift-Tab           go to the next or the previous list: queues, workers,",
    "                        active, next and failed jobs",
    "Enter, right            open the queue or the job",
    "Esc, left               show all lines again, else go back",
    "/                       show only lines that contain a text: queues by their",
    "                        names; in another list workers, and of the first 1000",
    "                        jobs those with it",
    "s S                     sort the queues by the next or the previous column",
    "i                       invert the order",
    "p                       pause or resume the queue; on a worker: no more jobs",
    "                        for it, or jobs again",
    "r                       queue the selected job again after it has ended",
    "R                       queue all failed jobs of the queue again",
    "c                       cancel the selected job",
    "q                       quit",
};

// The part of a list that is shown: around its selected line.
struct Window {
  size_t first;
  size_t last;
};
Window window_of(size_t count, size_t selected, size_t rows) {
  const size_t first = selected >= rows ? selected - rows + 1 : 0;
  return {std::min(first, count), std::min(count, first + rows)};
}

RespValue part_of(const RespValue& lines, Window window, size_t items_each) {
  RespValue part;
  part.kind = lines.kind;
  const auto begin = lines.items.begin();
  part.items.assign(begin + static_cast<ptrdiff_t>(window.first * items_each),
                    begin + static_cast<ptrdiff_t>(window.last * items_each));
  return part;
}

constexpr const char* kActiveColumns[] = {"GROUP", "RUN", "RUNS", "WORKER", "NOTE"};
constexpr const char* kNextColumns[] = {"PRI", "GROUP", "POS", "AGE", "NOTE"};
constexpr const char* kFailedColumns[] = {"GROUP", "RUNS", "ENDED", "NOTE"};

Table queues_part(const TopModel& model, Window window) {
  std::vector<QueueStats> queues;
  for (size_t i = window.first; i < window.last; ++i) {
    const std::string& name = model.state().queues[i];
    const RespValue* stats = model.stats_of(name);
    queues.emplace_back(shown_queue(name), stats == nullptr ? RespValue() : *stats);
  }
  return queues_table(queues, model.state().sort);
}

Table table_of(const TopModel& model, TopList list, Window window) {
  const RespValue& all = model.lines(list);
  const int64_t now_ms = model.state().now_ms;
  switch (list) {
    case TopList::kQueues:
      return queues_part(model, window);
    case TopList::kWorkers:
      return workers_table("WORKERS", part_of(all, window, 2), now_ms);
    case TopList::kActive:
      return short_jobs_table("ACTIVE JOBS", part_of(all, window, 1), now_ms, kActiveColumns);
    case TopList::kNext:
      return short_jobs_table("NEXT JOBS", part_of(all, window, 1), now_ms, kNextColumns);
    case TopList::kFailed:
      break;
  }
  return short_jobs_table("FAILED JOBS", part_of(all, window, 1), now_ms, kFailedColumns);
}

std::string none_text(const TopModel& model, TopList list) {
  constexpr const char* kNone[] = {"no queues", "no workers", "no active jobs",
                                   "no jobs that could start next", "no failed jobs"};
  const bool is_filtered = list != TopList::kQueues && !model.state().job_filter.empty();
  return kNone[static_cast<size_t>(list)] +
         (is_filtered ? " with " + printable(model.state().job_filter) : "");
}

// A list with its titles in `rows` lines.
void append_list(const TopModel& model, TopList list, size_t rows, const Screen& screen,
                 Lines& out) {
  const bool has_focus = model.state().focus == list;
  const std::string mark = has_focus ? "> " : "  ";
  if (model.count(list) == 0) {
    const bool is_read = list == TopList::kQueues || model.has_lists();
    const std::string text =
        fit_text(is_read ? none_text(model, list) : "…", screen.width - kGutter);
    out.push_back(mark + styled(text, Style::kDim, screen));
    return;
  }
  if (rows < 2) return;
  const size_t selected = model.selected(list);
  const Window window = window_of(model.count(list), selected, rows - 1);
  const Table table = table_of(model, list, window);
  Screen inner = screen;
  inner.width -= kGutter;
  const Lines lines = table.lines(inner);
  inner.colours = false;
  const Lines plain = table.lines(inner);
  out.push_back("  " + lines[0]);
  for (size_t i = 1; i < lines.size(); ++i) {
    const bool is_at = window.first + i - 1 == selected;
    const bool is_selected = has_focus && is_at;
    // The other lists are of this queue.
    const bool is_shown_below = list == TopList::kQueues && is_at;
    if (is_selected) {
      out.push_back(styled("> " + padded(plain[i], inner.width), Style::kChosen, screen));
    } else {
      out.push_back((is_shown_below ? "* " : "  ") + lines[i]);
    }
  }
}

std::string title_of(const TopModel& model, const std::string& from) {
  std::string title = "sluice top  " + from;
  if (model.state().now_ms != 0)
    title += "  " + moment_text(model.state().now_ms, model.state().now_ms).substr(0, 8);
  if (model.view() == TopView::kQueues) {
    title += "  " + count_text(static_cast<int64_t>(model.known_queues())) +
             (model.known_queues() == 1 ? " queue" : " queues");
    if (model.state().queues.size() != model.known_queues()) {
      title += ", " + count_text(static_cast<int64_t>(model.state().queues.size())) + " shown";
    }
    title += " by " + queue_columns()[model.state().sort].column.title;
    return title + (model.state().is_descending ? "▼" : "▲");
  }
  title += "  " + shown_queue(model.queue());
  if (model.view() == TopView::kJob) title += "  " + printable(model.state().job_id);
  return title;
}

// The one that `/` edits.
const std::string& filter_of(const TopModel& model) {
  const TopState& state = model.state();
  return state.focus == TopList::kQueues ? state.filter : state.job_filter;
}

// What the keys do, as far as there is room; ? shows all of them.
std::string keys_line(const TopModel& model, size_t width) {
  constexpr size_t kMostFilter = 24;
  Lines keys = {"q: quit", "?: help"};
  const std::string& filter = filter_of(model);
  if (model.view() != TopView::kJob) keys.insert(keys.end(), {"Enter: open", "Tab: next list"});
  if (model.view() != TopView::kQueues)
    keys.emplace_back(filter.empty() ? "Esc: back" : "Esc: all");
  if (model.view() != TopView::kJob) {
    keys.push_back("/: " + (filter.empty() ? "filter" : fit_text(printable(filter), kMostFilter)));
    keys.emplace_back("p: pause");
  }
  keys.insert(keys.end(), {"r: retry", "c: cancel"});
  if (model.view() == TopView::kQueues) keys.emplace_back("s: sort");
  std::string text;
  for (const std::string& key : keys) {
    const std::string longer = text + (text.empty() ? "" : "  ") + key;
    if (text_width(longer) > width) break;
    text = longer;
  }
  return text;
}

// What is asked or said, or what the keys do.
std::string last_line(const TopModel& model, const Screen& screen) {
  const auto line = [&](const std::string& text, Style style) {
    return styled(fit_text(text, screen.width), style, screen);
  };
  if (!model.state().question.empty())
    return line(model.state().question + " [y/N]", Style::kTitle);
  if (model.state().edits_filter)
    return line("filter: " + printable(filter_of(model)) + "_", Style::kTitle);
  if (!model.state().said.empty()) {
    return line(printable(model.state().said),
                model.state().is_said_bad ? Style::kBad : Style::kTitle);
  }
  return line(keys_line(model, screen.width), Style::kDim);
}

// The lines of each list of the view. The queues have up to half of them before the others.
std::vector<size_t> rows_of_lists(const TopModel& model, size_t rows) {
  std::vector<size_t> wanted;
  for (size_t i = 0; i < kTopLists; ++i) {
    wanted.push_back(model.count(static_cast<TopList>(i)) + 1);
  }
  const std::span<const size_t> others = std::span(wanted).subspan(1);
  if (model.view() != TopView::kQueues) return share_rows(rows, others);
  const size_t wanted_by_others = std::accumulate(others.begin(), others.end(), size_t{0});
  const size_t left_by_others = rows > wanted_by_others ? rows - wanted_by_others : 0;
  const size_t queues = std::min(wanted[0], std::max((rows + 1) / 2, left_by_others));
  std::vector<size_t> shares = share_rows(rows - queues, others);
  shares.insert(shares.begin(), queues);
  return shares;
}

void append_lists(const TopModel& model, const Screen& screen, size_t rows, Lines& out) {
  const size_t first = model.view() == TopView::kQueues ? 0 : 1;
  const bool is_spacious = screen.height >= kSpaciousHeight;
  const size_t gaps = is_spacious ? kTopLists - first - 1 : 0;
  const std::vector<size_t> shares = rows_of_lists(model, rows > gaps ? rows - gaps : 0);
  for (size_t i = 0; i < shares.size(); ++i) {
    if (i > 0 && is_spacious) out.emplace_back();
    append_list(model, static_cast<TopList>(first + i), shares[i], screen, out);
  }
}

// The whole log in lines, without the last one's end.
Lines log_lines(const std::string& log, size_t width) {
  Lines lines;
  for (size_t at = 0; at < log.size();) {
    const size_t end = std::min(log.find('\n', at), log.size());
    lines.push_back(fit_text(printable(Bytes(log).substr(at, end - at)), width));
    at = end + 1;
  }
  return lines;
}

void append_job(const TopModel& model, const Screen& screen, size_t rows, Lines& out) {
  if (model.state().job.is_null()) {
    out.emplace_back("there is no such job, or it is not known yet");
    return;
  }
  Lines all = fields_table(model.state().job, model.state().now_ms, true).lines(screen);
  const Lines log = log_lines(model.state().log, screen.width);
  if (!log.empty()) {
    all.emplace_back();
    all.push_back(styled("LOG", Style::kTitle, screen));
    all.insert(all.end(), log.begin(), log.end());
  }
  const size_t most = all.size() > rows ? all.size() - rows : 0;
  const size_t first = std::min(model.state().scrolled, most);
  for (size_t i = first; i < std::min(all.size(), first + rows); ++i) out.push_back(all[i]);
}

}  // namespace

std::vector<size_t> share_rows(size_t rows, std::span<const size_t> wanted) {
  std::vector<size_t> shares(wanted.size(), 0);
  // The one that wants least is served first, so that the others share what it leaves.
  std::vector<size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return wanted[a] < wanted[b]; });
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t left = order.size() - i;
    shares[order[i]] = std::min(wanted[order[i]], (rows + left - 1) / left);
    rows -= shares[order[i]];
  }
  return shares;
}

std::vector<std::string> top_lines(const TopModel& model, const Screen& screen,
                                   const std::string& from) {
  Lines out = {styled(fit_text(title_of(model, from), screen.width), Style::kDim, screen)};
  if (screen.height < 3 || screen.width <= kGutter) return out;
  const size_t last = screen.height - 1;
  if (model.state().shows_help) {
    for (const char* line : kHelp) out.push_back(fit_text(line, screen.width));
  } else if (model.view() == TopView::kJob) {
    append_job(model, screen, last - out.size(), out);
  } else {
    const RespValue* stats = model.stats_of(model.queue());
    if (model.view() == TopView::kQueue && stats != nullptr) {
      const Lines queue = queues_table({{shown_queue(model.queue()), *stats}}).lines(screen);
      out.insert(out.end(), queue.begin(), queue.end());
      const Lines summary = summary_lines(*stats, screen);
      out.insert(out.end(), summary.begin(), summary.end());
      if (screen.height >= kSpaciousHeight) out.emplace_back();
    }
    append_lists(model, screen, last > out.size() ? last - out.size() : 0, out);
  }
  out.resize(std::min(out.size(), last));
  while (out.size() < last) out.emplace_back();
  out.push_back(last_line(model, screen));
  return out;
}

}  // namespace sluice::cli

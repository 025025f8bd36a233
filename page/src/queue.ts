// One queue: its bands as lanes, running jobs, groups, workers, its jobs and recent events.
import { ask_to_cancel, ask_to_move, ask_to_retry, run_now } from "./actions";
import { OF_CHARTS, overview_link, queue_link, set_params, settings_link } from "./address";
import type { Params } from "./address";
import { ActivePanel } from "./active_panel";
import { ActivityPanel } from "./activity_panel";
import { ask_to_add } from "./add_job";
import { queue_path, request, state } from "./api";
import type { QueueRef } from "./api";
import { segment_of, segment_of_item, shown } from "./bytes";
import { Chart } from "./charts";
import { append, h, replace, set_text, show } from "./dom";
import { missing_queue, unused_queue } from "./first_run";
import { duration, rate, short_count } from "./format";
import { GroupsPanel } from "./groups_panel";
import { ask_past, series_of } from "./history";
import type { Range } from "./history";
import { is_filtered } from "./job_filters";
import { JobsPanel } from "./jobs_panel";
import { LanesPanel } from "./lanes_panel";
import { Poller, Visibility, draw_soon, painted } from "./live";
import { ask_to_pause, set_pause } from "./queue_actions";
import { RangePanel } from "./range_panel";
import { lacks_worker } from "./trouble";
import type { Band, Item, Job, Pause, QueueAnswer, Stats } from "./types";
import { Figure, Stale, skeleton, show_error } from "./view";
import type { View } from "./view";
import { WINDOW_S } from "./waits";
import { has_place, is_over, slots_in_words } from "./words";
import { WorkersPanel } from "./workers_panel";

// Also when events are frequent: each look is some ten requests.
const EACH_MS = 1000;
// Less of the list than this is not seen.
const HEADER_PX = 150;
// The server's history is read anew so often; the page's own samples continue it.
const PAST_MS = 60_000;
const SPAN_S: Record<Range, number> = { hour: 3600, day: 86_400 };

function figures(ref: QueueRef) {
  const jobs = (state: string) => queue_link(ref, { state });
  return {
    pending: new Figure("Pending", "jobs that may run now", jobs("pending")),
    delayed: new Figure("Delayed", "jobs that wait for their time", jobs("delayed")),
    blocked: new Figure("Blocked", "jobs that wait for other jobs", jobs("blocked")),
    active: new Figure("Active", "jobs that run, and the slots that they take of the cap",
      jobs("active")),
    oldest: new Figure("Oldest wait", "the longest wait of a pending job"),
    wait: new Figure("Wait p95", `of jobs started in the last ${WINDOW_S} s`),
    run: new Figure("Run p50", "of all runs since the statistics began"),
    flow: new Figure("Ended", "per second, over the last minute"),
    bad: new Figure("Failed", "jobs that failed since the queue was made", jobs("failed")),
    workers: new Figure("Idle workers", "workers that wait for a job"),
  };
}

export class QueueView implements View {
  readonly root = h("main.queue");
  readonly title: string;
  private readonly figures: ReturnType<typeof figures>;
  private readonly head = h("div.page-head");
  private readonly buttons = h("div.buttons");
  private readonly paused = h("div.banner", { hidden: true });
  private readonly adopted = h("p.sum", { hidden: true });
  private readonly stale = new Stale();
  private readonly message = h("div", {}, skeleton(6));
  private readonly content = h("div", { hidden: true });
  private readonly charts: Chart[];
  private readonly ranges: Record<Range, HTMLButtonElement>;
  private readonly by_band = h("button", { click: () => set_params({
    depth: this.params.depth === "bands" ? "" : "bands" }) }, "waiting by band");
  private readonly day_note = h("small", {}, "Bands are kept for the last hour only.");
  private readonly range_note = h("small");
  private readonly visibility = new Visibility(() => {
    if (this.answer) this.poller.poke();
  });
  private readonly lanes: LanesPanel;
  private readonly jobs: JobsPanel;
  private readonly active: ActivePanel;
  private readonly groups: GroupsPanel;
  private readonly workers: WorkersPanel;
  private readonly activity: ActivityPanel;
  private readonly events: RangePanel;
  private readonly poller: Poller;
  private answer: QueueAnswer | null = null;
  private band_names: string[] = [];
  private bands: Band[] = [];
  private pause: Pause = "none";
  private stopped = false;
  private params: Params = {};
  private past_of = "";
  private past_at = 0;

  // `params`: which jobs are listed, and the range of the charts.
  constructor(readonly ref: QueueRef, params: Params) {
    this.title = shown(ref.queue);
    this.figures = figures(ref);
    const poke = () => this.poller.poke();
    this.lanes = new LanesPanel(ref, this.visibility);
    this.jobs = new JobsPanel(ref, poke);
    this.active = new ActivePanel(ref);
    this.groups = new GroupsPanel(ref, poke);
    this.workers = new WorkersPanel(ref, poke);
    this.activity = new ActivityPanel(ref, poke);
    this.events = new RangePanel(ref);
    const selected = (from: number, to: number) => set_params({ state: "failed", by: "",
      since: String(Math.floor(from)), until: String(Math.ceil(to)) });
    this.charts = (["depth", "flow", "wait"] as const).map((kind) =>
      new Chart(kind, "full", selected));
    const choose = (range: Range) => h("button", { click: () => set_params({
      range: range === "hour" ? "" : range }) }, `last ${range}`);
    this.ranges = { hour: choose("hour"), day: choose("day") };
    this.lay_out();
    for (const panel of [this.jobs, this.active, this.groups, this.workers, this.activity]) {
      this.visibility.watch(panel.root, (visible) => { panel.visible = visible; });
    }
    this.poller = new Poller((signal) => this.ask(signal), EACH_MS, EACH_MS,
      (error) => this.failed(error));
    this.take(params);
  }

  take(params: Params): void {
    const before = this.params;
    this.params = params;
    const same = (names: string[]) => names.every((name) => before[name] === params[name]);
    for (const [range, button] of Object.entries(this.ranges)) {
      button.setAttribute("aria-pressed", String(range === this.range));
    }
    const by_band = params.depth === "bands" && this.range === "hour";
    this.by_band.setAttribute("aria-pressed", String(by_band));
    this.by_band.disabled = this.range === "day";
    show(this.day_note, this.range === "day");
    this.charts[0].turn(by_band ? "bands" : "depth");
    this.events.take(params);
    const range: [number, number] | null = params.since && params.until
      ? [Number(params.since), Number(params.until)] : null;
    for (const chart of this.charts) chart.mark(range);
    const names = Object.keys({ ...before, ...params }).filter((name) => !OF_CHARTS.has(name));
    if (before === params || !same(names) || this.answer === null) this.jobs.take(params);
    if (this.answer !== null && !same(names) && same(["since", "until"])) this.show_jobs();
    this.poller.poke();
  }

  // A link to jobs, such as a worker's, is perhaps far below their list.
  private show_jobs(): void {
    const { top, bottom } = this.jobs.root.getBoundingClientRect();
    if (bottom < HEADER_PX || top > innerHeight - HEADER_PX) this.jobs.root.scrollIntoView();
  }

  private get range(): Range {
    return this.params.range === "day" ? "day" : "hour";
  }

  stop(): void {
    this.stopped = true;
    this.poller.stop();
    this.visibility.stop();
    this.activity.stop();
    this.active.stop();
    this.jobs.stop();
    this.events.stop();
    for (const chart of this.charts) chart.stop();
  }

  private lay_out(): void {
    append(this.head, [h("h1", {}, h("a", { href: overview_link(this.ref.db) }, "Queues"),
      h("span.dim", {}, " / "), h("bdi", {}, shown(this.ref.queue))), this.buttons]);
    append(this.content, [
      h("div.figure-row", { click: (event: Event) => {
        if ((event.target as Element).closest("a")) this.jobs.root.scrollIntoView();
      } }, ...Object.values(this.figures).map((figure) => figure.root)),
      h("div.range-row", {}, this.ranges.hour, this.ranges.day, this.by_band, this.day_note,
        h("small", {}, "Drag over a range of time to see its events and failures",
          h("span.keys-hint", {}, "; or mark it with Shift and the arrow keys, then Enter"), "."),
        this.range_note),
      h("div.plots", {}, ...this.charts.map((chart) => {
        chart.root.classList.add("panel");
        return chart.root;
      })),
      this.events.root,
      this.lanes.root,
      h("div.columns", {}, h("div", {}, this.jobs.root),
        h("div", {}, this.active.root, this.workers.root, this.groups.root,
          this.activity.root))]);
    append(this.root, [this.head, this.stale.root, this.paused, this.adopted, this.message,
      this.content]);
  }

  // --- Requests ---

  private async ask(signal: AbortSignal): Promise<void> {
    const [answer, { bands }] = await Promise.all([
      request<QueueAnswer>(queue_path(this.ref), { signal }),
      request<{ bands: Band[] }>(queue_path(this.ref, "/bands", { with: "wait_buckets" }),
        { signal }),
    ]);
    const first = this.answer === null;
    this.answer = answer;
    this.bands = bands;
    this.band_names = bands.map((band) => segment_of(band, "name") ?? "").map(shown);
    if (this.missing) {
      this.stale.set(null);
      return draw_soon(() => this.draw());
    }
    const to_jobs = first && (is_filtered(this.params) || !!this.params.state);
    if (first) {
      this.draw();
      if (to_jobs) this.jobs.root.scrollIntoView();
      // The figures are shown before more is asked for, and that only for what is in view.
      await painted();
      this.visibility.look();
    }
    await Promise.all([this.lanes.ask(bands, signal), this.jobs.ask(this.band_names, signal),
      this.active.ask(signal), this.ask_past(signal)]);
    this.groups.ask(answer.stats, signal);
    this.workers.ask(signal);
    this.stale.set(null);
    series_of(this.ref.db, this.ref.queue).add(answer.stats, bands, answer.now);
    draw_soon(() => {
      this.draw();
      // Only now have the lists, those above too, their heights.
      if (to_jobs) this.jobs.root.scrollIntoView();
    });
  }

  private async ask_past(signal: AbortSignal): Promise<void> {
    const { range } = this;
    if (this.past_of === range && performance.now() - this.past_at < PAST_MS) return;
    this.past_of = range;
    this.past_at = performance.now();
    await ask_past(this.ref, range, signal);
  }

  private failed(error: unknown): void {
    if (state.health !== "connected") return;
    if (this.answer !== null) {
      this.stale.set(error);
      // The figures may be new, and only a list be refused.
      return draw_soon(() => this.draw());
    }
    delete this.message.dataset.for;
    show_error(this.message, "Cannot show this queue", error, () => this.poller.poke());
  }

  // Another user may not see the configuration of a queue that is there.
  private get missing(): boolean {
    return this.answer !== null && this.answer.config === null && this.unused;
  }

  private get unused(): boolean {
    const { added, waiting, active } = this.answer!.stats;
    return added === 0 && waiting === 0 && active === 0;
  }

  // --- Drawing ---

  private draw(): void {
    if (this.answer === null || this.stopped) return;
    const { stats } = this.answer;
    show(this.content, !this.missing);
    this.draw_message(this.missing ? "missing" : this.unused ? "unused" : "");
    if (this.missing) return;
    this.draw_figures(stats);
    this.draw_pause(String(this.answer.config?.paused ?? "none") as Pause, stats.adopted);
    const series = series_of(this.ref.db, this.ref.queue);
    const lines = series.lines(this.bands.map((band) => segment_of(band, "name") ?? ""));
    for (const chart of this.charts) chart.draw(lines, SPAN_S[series.range]);
    set_text(this.range_note, series.reduced ? "The server gave up the older part of this history "
      + "to stay within history-memory." : "");
    this.lanes.draw(this.bands);
    this.jobs.draw(stats);
    this.active.draw(stats);
    this.groups.draw();
    this.workers.draw();
  }

  private draw_message(what: "missing" | "unused" | ""): void {
    if (this.message.dataset.for === what) return;
    this.message.dataset.for = what;
    replace(this.message, what === "missing" ? missing_queue(this.ref)
      : what === "unused" ? unused_queue(this.ref, this.band_names) : null);
    if (what !== "missing") return;
    this.buttons.dataset.for = what;
    replace(this.buttons);
    show(this.paused, false);
  }

  private draw_figures(stats: Stats): void {
    const { figures: all } = this;
    all.pending.set(short_count(stats.pending));
    all.delayed.set(short_count(stats.delayed));
    all.blocked.set(short_count(stats.blocked));
    const slots = slots_in_words(stats);
    all.active.set(short_count(stats.active), stats.max_active > 0 ? slots
      : [slots, "no cap"].filter((each) => each !== "").join(", "));
    all.oldest.set(duration(stats.oldest_ms));
    const { recent } = series_of(this.ref.db, this.ref.queue);
    const wait = recent.of_all();
    all.wait.set(wait ? duration(wait.p95) : "–", wait === null
      ? (recent.known ? `no job started in ${WINDOW_S} s` : "")
      : wait.started > 0 ? `p50 ${duration(wait.p50)}` : "none started; the first waits");
    all.run.set(stats.run_ms.count ? duration(stats.run_ms.p50) : "–",
      stats.run_ms.count ? `p95 ${duration(stats.run_ms.p95)}` : "");
    all.flow.set(`${rate(stats.rates.completed)}/s`,
      `added ${rate(stats.rates.added)}/s in the last minute`);
    const lost = stats.reclaimed === 1 ? "lease lost" : "leases lost";
    all.bad.set(short_count(stats.failed), ["in all", ...[[stats.expired, "expired"],
      [stats.reclaimed, lost]].filter(([number]) => Number(number) > 0)
      .map(([number, name]) => `${short_count(Number(number))} ${name}`)].join(", "),
    stats.failed > 0);
    const starving = lacks_worker(stats);
    all.workers.set(short_count(stats.waiting_pops), starving ? "no worker takes jobs" : "",
      starving);
  }

  private draw_pause(pause: Pause, adopted: Stats["adopted"]): void {
    const now = `${pause} ${state.session?.role} ${JSON.stringify(adopted)}`;
    this.pause = pause;
    if (this.buttons.dataset.for === now) return;
    this.buttons.dataset.for = now;
    const words = { none: "", in: "This queue is paused: it accepts no new jobs.",
      out: "This queue is paused: it hands out no jobs.",
      all: "This queue is paused: it accepts no new jobs and hands out none." };
    set_text(this.paused, words[pause]);
    show(this.paused, pause !== "none" && !adopted);
    this.draw_adopted(adopted);
    const settings = h("a.button", { href: settings_link(this.ref), title: "Settings (s)" },
      "Settings");
    if (!state.may("operate") || adopted) return replace(this.buttons, settings);
    replace(this.buttons, settings,
      h("button", { click: () => this.add(), title: "Add a job (a)" }, "Add a job…"),
      pause === "none"
        ? h("button", { click: () => this.turn_pause(), title: "Pause (p)" }, "Pause…")
        : h("button.primary", { click: () => this.turn_pause(), title: "Resume (p)" }, "Resume"));
  }

  private draw_adopted(adopted: Stats["adopted"]): void {
    show(this.adopted, !!adopted);
    if (!adopted) return;
    const name = (key: Item) => shown(segment_of_item(key));
    set_text(this.adopted, `This queue shows plain Redis keys: what waits is in ${
      adopted.pending.map(name).join(", ")}, what runs in ${name(adopted.active)}. `
      + "Their clients add and take the jobs; limits and pauses of this queue do not hold them.");
  }

  // --- Actions ---

  private readonly changed = () => this.poller.poke();

  private add(): void {
    ask_to_add(this.ref, this.band_names, this.changed);
  }

  private turn_pause(): void {
    if (this.pause === "none") ask_to_pause(this.ref, this.pause, this.changed);
    else void set_pause(this.ref, this.pause, "none", this.changed);
  }

  key(key: string, row: string | null): boolean {
    if (this.missing) return false;
    const own = !this.answer?.stats.adopted;
    if (key === "a" && own) this.add();
    else if (key === "p" && own) this.turn_pause();
    else if (key === "s") location.hash = settings_link(this.ref);
    else return row !== null && this.row_key(key, row);
    return true;
  }

  private row_key(key: string, id: string): boolean {
    const known: Job | undefined = this.jobs.find(id) ?? this.active.find(id)
      ?? this.lanes.find(id);
    if (!known) return false;
    const target = { ref: this.ref, id, job: known, changed: () => void this.jobs.changed(id),
      adopted: !!this.answer?.stats.adopted };
    const over = is_over(known.state);
    if (key === "c" && !over) ask_to_cancel(target);
    else if (key === "r" && over) ask_to_retry(target);
    else if (key === "r" && known.state === "delayed") void run_now(target);
    else if (key === "f" && has_place(known.state)) ask_to_move(target, "front");
    else if (key === "b" && has_place(known.state)) ask_to_move(target, "back");
    else return false;
    return true;
  }
}

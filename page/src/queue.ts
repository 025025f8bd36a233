// One queue: its bands as lanes, running jobs, groups, next jobs and recent events.
import { ask_to_add, ask_to_cancel, ask_to_move, ask_to_pause, ask_to_retry, set_pause }
  from "./actions";
import type { Pause } from "./actions";
import { ActivePanel } from "./active_panel";
import { ActivityPanel } from "./activity_panel";
import { queue_path, request, state } from "./api";
import type { QueueRef } from "./api";
import { segment_of, shown } from "./bytes";
import { Chart } from "./charts";
import { append, h, replace, set_text, show } from "./dom";
import { count, duration, rate, short_count } from "./format";
import { GroupsPanel } from "./groups_panel";
import { series_of } from "./history";
import { JobsPanel } from "./jobs_panel";
import { LanesPanel } from "./lanes_panel";
import { Poller, Visibility, draw_soon } from "./live";
import type { Band, Job, QueueAnswer } from "./types";
import { Figure, empty, error_box, overview_link, skeleton } from "./view";
import type { Filter, View } from "./view";
import { WINDOW_S } from "./waits";
import { is_over } from "./words";

const USUAL_MS = 1000;
// When events are frequent, update at most this often.
const LEAST_MS = 600;

function figures() {
  return {
    pending: new Figure("Pending", "jobs that may run now"),
    later: new Figure("Delayed, blocked", "jobs waiting for their start time, or for other jobs"),
    active: new Figure("Active", "slots in use, and their cap"),
    oldest: new Figure("Oldest", "the longest wait of a pending job"),
    wait: new Figure("Wait p95", `of jobs started in the last ${WINDOW_S} s`),
    run: new Figure("Run p50", "of all runs since the server started"),
    flow: new Figure("Ended", "per second, over the last minute"),
    bad: new Figure("Failed", "failed and expired jobs; expired leases"),
    workers: new Figure("Workers waiting", "pops waiting for a job"),
  };
}

export class QueueView implements View {
  readonly root = h("main.queue");
  readonly title: string;
  private readonly figures = figures();
  private readonly head = h("div.page-head");
  private readonly buttons = h("div.buttons");
  private readonly paused = h("div.banner", { hidden: true });
  private readonly message = h("div", {}, skeleton(6));
  private readonly content = h("div", { hidden: true });
  private readonly charts: Chart[];
  private readonly visibility = new Visibility();
  private readonly lanes: LanesPanel;
  private readonly jobs: JobsPanel;
  private readonly active: ActivePanel;
  private readonly groups: GroupsPanel;
  private readonly activity: ActivityPanel;
  private readonly poller: Poller;
  private answer: QueueAnswer | null = null;
  private band_names: string[] = [];
  private bands: Band[] = [];
  private pause: Pause = "none";
  private stopped = false;

  // `filter`: which jobs are listed.
  constructor(readonly ref: QueueRef, private filter: Filter | null = null) {
    this.title = shown(ref.queue);
    const poke = () => this.poller.poke();
    this.lanes = new LanesPanel(ref, this.visibility);
    this.jobs = new JobsPanel(ref, poke, filter);
    this.active = new ActivePanel(ref);
    this.groups = new GroupsPanel(ref);
    this.activity = new ActivityPanel(ref, poke);
    const spots = [h("div.plot"), h("div.plot"), h("div.plot")];
    const captions = [["Waiting", "waiting", "Active", "active"],
      ["Added a second", "waiting", "Ended a second", "done"],
      [`Wait by band, last ${WINDOW_S} s: p95, dashed p50`]];
    this.charts = [new Chart(spots[0], "depth", true), new Chart(spots[1], "flow", true),
      new Chart(spots[2], "wait", true)];
    this.lay_out(spots.map((spot, index) => h("figure.panel", {},
      h("figcaption", {}, ...this.caption(captions[index])), spot)));
    for (const panel of [this.jobs, this.active, this.groups, this.activity]) {
      this.visibility.watch(panel.root, (visible) => {
        panel.visible = visible;
        if (visible && this.answer) poke();
      });
    }
    this.poller = new Poller((signal) => this.ask(signal), USUAL_MS, LEAST_MS,
      (error) => this.failed(error));
  }

  stop(): void {
    this.stopped = true;
    this.poller.stop();
    this.visibility.stop();
    this.activity.stop();
    this.active.stop();
    for (const chart of this.charts) chart.stop();
  }

  private caption(words: string[]): HTMLElement[] {
    if (words.length === 1) return [h("span", {}, words[0])];
    return [h("span.key", { "data-colour": words[1] }, words[0]),
      h("span.key", { "data-colour": words[3] }, words[2])];
  }

  private lay_out(plots: HTMLElement[]): void {
    append(this.head, [h("h1", {}, h("a", { href: overview_link(this.ref.db) }, "Queues"),
      h("span.dim", {}, " / "), h("bdi", {}, shown(this.ref.queue))), this.buttons]);
    append(this.content, [
      h("div.figure-row", {}, ...Object.values(this.figures).map((figure) => figure.root)),
      h("div.plots", {}, ...plots),
      this.lanes.root,
      h("div.columns", {}, h("div", {}, this.jobs.root),
        h("div", {}, this.active.root, this.groups.root, this.activity.root))]);
    append(this.root, [this.head, this.paused, this.message, this.content]);
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
    if (first) {
      show(this.content, true);
      replace(this.message);
      if (this.filter !== null) this.jobs.root.scrollIntoView();
    }
    await Promise.all([this.lanes.ask(bands, signal), this.jobs.ask(this.band_names, signal),
      this.active.ask(signal), this.groups.ask(answer.stats, signal)]);
    series_of(this.ref.db, this.ref.queue).add(answer.stats, bands);
    draw_soon(() => this.draw());
  }

  private failed(error: unknown): void {
    if (this.answer !== null || state.health !== "connected") return;
    replace(this.message, error_box("Cannot show this queue", error,
      () => this.poller.poke()));
  }

  // --- Drawing ---

  private draw(): void {
    if (this.answer === null || this.stopped) return;
    const { stats } = this.answer;
    const { figures: all } = this;
    const unused = stats.added === 0 && stats.waiting === 0 && stats.active === 0;
    all.pending.set(short_count(stats.pending));
    all.later.set(`${short_count(stats.delayed)}, ${short_count(stats.blocked)}`);
    const cap = stats.max_active;
    all.active.set(count(stats.slots) + (cap ? ` / ${count(cap)}` : ""),
      stats.utilization === null ? "no cap" : `${Math.round(stats.utilization * 100)} % used`);
    all.oldest.set(duration(stats.oldest_ms));
    const wait = series_of(this.ref.db, this.ref.queue).recent.of_all();
    all.wait.set(wait && wait.started > 0 ? duration(wait.p95) : "–",
      wait === null ? "" : wait.started > 0 ? `p50 ${duration(wait.p50)}` : "none started");
    all.run.set(stats.run_ms.count ? duration(stats.run_ms.p50) : "–",
      stats.run_ms.count ? `p95 ${duration(stats.run_ms.p95)}` : "");
    all.flow.set(`${rate(stats.rates.completed)}/s`, `added ${rate(stats.rates.added)}/s`);
    all.bad.set(short_count(stats.failed + stats.expired),
      stats.reclaimed ? `${short_count(stats.reclaimed)} reclaimed` : "", stats.failed > 0);
    const starving = stats.waiting_pops === 0 && stats.pending > 0 && stats.active === 0;
    all.workers.set(short_count(stats.waiting_pops), starving ? "no worker takes jobs" : "",
      starving);
    this.draw_pause(String(this.answer.config?.paused ?? "none") as Pause);
    for (const chart of this.charts) chart.draw(series_of(this.ref.db, this.ref.queue));
    this.lanes.draw(this.bands);
    this.jobs.draw(stats.pending);
    this.active.draw(stats);
    this.groups.draw();
    if (unused === this.message.hasChildNodes()) return;
    replace(this.message, unused ? empty("This queue is empty",
      h("p", {}, "No job has been added to it yet.")) : null);
  }

  private draw_pause(pause: Pause): void {
    const drawn = this.buttons.dataset.for;
    const now = `${pause} ${state.session?.role}`;
    this.pause = pause;
    if (drawn === now) return;
    this.buttons.dataset.for = now;
    const words = { none: "", in: "This queue is paused: it accepts no new jobs.",
      out: "This queue is paused: it hands out no jobs.",
      all: "This queue is paused: it accepts no new jobs and hands out none." };
    set_text(this.paused, words[pause]);
    show(this.paused, pause !== "none");
    if (!state.may("operate")) return replace(this.buttons);
    replace(this.buttons,
      h("button", { click: () => this.add(), title: "Add a job (a)" }, "Add a job…"),
      pause === "none"
        ? h("button", { click: () => this.turn_pause(), title: "Pause (p)" }, "Pause…")
        : h("button.primary", { click: () => this.turn_pause(), title: "Resume (p)" }, "Resume"));
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
    if (key === "a") this.add();
    else if (key === "p") this.turn_pause();
    else return row !== null && this.row_key(key, row);
    return true;
  }

  private row_key(key: string, id: string): boolean {
    const known: Job | undefined = this.jobs.find(id) ?? this.active.find(id)
      ?? this.lanes.find(id);
    if (!known) return false;
    const target = { ref: this.ref, id, job: known, changed: this.changed };
    const over = is_over(known.state);
    if (key === "c" && !over) ask_to_cancel(target);
    else if (key === "r" && over) ask_to_retry(target);
    else if (key === "f" && !over && known.state !== "active") ask_to_move(target, "front");
    else if (key === "b" && !over && known.state !== "active") ask_to_move(target, "back");
    else return false;
    return true;
  }
}

// One job: its position, why it waits, its attempts, its fields, and its history.
import { ask_to_cancel, ask_to_move, ask_to_retry, ask_to_run_again, job_buttons, run_now }
  from "./actions";
import { overview_link, queue_link } from "./address";
import { ApiError, job_path, queue_path, request, state } from "./api";
import type { QueueRef } from "./api";
import { AttemptsPanel } from "./attempts";
import { entries_of, is_addressable, segment_of, segment_of_item, shown } from "./bytes";
import { server_now } from "./clock";
import { KeyedList, append, h, replace, set_text, show } from "./dom";
import { ago, count, duration, moment, plural, size } from "./format";
import { JobFeed, progress_of, progress_query } from "./job_feed";
import { GraphPanel } from "./job_graph";
import { LEAST_MS, Poller, draw_soon } from "./live";
import { LogView } from "./log_view";
import { Story } from "./story";
import { draw_body } from "./tree";
import type { Band, Job, QueueAnswer, QueueEvent } from "./types";
import { Figure, Stale, Panel, empty, skeleton, show_error, state_pill } from "./view";
import type { View } from "./view";
import { error_in_words, eta_of, event_in_words, field_in_words, has_place, is_over,
  state_in_words, telling_line } from "./words";

const USUAL_MS = 1000;
// The place in dispatch order is known for the first jobs, and asked for this often.
const DISPATCHED = 100;
const DISPATCH_MS = 2000;
// If the queue keeps no events, a new payload of the job is noticed within this time.
const BODIES_MS = 30_000;

export class JobView implements View {
  readonly root = h("main.job");
  readonly title: string;
  private readonly stale = new Stale();
  private readonly message = h("div", {}, skeleton(6));
  private readonly content = h("div", { hidden: true });
  private readonly pill = h("span");
  private readonly words = h("p.words");
  private readonly error = h("pre.headline-error", { tabindex: 0, hidden: true });
  private readonly buttons = h("div.buttons");
  private readonly figures = {
    place: new Figure("Place by rank", "pending jobs before it, by band and rank"),
    next: new Figure("Place in dispatch order", "among the jobs that pops would take next, with "
      + "all limits and fairness"),
    eta: new Figure("Expected to start", "if nothing were added and workers keep their pace"),
    waited: new Figure("Added"), ran: new Figure("Run"), tries: new Figure("Attempts") };
  private readonly attempts = new AttemptsPanel();
  private readonly live = new Panel("Progress and log");
  private readonly progress = h("p.progress");
  private readonly log = new LogView();
  private readonly earlier = h("button.link", { hidden: true, click: () => {
    this.whole_log = true;
    this.log.clear();
    this.draw_live();
    // The button is gone: what it has shown is in focus, from its beginning.
    this.log.root.scrollTop = 0;
    this.log.root.focus({ preventScroll: true });
  } });
  private readonly graph: GraphPanel;
  private readonly facts = new Panel("What it is");
  private readonly payload = new Panel("Payload");
  private readonly result = new Panel("Result");
  private readonly history = new Panel("Story");
  private readonly history_note = h("p.dim");
  private readonly further = h("button", { click: () => this.read_further() }, "Show more");
  private readonly events: KeyedList<QueueEvent, { root: HTMLElement }>;
  private readonly story: Story;
  private readonly poller: Poller;
  private readonly feed: JobFeed;
  // -1: it is not among those that were listed.
  private dispatch: number | null = null;
  private dispatched = 0;
  private dispatch_at = -Infinity;
  private job: Job | null = null;
  private bands: string[] = [];
  // Null: not known yet, as the bands.
  private adopted: boolean | null = null;
  // With payload and result, which may be large, and options: requested once for each change of
  // the job.
  private bodies: Job | null = null;
  private bodies_of = "";
  private bodies_at = 0;
  private drawn_of: Job | null = null;
  private whole_log = false;
  // The event that "Show more" will show first.
  private focus_at: number | null = null;

  constructor(readonly ref: QueueRef, private id: string) {
    this.title = shown(id);
    this.story = new Story(ref, id);
    this.graph = new GraphPanel(ref, id);
    this.live.body.append(this.progress, this.earlier, this.log.root);
    const rows = h("ol.story");
    this.events = new KeyedList<QueueEvent, { root: HTMLElement }>(rows,
      (event) => String(event.seq), (_, event) => ({ root: this.event_row(event) }),
      () => undefined);
    this.history.body.append(rows, this.history_note, this.further);
    show(this.further, false);
    append(this.content, [
      h("div.verdict", {}, this.pill, this.words), this.error,
      h("div.figure-row", {}, ...Object.values(this.figures).map((figure) => figure.root)),
      h("div.columns", {}, h("div", {}, this.live.root, this.attempts.root, this.graph.root,
        this.history.root),
      h("div", {}, this.result.root, this.payload.root, this.facts.root))]);
    append(this.root, [h("div.page-head", {}, h("h1", {},
      h("a", { href: overview_link(ref.db) }, "Queues"), h("span.dim", {}, " / "),
      h("a", { href: queue_link(ref) }, h("bdi", {}, shown(ref.queue))),
      h("span.dim", {}, " / "), h("bdi", {}, shown(id))), this.buttons),
    this.stale.root, this.message, this.content]);
    this.poller = new Poller((signal) => this.ask(signal), USUAL_MS, LEAST_MS,
      (error) => this.failed(error));
    this.feed = new JobFeed(ref, id, () => this.poller.poke(), () => draw_soon(this.draw_live));
    if (!is_addressable(id)) this.feed.stop();
  }

  stop(): void {
    this.poller.stop();
    this.feed.stop();
  }

  // --- Requests ---

  private async ask(signal: AbortSignal): Promise<void> {
    if (!is_addressable(this.id)) {
      throw new ApiError(404, "NOJOB", "This id cannot be part of an address.");
    }
    const first = this.bodies === null;
    const [job] = await Promise.all([first ? this.ask_bodies(signal)
      : request<Job>(job_path(this.ref, this.id, "", progress_query), { signal }),
    this.adopted === null ? this.ask_queue(signal) : null]);
    this.job = job;
    if (!is_over(job.state)) this.feed.again();
    draw_soon(this.draw);
    await this.ask_dispatch(job, signal);
    await this.story.read(signal, () => draw_soon(this.draw_story));
    draw_soon(this.draw_story);
    const old = performance.now() - this.bodies_at > BODIES_MS;
    const changed = !first && this.change_of(job) !== this.bodies_of;
    if (changed || old) this.job = await this.ask_bodies(signal);
    this.bodies_of = this.change_of(this.job);
    if (this.bodies) await this.graph.ask({ ...this.bodies, ...this.job }, this.bodies_of, signal);
    this.stale.set(null);
    draw_soon(this.draw);
  }

  // Its place among the next jobs, which is not the one by rank.
  private async ask_dispatch(job: Job, signal: AbortSignal): Promise<void> {
    if (job.state !== "pending") this.dispatch = null;
    if (job.state !== "pending" || performance.now() - this.dispatch_at < DISPATCH_MS) return;
    this.dispatch_at = performance.now();
    const query = { by: "dispatch", count: String(DISPATCHED), progress_bytes: "0" };
    const { jobs } = await request<{ jobs: Job[] }>(queue_path(this.ref, "/jobs", query),
      { signal });
    this.dispatched = jobs.length;
    this.dispatch = jobs.findIndex((each) => segment_of(each, "id") === this.id);
  }

  private async ask_queue(signal: AbortSignal): Promise<void> {
    const [{ bands }, { stats }] = await Promise.all([
      request<{ bands: Band[] }>(queue_path(this.ref, "/bands"), { signal }),
      request<QueueAnswer>(queue_path(this.ref), { signal })]);
    this.adopted = !!stats.adopted;
    this.bands = bands.map((band) => shown(segment_of(band, "name")));
  }

  private async ask_bodies(signal: AbortSignal): Promise<Job> {
    const query = { with: ["payload", "result", "options", "dependents"], ...progress_query };
    this.bodies = await request<Job>(job_path(this.ref, this.id, "", query), { signal });
    this.bodies_at = performance.now();
    return this.bodies;
  }

  // Differs if something has happened to the job; progress changes neither payload nor result.
  private change_of(job: Job): string {
    return [job.state, job.enqueued, job.attempts, job.finished, job.successor,
      this.story.events.filter(({ type }) => type !== "progress").at(-1)?.seq].join();
  }

  private failed(error: unknown): void {
    if (state.health !== "connected") return;
    const gone = error instanceof ApiError && error.code === "NOJOB";
    if (!gone && this.job !== null) return this.stale.set(error);
    this.stale.set(null);
    // It may appear again, but rarely does: polling ends.
    if (gone) this.poller.stop();
    this.job = null;
    this.bodies = null;
    show(this.content, false);
    replace(this.buttons);
    if (!gone) {
      return show_error(this.message, "Cannot show this job", error, () => this.poller.poke());
    }
    replace(this.message, empty("No such job",
      h("p", {}, "It never existed, was purged, or is older than the queue retains."),
      h("p", {}, h("a", { href: queue_link(this.ref) }, "Go to its queue"))));
  }

  private read_further(): void {
    this.focus_at = this.story.events.length;
    this.story.read_further();
    this.poller.poke();
  }

  // --- Drawing ---

  private readonly draw = () => {
    const { job } = this;
    if (job === null) return;
    const now = server_now();
    show(this.content, true);
    replace(this.message);
    if (this.pill.textContent !== job.state) replace(this.pill, state_pill(job.state));
    set_text(this.words, state_in_words(job, now));
    const error = error_in_words(segment_of(job, "error"), job.state, job.needs);
    show(this.error, error !== "");
    set_text(this.error, error);
    this.draw_figures(job, now);
    this.draw_buttons(job);
    this.draw_facts(job);
    this.attempts.draw(job, this.story.events, this.story.bounded, now);
    this.draw_live();
    if (this.bodies === null) return;
    this.graph.draw({ ...this.bodies, ...job });
    this.draw_bodies(this.bodies);
  };

  private draw_figures(job: Job, now: number): void {
    const { place, next, eta, waited, ran, tries } = this.figures;
    // A job that has ended, or runs, has no place.
    const waits = !is_over(job.state) && job.state !== "active";
    for (const figure of [place, next, eta]) show(figure.root, waits);
    place.set(job.position === null ? "–" : `#${count(job.position + 1)}`,
      job.position === null ? "" : job.position === 0 ? "first of its queue"
        : `${count(job.position)} before it`);
    next.set(this.dispatch === null || this.dispatch < 0 ? "–" : `#${this.dispatch + 1}`,
      this.dispatch === null || this.dispatch >= 0 ? ""
        : this.dispatched < DISPATCHED ? "pops would not take it now: a limit or a pause holds it"
          : `not among the next ${DISPATCHED}`);
    const eta_ms = eta_of(job);
    eta.set(eta_ms === null ? "–" : eta_ms < 1000 ? "at once" : `in ${duration(eta_ms)}`,
      job.state !== "pending" || eta_ms !== null ? ""
        : job.eta_ms !== null ? "when a worker asks" : "not known yet");
    if (job.enqueued === null) waited.set("–", "no time is known");
    else waited.set(`${duration(now - job.enqueued)} ago`, moment(job.enqueued));
    ran.set(job.state === "active" ? duration(now - (job.started ?? now)) : duration(job.run_ms),
      job.deadline !== null ? `lease ${duration(job.deadline - now)}` : job.finished === null ? ""
        : `ended ${ago(job.finished, now)}`);
    tries.set(count(job.attempts), job.crashes ? `${plural(job.crashes, "lease")} ran out` : "",
      job.crashes > 0);
  }

  // What its worker reported.
  private readonly draw_live = () => {
    const { feed } = this;
    const told = feed.progress?.text || (this.job === null ? "" : progress_of(this.job));
    show(this.progress, told !== "");
    set_text(this.progress, told);
    show(this.log.root, feed.log !== "");
    show(this.live.root, told !== "" || feed.log !== "");
    const log = this.whole_log ? feed.log : feed.end_of_log();
    const left = feed.log.length - log.length;
    show(this.earlier, left > 0);
    set_text(this.earlier, `Show the earlier ${size(left)} too`);
    this.log.draw(log, feed.end, feed.begins_late || left > 0);
  };

  private draw_buttons(job: Job): void {
    const key = `${job.state} ${job.pri} ${this.bands.length} ${state.session?.role}`;
    if (this.buttons.dataset.for === key) return;
    this.buttons.dataset.for = key;
    replace(this.buttons, ...job_buttons(this.target(job), this.bands),
      state.may("operate") && !this.adopted ? h("button", { title: "Run again as a new job (n)",
        click: () => this.run_again() }, "Run again…") : null);
  }

  private run_again(): void {
    if (this.job === null || this.bodies === null || this.adopted) return;
    ask_to_run_again(this.ref, { ...this.bodies, ...this.job });
  }

  private target(job: Job) {
    return { ref: this.ref, id: this.id, job, changed: () => this.poller.poke(),
      adopted: this.adopted === true };
  }

  private draw_facts(job: Job): void {
    const list = (items: Job["keys"]) => items.map((item) => shown(segment_of_item(item)));
    const facts: [string, string | string[]][] = [
      ["priority", job.pri], ["group", shown(segment_of(job, "group"))],
      ["keys", list(job.keys)],
      ["tags", entries_of(job.tags).map(([name, value]) => `${shown(name)}=${shown(value)}`)],
      ["cost", job.cost === 1 ? "" : count(job.cost)],
      ["worker", shown(segment_of(job, "worker"))],
      ["lease token", job.lease === null ? "" : String(job.lease)],
      ["asked to stop", shown(segment_of(job, "cancel"))],
      ["tries left", job.retries_left === null ? "" : String(job.retries_left)],
      ["may wait", job.ttl_left_ms === null ? "" : `${duration(job.ttl_left_ms)} more`],
      ["longest run", job.max_run_ms ? duration(job.max_run_ms) : ""],
      ["lease duration", job.lease_ms ? duration(job.lease_ms) : ""],
      ["finished", job.finished === null ? "" : moment(job.finished, true)],
      ["successor", job.successor ? "another payload waits under this id" : ""]];
    const text = facts.filter(([, value]) => value.length > 0);
    const key = text.map((fact) => fact.join()).join();
    if (this.facts.body.dataset.for === key) return;
    this.facts.body.dataset.for = key;
    replace(this.facts.body, h("dl.facts", {}, ...text.flatMap(([name, value]) =>
      [h("dt", {}, name), h("dd", {}, ...[value].flat().flatMap((each, n) =>
        [n ? ", " : "", h("bdi", {}, each)]))])));
  }

  private draw_bodies(job: Job): void {
    const before = this.drawn_of;
    this.drawn_of = job;
    // They may be large: the same one is not looked at again, and stays as far open as it is.
    const same = (name: "payload" | "result") => before !== null && job[name] === before[name]
      && job[`${name}_base64`] === before[`${name}_base64`];
    if (!same("payload")) draw_body(this.payload, segment_of(job, "payload"), "It has no payload.");
    if (same("result")) return;
    const result = segment_of(job, "result");
    draw_body(this.result, result, "");
    show(this.result.root, result !== null);
  }

  private readonly draw_story = () => {
    const { story } = this;
    this.events.render(story.events);
    show(this.further, story.bounded);
    const first = this.focus_at === null ? undefined : this.events.root.children[this.focus_at];
    if (first instanceof HTMLElement) {
      this.focus_at = null;
      first.tabIndex = -1;
      first.focus();
    }
    if (this.job) this.attempts.draw(this.job, story.events, story.bounded, server_now());
    set_text(this.history.aside, story.complete ? "" : "reading…");
    const { events } = story;
    set_text(this.history_note, story.bounded ? `${count(events.length)} events, and more.`
      : events.length === 0
        ? (story.complete ? "None of its events are kept." : "Searching the queue's events…")
        : events[0].type !== "added" || story.begins_late
          ? "Earlier events are no longer kept." : "");
  };

  private event_row(event: QueueEvent): HTMLElement {
    const before = this.story.events[this.story.events.indexOf(event) - 1];
    const after = before ? `+${duration(event.time - before.time)}` : "";
    const notes = Object.keys(event.fields).flatMap((name) => {
      const value = event.fields[name];
      const text = typeof value === "number"
        ? (name.endsWith("_ms") ? duration(value) : String(value))
        : telling_line(error_in_words(segment_of(event.fields, name), event.type,
          this.job?.needs ?? []));
      return text === "" ? [] : [" · ", `${field_in_words(name)} `, h("bdi", {}, text)];
    }).slice(1);
    return h("li", { "data-event": event.type }, h("time", {}, moment(event.time, true)),
      h("div", {}, h("strong", {}, event_in_words(event)), h("small.dim", {}, after),
        notes.length > 0 ? h("p", {}, ...notes) : null));
  }

  key(key: string): boolean {
    const { job } = this;
    if (job === null) return false;
    const over = is_over(job.state);
    if (key === "c" && !over) ask_to_cancel(this.target(job));
    else if (key === "n") this.run_again();
    else if (key === "r" && over) ask_to_retry(this.target(job));
    else if (key === "r" && job.state === "delayed") void run_now(this.target(job));
    else if (key === "f" && has_place(job.state)) ask_to_move(this.target(job), "front");
    else if (key === "b" && has_place(job.state)) ask_to_move(this.target(job), "back");
    else return false;
    return true;
  }
}

// The running jobs: their workers, run times, and the time left of their leases.
import { queue_path, request } from "./api";
import type { QueueRef } from "./api";
import { segment_of, shown } from "./bytes";
import { server_now } from "./clock";
import { KeyedList, h, replace, set_class, set_text } from "./dom";
import { count, duration, plural } from "./format";
import { draw_soon } from "./live";
import type { Job, Stats } from "./types";
import { Panel, empty, job_anchor, skeleton } from "./view";
import { slots_in_words } from "./words";

const SHOWN_SLOTS = 60;
const TICK_MS = 250;
// A lease with less than this fraction of its time left is shown as a warning.
const NEAR_END = 0.15;

interface Slot {
  root: HTMLElement;
  age: HTMLElement;
  left: HTMLElement;
  worker: HTMLElement;
  meter: HTMLMeterElement;
  job: Job;
}

// Without tenths of seconds, which would only flicker.
function whole(ms: number): string {
  return duration(ms).replace(/\.\d s/, " s");
}

export class ActivePanel {
  private readonly panel = new Panel("Active slots");
  readonly root = this.panel.root;
  visible = false;
  // Null: not known yet.
  private jobs: Job[] | null = null;
  private readonly note = h("div", {}, skeleton(2));
  private readonly list: KeyedList<Job, Slot>;
  // Ages are updated between two responses.
  private readonly ticker = window.setInterval(() => {
    if (this.visible && document.visibilityState === "visible") draw_soon(this.tick);
  }, TICK_MS);
  private readonly tick = () => {
    const now = server_now();
    for (const slot of this.list.values()) this.show_times(slot, now);
  };

  constructor(private ref: QueueRef) {
    const slots = h("div.slots");
    this.panel.body.append(slots, this.note);
    this.list = new KeyedList<Job, Slot>(slots, (job) => segment_of(job, "id") ?? "",
      (id, job) => this.make(id, job), (slot, job) => this.update(slot, job));
  }

  stop(): void {
    clearInterval(this.ticker);
  }

  async ask(signal: AbortSignal): Promise<void> {
    if (!this.visible) return;
    const query = { state: "active", by: "age", limit: String(SHOWN_SLOTS), progress_bytes: "0" };
    const { jobs } = await request<{ jobs: Job[] }>(queue_path(this.ref, "/jobs", query),
      { signal });
    this.jobs = jobs;
  }

  draw(stats: Stats): void {
    if (!this.visible || this.jobs === null) return;
    this.list.render(this.jobs);
    const slots = slots_in_words(stats);
    set_text(this.panel.aside, [plural(stats.active, "job"), slots, "oldest first"]
      .filter((each) => each !== "").join(", "));
    const rest = stats.active - this.jobs.length;
    replace(this.note, this.jobs.length === 0
      ? empty("Nothing runs", stats.adopted ? null : h("p", {}, stats.waiting_pops > 0
        ? "Workers are waiting for jobs." : "No worker is asking for jobs."))
      : rest > 0 ? h("p.dim", {}, `and ${count(rest)} more`) : null);
  }

  private make(id: string, job: Job): Slot {
    const slot: Slot = { root: h("div.slot"), age: h("strong"), left: h("small"),
      worker: h("span.worker"), meter: h("meter", { min: 0, max: 1 }), job };
    slot.root.append(h("div.slot-head", {}, job_anchor(this.ref, id), slot.age),
      h("div.slot-foot", {}, slot.worker, slot.left), slot.meter);
    return slot;
  }

  private update(slot: Slot, job: Job): void {
    slot.job = job;
    const group = shown(segment_of(job, "group"));
    const worker = shown(segment_of(job, "worker")) || "a worker without a name";
    const attempt = job.attempts > 1 ? ` · attempt ${job.attempts}` : "";
    const words = worker + (group ? ` · ${group}` : "") + attempt;
    if (slot.worker.textContent !== words) {
      replace(slot.worker, h("bdi", {}, worker), group && " · ", group && h("bdi", {}, group),
        attempt);
    }
    set_class(slot.root, "told", segment_of(job, "cancel") !== null);
    this.show_times(slot, server_now());
  }

  private show_times(slot: Slot, now: number): void {
    const { job } = slot;
    set_text(slot.age, whole(Math.max(0, now - (job.started ?? now))));
    if (job.deadline === null) return;
    const left = job.deadline - now;
    const share = Math.min(1, Math.max(0, left / Math.max(job.lease_ms, 1)));
    set_text(slot.left, left > 0 ? `lease ${whole(left)}` : "lease expired");
    slot.meter.value = Math.round(share * 100) / 100;
    set_class(slot.root, "near", share < NEAR_END);
  }

  find(id: string): Job | undefined {
    return this.jobs?.find((job) => segment_of(job, "id") === id);
  }
}

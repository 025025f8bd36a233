// The runs of a job, one under the other, each with its worker, its time and its error.
import { segment_of, shown, shown_lines } from "./bytes";
import { KeyedList, h, replace, set_text, show } from "./dom";
import { count, duration, moment } from "./format";
import type { Job, QueueEvent } from "./types";
import { Panel } from "./view";

interface Attempt {
  number: number;
  worker: string;
  started: number;
  ended: number | null;
  // What ended it, as the event says it; empty: it runs.
  end: string;
  error: string;
}

const ENDS: Record<string, string> = { completed: "completed", failed: "failed",
  retrying: "failed, to be retried", reclaimed: "lost: its lease ran out",
  returned: "given back by its worker", cancelled: "cancelled" };

// Read from the events of the job that are still kept.
export function attempts_of(events: readonly QueueEvent[]): Attempt[] {
  const attempts: Attempt[] = [];
  for (const event of events) {
    const field = (name: string) => shown(segment_of(event.fields, name));
    const last = attempts.at(-1);
    if (event.type === "started") {
      attempts.push({ number: Number(event.fields.attempt ?? attempts.length + 1),
        worker: field("worker"), started: event.time, ended: null, end: "", error: "" });
    } else if (last && last.ended === null && ENDS[event.type]) {
      last.ended = event.time;
      last.end = ENDS[event.type];
      last.error = shown_lines(segment_of(event.fields, "error")
        ?? segment_of(event.fields, "reason"));
    }
  }
  return attempts;
}

interface Line {
  root: HTMLElement;
  drawn: string;
}

export class AttemptsPanel {
  private readonly panel = new Panel("Attempts");
  readonly root = this.panel.root;
  private readonly note = h("p.dim");
  private readonly list = new KeyedList<Attempt, Line>(h("ol.attempts"),
    ({ number, started }) => `${number} ${started}`, () => ({ root: h("li"), drawn: "" }),
    (line, attempt) => this.update(line, attempt));
  private now = 0;

  constructor() {
    this.panel.body.append(this.note, this.list.root);
  }

  draw(job: Job, events: readonly QueueEvent[], now: number): void {
    this.now = now;
    const attempts = attempts_of(events);
    set_text(this.panel.aside, job.attempts === 0 ? "" : `${count(job.attempts)} so far`
      + (job.retries_left ? `, ${count(job.retries_left)} left` : "")
      + (job.crashes ? `, ${count(job.crashes)} lost` : ""));
    show(this.note, attempts.length === 0);
    set_text(this.note, job.attempts === 0 ? "It has not been started yet."
      : "The events of its runs are no longer kept.");
    // The newest first: its error is what one looks for.
    this.list.render(attempts.reverse());
  }

  // While one runs the others stay as they are: somebody may be reading their errors.
  private update(line: Line, attempt: Attempt): void {
    const ran = duration(Math.max(0, (attempt.ended ?? this.now) - attempt.started));
    const drawn = JSON.stringify([attempt, ran]);
    if (drawn === line.drawn) return;
    line.drawn = drawn;
    const kind = attempt.ended === null ? "active" : attempt.end.startsWith("completed")
      ? "completed" : "failed";
    line.root.dataset.state = kind;
    replace(line.root, h("strong", {}, `#${attempt.number}`),
      h("span.pill", { "data-state": kind }, attempt.end || "running"),
      h("span", {}, attempt.worker ? `by ${attempt.worker}` : "by a worker without a name"),
      h("small", {}, `${moment(attempt.started)}, ran ${ran}`),
      attempt.error ? h("pre", { tabindex: 0 }, attempt.error) : null);
  }
}

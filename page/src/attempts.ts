// The runs of a job, one under the other, each with its worker, its time and its error.
import { segment_of, shown, shown_lines } from "./bytes";
import { h, replace, set_text } from "./dom";
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

export class AttemptsPanel {
  private readonly panel = new Panel("Attempts");
  readonly root = this.panel.root;
  private drawn = "";

  draw(job: Job, events: readonly QueueEvent[], now: number): void {
    const attempts = attempts_of(events);
    set_text(this.panel.aside, job.attempts === 0 ? "" : `${count(job.attempts)} so far`
      + (job.retries_left ? `, ${count(job.retries_left)} left` : "")
      + (job.crashes ? `, ${count(job.crashes)} lost` : ""));
    const running = attempts.at(-1)?.ended === null && job.state === "active";
    const key = JSON.stringify(attempts) + (running ? Math.floor(now / 1000) : "")
      + (attempts.length === 0 ? job.attempts : "");
    if (key === this.drawn) return;
    this.drawn = key;
    if (attempts.length === 0) {
      return replace(this.panel.body, h("p.dim", {}, job.attempts === 0
        ? "It has not been started yet." : "The events of its runs are no longer kept."));
    }
    // The newest first: its error is what one looks for.
    replace(this.panel.body, h("ol.attempts", {}, ...[...attempts].reverse().map((each) =>
      this.line(each, now))));
  }

  private line(attempt: Attempt, now: number): HTMLElement {
    const ran = duration(Math.max(0, (attempt.ended ?? now) - attempt.started));
    const kind = attempt.ended === null ? "active" : attempt.end.startsWith("completed")
      ? "completed" : "failed";
    return h("li", { "data-state": kind }, h("strong", {}, `#${attempt.number}`),
      h("span.pill", { "data-state": kind }, attempt.end || "running"),
      h("span", {}, attempt.worker ? `by ${attempt.worker}` : "by a worker without a name"),
      h("small", {}, `${moment(attempt.started)}, ran ${ran}`),
      attempt.error ? h("pre", { tabindex: 0 }, attempt.error) : null);
  }
}

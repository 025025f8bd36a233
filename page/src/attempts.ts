// The runs of a job, one under the other, each with its worker, its time and its error.
import { segment_of, shown, shown_lines } from "./bytes";
import { KeyedList, h, replace, set_text, show } from "./dom";
import { count, duration, moment, plural } from "./format";
import type { Job, QueueEvent } from "./types";
import { Panel } from "./view";
import { is_over } from "./words";

// So many of the newest are shown; the others on request.
const SHOWN = 20;

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

// Adds those of further events of the job to its attempts.
function add_attempts(attempts: Attempt[], events: readonly QueueEvent[]): void {
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
  private readonly more = h("button.link", { hidden: true, click: () => {
    this.all = true;
    this.draw_list();
    // The button is gone: the focus goes to what it has shown.
    const first = this.list.root.children[SHOWN] as HTMLElement;
    first.tabIndex = -1;
    first.focus();
  } });
  private readonly attempts: Attempt[] = [];
  // So many events have become attempts.
  private taken = 0;
  private all = false;
  private now = 0;
  // Whether the newest attempts, or the end of the last one, are among the events not read.
  private goes_on = false;

  constructor() {
    this.panel.body.append(this.note, this.list.root, this.more);
  }

  // `events`: those of before, and further ones; `bounded`: there are more that are not read.
  draw(job: Job, events: readonly QueueEvent[], bounded: boolean, now: number): void {
    this.now = now;
    add_attempts(this.attempts, events.slice(this.taken));
    this.taken = events.length;
    const last = this.attempts.at(-1);
    this.goes_on = bounded && ((last?.number ?? 0) !== job.attempts
      || (last?.ended === null && job.state !== "active"));
    set_text(this.panel.aside, job.attempts === 0 ? "" : `${count(job.attempts)} so far`
      + (job.retries_left ? `, ${count(job.retries_left)} left` : "")
      + (job.crashes ? `, ${count(job.crashes)} lost` : ""));
    show(this.note, last === undefined || this.goes_on);
    set_text(this.note, this.goes_on ? "The newest are not shown: they are in a part of the story "
      + "that has not been read. Its “Show more” reads on."
      : job.attempts === 0 ? (is_over(job.state) ? "It was never started."
        : "It has not been started yet.")
        : "The events of its runs are no longer kept.");
    this.draw_list();
  }

  // The newest first: its error is what one looks for.
  private draw_list(): void {
    this.list.render(this.attempts.slice(this.all ? 0 : -SHOWN).reverse());
    const left = this.attempts.length - SHOWN;
    show(this.more, !this.all && left > 0);
    set_text(this.more, `Show the ${plural(left, "earlier attempt")} too`);
  }

  // While one runs the others stay as they are: somebody may be reading their errors.
  private update(line: Line, attempt: Attempt): void {
    const unknown = attempt.ended === null && this.goes_on;
    const ran = unknown ? "" : `, ran ${duration(Math.max(0, (attempt.ended ?? this.now)
      - attempt.started))}`;
    const end = attempt.end || (unknown ? "end not read" : "running");
    const drawn = `${end}${ran}`;
    if (drawn === line.drawn) return;
    line.drawn = drawn;
    const kind = attempt.ended === null ? "active" : attempt.end.startsWith("completed")
      ? "completed" : "failed";
    line.root.dataset.state = kind;
    replace(line.root, h("strong", {}, `#${attempt.number}`),
      h("span.pill", { "data-state": kind }, end),
      h("span", {}, "by ", attempt.worker ? h("bdi", {}, attempt.worker)
        : "a worker without a name"),
      h("small", {}, `${moment(attempt.started)}${ran}`),
      attempt.error ? h("pre", { tabindex: 0 }, attempt.error) : null);
  }
}

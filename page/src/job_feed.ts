// A job as it happens: what its worker reports and logs, and when something has changed.
import { ApiError, headers, job_path, open } from "./api";
import type { QueueRef } from "./api";
import { segment_of, text_of, shown } from "./bytes";
import { EventParser, is_awake } from "./live";

const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 10_000;
// The newest lines of a long log are shown; the rest on request, as far as a server keeps one.
const SHOWN_LOG = 64 * 1024;
const MOST_LOG = 1024 * 1024;

// The end of a text, from the beginning of a line on if there is one.
function lines_at_end(text: string, most: number): string {
  if (text.length <= most) return text;
  const end = text.slice(-most);
  const at = text.at(-most - 1) === "\n" ? 0 : end.indexOf("\n") + 1;
  return at < end.length ? end.slice(at) : end;
}

interface LogPart {
  offset: number;
  next: number;
  text?: string | null;
  text_base64?: string;
}

export class JobFeed {
  // All that was sent.
  log = "";
  // Where the next byte of the log belongs.
  private at = 0;
  // Earlier bytes are no longer kept.
  begins_late = false;
  progress: { text: string; time: number } | null = null;
  private abort: AbortController | null = null;
  private timer = 0;
  private stopped = false;
  private ended = false;
  private last_id: string | null = null;
  private retry_ms = FIRST_RETRY_MS;
  private readonly turn = () => {
    if (is_awake()) this.begin();
    else this.end();
  };

  // `changed`: its state or place; `heard`: progress or log.
  constructor(private ref: QueueRef, private id: string, private changed: () => void,
              private heard: () => void) {
    document.addEventListener("visibilitychange", this.turn);
    this.turn();
  }

  stop(): void {
    this.stopped = true;
    document.removeEventListener("visibilitychange", this.turn);
    this.end();
  }

  // A job that had ended lives again.
  again(): void {
    if (!this.ended) return;
    this.ended = false;
    this.begin();
  }

  private end(): void {
    clearTimeout(this.timer);
    this.abort?.abort();
    this.abort = null;
  }

  private begin(): void {
    if (this.stopped || this.ended || this.abort) return;
    this.abort = new AbortController();
    void this.read(this.abort);
  }

  private async read(abort: AbortController): Promise<void> {
    try {
      const extra: Record<string, string> = { Accept: "text/event-stream" };
      if (this.last_id !== null) extra["Last-Event-ID"] = this.last_id;
      const response = await open(job_path(this.ref, this.id, "/stream"),
        { headers: headers(extra), signal: abort.signal });
      const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new EventParser();
      for (;;) {
        const { done, value } = await reader.read();
        if (done || this.abort !== abort) break;
        this.retry_ms = FIRST_RETRY_MS;
        parser.take(value, (type, data, id) => this.take(type, data, id));
      }
    } catch (error) {
      // It is gone; the poll of the page tells it.
      if (error instanceof ApiError && error.status === 404) this.ended = true;
    }
    if (this.abort !== abort) return;
    this.end();
    if (this.stopped || this.ended || !is_awake()) return;
    this.timer = window.setTimeout(() => this.begin(), this.retry_ms);
    this.retry_ms = Math.min(this.retry_ms * 2, LAST_RETRY_MS);
  }

  private take(type: string, data: string, id: string): void {
    if (id) this.last_id = id;
    if (type === "state" || type === "position") return this.changed();
    const part = JSON.parse(data) as Record<string, unknown>;
    if (type === "end") {
      this.ended = true;
      this.changed();
    } else if (type === "progress") {
      this.progress = { text: shown(segment_of(part, "progress")), time: Number(part.time) };
      this.heard();
    } else if (type === "log") {
      this.take_log(part as unknown as LogPart);
    }
  }

  private take_log(part: LogPart): void {
    if (part.offset < this.at) {
      this.log = "";
      this.begins_late = part.offset > 0;
    }
    else if (part.offset > this.at) this.begins_late = true;
    this.at = part.next;
    const bytes = segment_of(part, "text") ?? "";
    const whole = this.log + (text_of(bytes) ?? shown(bytes));
    this.log = lines_at_end(whole, MOST_LOG);
    if (this.log !== whole) this.begins_late = true;
    this.heard();
  }

  end_of_log(): string {
    return lines_at_end(this.log, SHOWN_LOG);
  }
}

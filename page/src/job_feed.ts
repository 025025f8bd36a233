// A job as it happens: what its worker reports and logs, and when something has changed.
import { job_path } from "./api";
import type { QueueRef } from "./api";
import { lenient_text_of, segment_of, shown_lines } from "./bytes";
import { is_awake } from "./live";
import { Stream } from "./streams";
import type { StreamPart } from "./streams";

// The newest lines of a long log are shown; the rest on request, as far as a server keeps one.
const SHOWN_LOG = 64 * 1024;
const MOST_LOG = 1024 * 1024;
// A worker may report a megabyte as progress, each second: its beginning is asked for and shown.
const MOST_PROGRESS = 4096;
export const progress_query = { progress_bytes: String(MOST_PROGRESS) };

// The end of a text, from the beginning of a line on if there is one.
function lines_at_end(text: string, most: number): string {
  if (text.length <= most) return text;
  const end = text.slice(-most);
  const at = text.at(-most - 1) === "\n" ? 0 : end.indexOf("\n") + 1;
  return at < end.length ? end.slice(at) : end;
}

// The beginning of a character at the end of a segment.
const HALF = /(?:%[CD].|%E.(?:%[89AB].)?|%F.(?:%[89AB].){0,2})$/;

export function progress_of(answer: object): string {
  const bytes = segment_of(answer, "progress") ?? "";
  if (bytes.replace(/%../g, "x").length < MOST_PROGRESS) return shown_lines(bytes);
  return shown_lines(bytes.replace(HALF, "")) + "…";
}

interface LogPart {
  offset: number;
  next: number;
  text?: string | null;
  text_base64?: string;
}

export class JobFeed {
  // All that was sent, as far as it is kept; and how many characters have come.
  log = "";
  end = 0;
  // Where the next byte of the log belongs.
  private at = 0;
  // A character of which the other bytes have not come yet.
  private half = "";
  // Earlier bytes are no longer kept.
  begins_late = false;
  progress: { text: string; time: number } | null = null;
  private ended = false;
  private last_id: string | null = null;
  private readonly stream: Stream;

  // `changed`: its state or place; `heard`: progress or log.
  constructor(ref: QueueRef, id: string, private changed: () => void, private heard: () => void) {
    this.stream = new Stream({ path: job_path(ref, id, "/stream", progress_query),
      wants: () => is_awake() && !this.ended, last_id: () => this.last_id,
      took: (parts) => parts.forEach((part) => this.take(part)),
      // It is gone; the poll of the page tells it.
      refused: (status) => { this.ended ||= status === 404; } });
  }

  stop(): void {
    this.stream.stop();
  }

  // A job that had ended lives again.
  again(): void {
    if (!this.ended) return;
    this.ended = false;
    this.stream.turn();
  }

  private take({ type, data, id }: StreamPart): void {
    if (id) this.last_id = id;
    if (type === "state" || type === "position") return this.changed();
    const part = JSON.parse(data) as Record<string, unknown>;
    if (type === "end") {
      this.ended = true;
      this.changed();
    } else if (type === "progress") {
      this.progress = { text: progress_of(part), time: Number(part.time) };
      this.heard();
    } else if (type === "log") {
      this.take_log(part as unknown as LogPart);
    }
  }

  private take_log(part: LogPart): void {
    if (part.offset !== this.at) this.half = "";
    if (part.offset < this.at) {
      this.log = "";
      this.begins_late = part.offset > 0;
    }
    else if (part.offset > this.at) this.begins_late = true;
    this.at = part.next;
    const bytes = this.half + (segment_of(part, "text") ?? "");
    this.half = HALF.exec(bytes)?.[0] ?? "";
    const came = lenient_text_of(bytes.slice(0, bytes.length - this.half.length));
    const whole = this.log + came;
    this.end += came.length;
    this.log = lines_at_end(whole, MOST_LOG);
    if (this.log !== whole) this.begins_late = true;
    this.heard();
  }

  end_of_log(): string {
    return lines_at_end(this.log, SHOWN_LOG);
  }
}

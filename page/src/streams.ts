// Streams of Server-Sent Events, of a queue or of a job: read as they come, and begun again when
// they are lost. The events of a queue are sampled when there are too many.
import { ApiError, headers, on_change, open, queue_path, state } from "./api";
import type { QueueRef } from "./api";
import { is_awake, is_paused } from "./live";
import type { QueueEvent } from "./types";

const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 10_000;
// The server sends something every 15 s even if nothing happens. A longer silence means that the
// connection has ended unnoticed.
const SILENCE_MS = 40_000;

export type StreamState = "live" | "waiting" | "paused" | "sampled" | "off";

export interface StreamPart {
  type: string;
  data: string;
  id: string;
}

// Parses a stream. (EventSource cannot send an Authorization header.)
class Parser {
  private rest = "";

  take(text: string): StreamPart[] {
    const parts = (this.rest + text).split("\n\n");
    this.rest = parts.pop() ?? "";
    return parts.map((part) => {
      const found: StreamPart = { type: "", data: "", id: "" };
      for (const line of part.split("\n")) {
        if (line.startsWith("event: ")) found.type = line.slice(7);
        else if (line.startsWith("data: ")) found.data += line.slice(6);
        else if (line.startsWith("id: ")) found.id = line.slice(4);
      }
      return found;
    }).filter(({ data }) => data !== "");
  }
}

// What a stream is for.
export interface StreamUser {
  path: string;
  // Whether it should be read now.
  wants(): boolean;
  // The id of the event behind which it continues, if any.
  last_id(): string | null;
  took(parts: StreamPart[]): void;
  refused(status: number): void;
  // Called when the state of the stream changes.
  turned?(state: StreamState): void;
}

export class Stream {
  private abort: AbortController | null = null;
  private timer = 0;
  private silence = 0;
  private stopped = false;
  private retry_ms = FIRST_RETRY_MS;
  // A failed poll is noticed sooner than a dead stream, in which silence is normal.
  private readonly forget_health = on_change(() => {
    if (state.health === "disconnected" && this.abort) this.come_again();
    if (state.health === "connected" && this.user.wants()) this.begin();
  });
  // Begins or ends it, as the user wants.
  readonly turn = () => {
    if (this.user.wants()) this.begin();
    else this.end(is_paused() ? "paused" : "waiting");
  };

  constructor(private user: StreamUser) {
    document.addEventListener("visibilitychange", this.turn);
    this.turn();
  }

  stop(): void {
    this.stopped = true;
    document.removeEventListener("visibilitychange", this.turn);
    this.forget_health();
    this.end("off");
  }

  end(why: StreamState): void {
    clearTimeout(this.timer);
    clearTimeout(this.silence);
    this.abort?.abort();
    this.abort = null;
    this.user.turned?.(why);
  }

  // Begins it anew after this time.
  rest(ms: number): void {
    if (this.stopped || !this.user.wants()) return;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.begin(), ms);
  }

  private come_again(): void {
    this.end("waiting");
    this.rest(this.retry_ms);
    this.retry_ms = Math.min(this.retry_ms * 2, LAST_RETRY_MS);
  }

  private heard(): void {
    clearTimeout(this.silence);
    this.silence = window.setTimeout(() => this.come_again(), SILENCE_MS);
  }

  private begin(): void {
    if (this.stopped || this.abort) return;
    this.abort = new AbortController();
    void this.read(this.abort);
  }

  private async read(abort: AbortController): Promise<void> {
    const { user } = this;
    try {
      const extra: Record<string, string> = { Accept: "text/event-stream" };
      const last = user.last_id();
      if (last !== null) extra["Last-Event-ID"] = last;
      const response = await open(user.path, { headers: headers(extra), signal: abort.signal });
      user.turned?.("live");
      this.heard();
      const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new Parser();
      for (;;) {
        const { done, value } = await reader.read();
        if (done || this.abort !== abort) break;
        this.heard();
        this.retry_ms = FIRST_RETRY_MS;
        const parts = parser.take(value);
        if (parts.length > 0) user.took(parts);
      }
    } catch (error) {
      if (error instanceof ApiError) user.refused(error.status);
    }
    if (this.abort === abort) this.come_again();
  }
}

// --- The events of a queue ---

// Above this rate, reading all events would be of no use.
const MOST_EVENTS_A_SECOND = 2000;
const REST_MS = 3000;
const NO_SUCH_EVENTS = [404, 409, 422];

export class EventFeed {
  private wanted = false;
  private last_seq: number | null = null;
  private window_began = 0;
  private window_count = 0;
  private readonly stream: Stream;

  // `took` receives events in order; `turned` is called when the state of the feed changes.
  constructor(ref: QueueRef, private took: (events: QueueEvent[]) => void,
              turned: (state: StreamState) => void) {
    this.stream = new Stream({ path: queue_path(ref, "/events"), wants: () => this.may_run,
      last_id: () => this.last_seq === null ? null : String(this.last_seq),
      took: (parts) => this.take(parts), refused: (status) => this.refused(status), turned });
  }

  // What nobody sees is not sent, but for one event, whose number says where to continue later.
  private get may_run(): boolean {
    return is_awake() && (this.wanted || this.last_seq === null);
  }

  want(wanted: boolean): void {
    this.wanted = wanted;
    this.stream.turn();
  }

  stop(): void {
    this.stream.stop();
  }

  private refused(status: number): void {
    // No longer kept, or another queue of this name: continue with new events. Amid loading and the
    // like the number stays, so that nothing is left out afterwards.
    if (NO_SUCH_EVENTS.includes(status)) this.last_seq = null;
  }

  private take(parts: StreamPart[]): void {
    const batch: QueueEvent[] = [];
    for (const { type, data } of parts) {
      if (type === "problem") this.refused((JSON.parse(data) as { status: number }).status);
      else batch.push(JSON.parse(data) as QueueEvent);
    }
    if (batch.length === 0) return;
    this.last_seq = batch[batch.length - 1].seq;
    this.took(batch);
    if (!this.may_run) return this.stream.end("waiting");
    const now = performance.now();
    if (now - this.window_began > 1000) {
      this.window_began = now;
      this.window_count = 0;
    }
    this.window_count += batch.length;
    if (this.window_count <= MOST_EVENTS_A_SECOND) return;
    // A sample is enough: the figures include what is left out.
    this.last_seq = null;
    this.window_count = 0;
    this.stream.end("sampled");
    this.stream.rest(REST_MS);
  }
}

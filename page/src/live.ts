// Keeps the page current at a bounded cost: one drawing per frame; polls that never overlap and
// that pause while the page is hidden; and an event stream that falls back to sampling when there
// are too many events.
import { ApiError, Unreachable, headers, on_change, open, queue_path, state } from "./api";
import type { QueueRef } from "./api";
import type { QueueEvent } from "./types";

// --- Drawing ---

const due = new Set<() => void>();
let asked = false;

// Runs `draw` once before the next frame, however often it is requested.
export function draw_soon(draw: () => void): void {
  due.add(draw);
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    const draws = [...due];
    due.clear();
    for (const each of draws) each();
  });
}

// Resolves when what has been drawn is on the screen.
export function painted(): Promise<void> {
  return new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
}

// --- Awake or not ---

let paused = false;

// What runs in the background rests while the page is hidden or updates are paused; what a person
// does is answered all the same.
export function is_awake(): boolean {
  return document.visibilityState === "visible" && !paused;
}

export function is_paused(): boolean {
  return paused;
}

export function set_paused(next: boolean): void {
  paused = next;
  document.dispatchEvent(new Event("visibilitychange"));
}

// --- Polling ---

// Data in view is requested at most this often.
export const LEAST_MS = 400;
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 10_000;

export class Poller {
  private timer = 0;
  private running = false;
  private again = false;
  private poked = false;
  private last_began = -Infinity;
  // While the server is away a poke does not ask before this time.
  private away_until = -Infinity;
  private retry_ms = FIRST_RETRY_MS;
  private readonly abort = new AbortController();
  private readonly wake = () => {
    if (!this.may_run) return;
    this.away_until = -Infinity;
    this.poke();
  };

  // `ask` is called at most every `least_ms`, and every `usual_ms` without a poke. `always`: even
  // while updates are paused.
  constructor(private ask: (signal: AbortSignal) => Promise<void>,
              public usual_ms: number, private least_ms: number,
              private failed: (error: unknown) => void, private always = false) {
    document.addEventListener("visibilitychange", this.wake);
    addEventListener("online", this.wake);
    this.poke();
  }

  private get may_run(): boolean {
    return this.always ? document.visibilityState === "visible" : is_awake();
  }

  stop(): void {
    this.abort.abort();
    clearTimeout(this.timer);
    document.removeEventListener("visibilitychange", this.wake);
    removeEventListener("online", this.wake);
  }

  // Something has changed: request before the usual time, also during an outage. What pokes then is
  // a person who wants to know now, or a network that has returned.
  poke(): void {
    if (this.running) {
      this.again = true;
      return;
    }
    this.poked = true;
    const rested = state.health === "connected" ? -Infinity : this.away_until;
    this.plan(Math.max(0, this.last_began + this.least_ms - performance.now(),
      rested - performance.now()));
  }

  private plan(wait_ms: number): void {
    clearTimeout(this.timer);
    if (this.abort.signal.aborted) return;
    this.timer = window.setTimeout(() => void this.run(), wait_ms);
  }

  private async run(): Promise<void> {
    if (document.visibilityState !== "visible" || !(this.poked || this.may_run)) return;
    this.running = true;
    this.again = this.poked = false;
    this.last_began = performance.now();
    let wait_ms = this.usual_ms;
    let away = false;
    try {
      await this.ask(this.abort.signal);
      this.retry_ms = FIRST_RETRY_MS;
    } catch (error) {
      if (this.abort.signal.aborted) return;
      away = error instanceof Unreachable || state.health === "loading";
      if (away) {
        wait_ms = this.retry_ms * (0.75 + Math.random() / 2);
        this.retry_ms = Math.min(this.retry_ms * 2, LAST_RETRY_MS);
      }
      this.failed(error);
    } finally {
      this.running = false;
    }
    const took = performance.now() - this.last_began;
    // A slow server is polled less often.
    const rest = Math.max(this.least_ms - took, took);
    this.poked = this.again || away;
    const usual = Math.max(wait_ms - took, rest / 2);
    if (away) this.away_until = performance.now() + usual;
    this.plan(this.again && !away ? rest : usual);
  }
}

// What may take long to answer: nothing waits for it, and an answer is followed by a rest of so
// many times its length.
const REST = 20;

export class Seldom {
  private due_at = 0;
  private asking = false;
  private again = false;

  constructor(private each_ms: number) {}

  // A failure is told by the other requests of the view.
  ask(what: () => Promise<void>): void {
    const began = performance.now();
    if (this.asking || began < this.due_at) return;
    this.asking = true;
    void what().catch(() => undefined).finally(() => {
      this.asking = false;
      const now = performance.now();
      this.due_at = this.again ? 0 : now + Math.max(this.each_ms, REST * (now - began));
      this.again = false;
    });
  }

  // Something has changed: the next call asks.
  soon(): void {
    this.due_at = 0;
    this.again = this.asking;
  }
}

// --- Events ---

export type FeedState = "live" | "waiting" | "paused" | "sampled" | "off";

// Above this rate, reading all events would be of no use.
const MOST_EVENTS_A_SECOND = 2000;
const REST_MS = 3000;
// The server sends something every 15 s even if nothing happens. A longer silence means that the
// connection has ended unnoticed.
const SILENCE_MS = 40_000;
const NO_SUCH_EVENTS = [404, 409, 422];

// Parses a stream of Server-Sent Events. (EventSource cannot send an Authorization header.)
export class EventParser {
  private rest = "";

  take(text: string, each: (type: string, data: string, id: string) => void): void {
    const parts = (this.rest + text).split("\n\n");
    this.rest = parts.pop() ?? "";
    for (const part of parts) {
      let type = "";
      let data = "";
      let id = "";
      for (const line of part.split("\n")) {
        if (line.startsWith("event: ")) type = line.slice(7);
        else if (line.startsWith("data: ")) data += line.slice(6);
        else if (line.startsWith("id: ")) id = line.slice(4);
      }
      if (data) each(type, data, id);
    }
  }
}

export class EventFeed {
  private abort: AbortController | null = null;
  private timer = 0;
  private stopped = false;
  private wanted = false;
  private silence = 0;
  private retry_ms = FIRST_RETRY_MS;
  private last_seq: number | null = null;
  private window_began = 0;
  private window_count = 0;
  private readonly turn = () => {
    if (this.may_run) this.begin();
    else this.end(is_paused() ? "paused" : "waiting");
  };
  // A failed poll is noticed sooner than a dead stream, in which silence is normal.
  private readonly forget_health = on_change(() => {
    if (state.health === "disconnected" && this.abort) this.come_again();
    if (state.health === "connected" && this.may_run) this.begin();
  });

  // `took` receives events in order; `turned` is called when the state of the feed changes.
  constructor(private ref: QueueRef, private took: (events: QueueEvent[]) => void,
              private turned: (state: FeedState) => void) {
    document.addEventListener("visibilitychange", this.turn);
    this.turn();
  }

  // What nobody sees is not sent, but for one event, whose number says where to continue later.
  private get may_run(): boolean {
    return is_awake() && (this.wanted || this.last_seq === null);
  }

  want(wanted: boolean): void {
    this.wanted = wanted;
    this.turn();
  }

  stop(): void {
    this.stopped = true;
    document.removeEventListener("visibilitychange", this.turn);
    this.forget_health();
    this.end("off");
  }

  private end(why: FeedState): void {
    clearTimeout(this.timer);
    clearTimeout(this.silence);
    this.abort?.abort();
    this.abort = null;
    this.turned(why);
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

  private rest(ms: number): void {
    if (this.stopped || !this.may_run) return;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.begin(), ms);
  }

  private begin(): void {
    if (this.stopped || this.abort) return;
    this.abort = new AbortController();
    void this.read(this.abort);
  }

  private async read(abort: AbortController): Promise<void> {
    try {
      const extra: Record<string, string> = { Accept: "text/event-stream" };
      if (this.last_seq !== null) extra["Last-Event-ID"] = String(this.last_seq);
      const path = queue_path(this.ref, "/events");
      const response = await open(path, { headers: headers(extra), signal: abort.signal });
      this.turned("live");
      this.heard();
      this.retry_ms = FIRST_RETRY_MS;
      const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new EventParser();
      for (;;) {
        const { done, value } = await reader.read();
        if (done || this.abort !== abort) break;
        this.heard();
        this.hand_over(parser, value);
      }
    } catch (error) {
      if (error instanceof ApiError) this.refused(error.status);
    }
    if (this.abort === abort) this.come_again();
  }

  private refused(status: number): void {
    // No longer kept, or another queue of this name: continue with new events. Amid loading and the
    // like the number stays, so that nothing is left out afterwards.
    if (NO_SUCH_EVENTS.includes(status)) this.last_seq = null;
  }

  private hand_over(parser: EventParser, text: string): void {
    const batch: QueueEvent[] = [];
    parser.take(text, (type, data) => {
      if (type === "problem") this.refused((JSON.parse(data) as { status: number }).status);
      else batch.push(JSON.parse(data) as QueueEvent);
    });
    if (batch.length === 0) return;
    this.last_seq = batch[batch.length - 1].seq;
    this.took(batch);
    if (!this.may_run) return this.end("waiting");
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
    this.end("sampled");
    this.rest(REST_MS);
  }
}

// --- Visibility ---

// How far beyond the window's edge an element counts as in view.
const MARGIN_PX = 80;

// Calls `turned` when an element comes into view or leaves it.
export class Visibility {
  private readonly watched = new Map<Element, { visible: boolean; turned: (visible: boolean) =>
    void }>();
  private readonly observer = new IntersectionObserver((entries) => {
    const came = entries.filter(({ target, isIntersecting }) =>
      this.turn(target, isIntersecting) && isIntersecting);
    if (came.length > 0) this.came();
  }, { rootMargin: `${MARGIN_PX}px` });

  // `came`: something has come into view since the last look.
  constructor(private came: () => void) {}

  watch(element: Element, turned: (visible: boolean) => void): void {
    this.watched.set(element, { visible: false, turned });
    this.observer.observe(element);
  }

  // Finds out at once what is in view, which the observer may tell later.
  look(): void {
    for (const element of this.watched.keys()) {
      const { top, bottom, height } = element.getBoundingClientRect();
      this.turn(element, height > 0 && bottom > -MARGIN_PX && top < innerHeight + MARGIN_PX);
    }
  }

  stop(): void {
    this.observer.disconnect();
    this.watched.clear();
  }

  // Returns whether it was otherwise before.
  private turn(element: Element, visible: boolean): boolean {
    const each = this.watched.get(element);
    if (!each || each.visible === visible) return false;
    each.visible = visible;
    each.turned(visible);
    return true;
  }
}

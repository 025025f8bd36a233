// Keeps the page current at a bounded cost: one drawing per frame, and polls that never overlap and
// that pause while the page is hidden.
import { Unreachable, state } from "./api";

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

// An answer is followed by a rest of so many times its length, so that what takes long to answer is
// asked seldom. Of `least_ms` at least; one slow answer does not leave a view old for long.
const LONGEST_REST_MS = 15_000;

export function rest_since(began: number, least_ms: number, times = 20): number {
  return Math.min(LONGEST_REST_MS, Math.max(least_ms, times * (performance.now() - began)));
}

// What may take long to answer: nothing waits for it.

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
      this.due_at = this.again ? 0 : performance.now() + rest_since(began, this.each_ms);
      this.again = false;
    });
  }

  // Something has changed: the next call asks.
  soon(): void {
    this.due_at = 0;
    this.again = this.asking;
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

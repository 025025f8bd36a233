// What has happened to one job, as far back as the queue's event log goes.
//
// The server looks through the log, a bounded piece a call; what it has found and how far it is
// come with each answer.
import { ApiError, queue_path, request } from "./api";
import type { QueueRef } from "./api";
import type { QueueEvent } from "./types";

// More events of one job are read on request.
const MOST = 1000;

interface Page {
  events: QueueEvent[];
  next: string;
}

export class Story {
  readonly events: QueueEvent[] = [];
  // Everything up to now has been read.
  complete = false;
  // There is more, and the bound is reached.
  bounded = false;
  // Events have gone that were not read.
  begins_late = false;
  private after = "-";
  private room = MOST;

  constructor(private ref: QueueRef, private id: string) {}

  // Reads on from where it was; `progress` after each answer.
  async read(signal: AbortSignal, progress: () => void): Promise<void> {
    try {
      while (this.room > 0) {
        const query = { after: this.after, count: String(this.room) };
        // A segment is encoded already.
        const path = `${queue_path(this.ref, "/events", query)}&id=${this.id}`;
        const { events, next } = await request<Page>(path, { signal });
        const last = this.events.at(-1)?.seq ?? 0;
        this.events.push(...events.filter((event) => event.seq > last));
        this.room -= events.length;
        this.complete = next === this.after;
        this.after = next;
        if (this.complete) return;
        progress();
      }
      this.bounded = true;
    } catch (error) {
      // What stood between is not kept any more: go on with what is.
      if (!(error instanceof ApiError) || error.code !== "TRIMMED") throw error;
      this.begins_late = true;
      this.after = "-";
    }
  }

  read_further(): void {
    this.room = MOST;
    this.bounded = false;
  }
}

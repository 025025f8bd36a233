// The server's clock as known to this browser. Ages are computed with it, whatever the local clock
// shows. Null: not known yet.
let offset_ms: number | null = null;

// An answer that was on its way for longer than this looks like a step of a clock.
const STEP_MS = 2000;

// When an answer was made. How long it was on its way is not known: what says the latest time is
// the nearest. Each answer counts, since either clock may be set, or another node may answer.
export function set_server_time(server_ms: number): void {
  const offset = server_ms - Date.now();
  if (offset_ms === null || offset > offset_ms || offset < offset_ms - STEP_MS) offset_ms = offset;
}

export function server_now(): number {
  return Date.now() + (offset_ms ?? 0);
}

// The server's clock as known to this browser. Ages are computed with it, whatever the local clock
// shows.
let offset_ms = 0;

export function set_server_time(server_ms: number): void {
  offset_ms = server_ms - Date.now();
}

export function server_now(): number {
  return Date.now() + offset_ms;
}

// The server's clock as this browser knows it: ages are told by it, whatever a phone's clock says.
let offset_ms = 0;

export function set_server_time(server_ms: number): void {
  offset_ms = server_ms - Date.now();
}

export function server_now(): number {
  return Date.now() + offset_ms;
}

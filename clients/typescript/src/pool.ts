// What the queues of a process share: for each server one connection for commands, and one for each
// queue whose results are awaited. A Worker has connections of its own.
import { Link } from './link.js'
import { ResultWaiter } from './results.js'
import { shownUrl, type ServerOptions } from './server.js'

/** The connections to one server; each user closes its own handle. */
export class SharedLinks {
  readonly commands: Link
  readonly #server: ServerOptions
  readonly #waiters = new Map<string, ResultWaiter>()
  readonly #forget: () => void
  #users = 0

  constructor(server: ServerOptions, forget: () => void) {
    this.#server = server
    this.#forget = forget
    this.commands = new Link(server, 'sluice-queue')
  }

  /** Waits for results of this queue. */
  waiter(queue: string): ResultWaiter {
    let waiter = this.#waiters.get(queue)
    if (waiter === undefined) {
      waiter = new ResultWaiter(this.#server, this.commands, queue)
      this.#waiters.set(queue, waiter)
    }
    return waiter
  }

  use(): this {
    ++this.#users
    return this
  }

  release(): void {
    if (--this.#users > 0) return
    this.#forget()
    this.commands.close()
    for (const waiter of this.#waiters.values()) waiter.close()
  }
}

const shared = new Map<unknown, SharedLinks>()

/** The connections to this server, which all queues with the same options have in common. */
export function sharedLinks(server: ServerOptions): SharedLinks {
  const key = server.redis ?? server.url ?? shownUrl(server)
  let links = shared.get(key)
  if (links === undefined) {
    links = new SharedLinks(server, () => shared.delete(key))
    shared.set(key, links)
  }
  return links.use()
}
